"""Every prompt of every method, as it is really sent: one text file per method in `tests/golden`.

A file begins with the method's debate, as in a run file; what it sends follows. A change of any prompt shows in review
as a change of these files. After one, `python tests/integration/test_golden.py` writes them again; names of methods
after it write only those. A new method is a new file that has nothing but its debate.
"""

import re
import sys
import tempfile
from difflib import unified_diff
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))  # where pytest's conftest has not done it

from recording import REGISTRY, exchanged
from scripted_agents import Agents

GOLDEN = Path(__file__).parents[1] / "golden"
IMAGE = "data:image/png;base64,iVBORw0KGgo="
CHOICE = {"id": "q1", "question": "Which one?", "choices": ["one", "two", "three", "four"], "reference": "B"}
TEXT = {"id": "q1", "question": "Who sang there?", "context": ["A choir sang in the hall."], "reference": "the choir"}
WORDS = "The task in words."
ROWS = {"oversight": TEXT | {"choices": ["the choir", "nobody"], "reference": "A"},
        "vision": CHOICE | {"images": [IMAGE]}, "voting_text": TEXT,
        "jury": {"id": "q1", "question": "A choir sang in the hall. Was it in tune?", "reference": "yes"}}
"""The questions of methods with such names, if another than `CHOICE`."""
METHODS = sorted(path.stem for path in GOLDEN.iterdir())


def on_record(name):
    """A method's file: its debate, and the calls."""
    debate, _, calls = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").partition("\n######## ")
    return debate.strip(), calls.split("\n######## ")


@cache
def debate_of(name):
    """A method's debate. Agents differ, and never agree."""
    script = Agents("ABCDABCDAB", agree=False, split=9, judged=("", "B"), disagree=(1,))
    row = next((row for part, row in ROWS.items() if part in name), CHOICE)
    top = 'answers = "answers.yesno"' if row["reference"] == "yes" else ""
    with tempfile.TemporaryDirectory() as folder:
        return exchanged(Path(folder), on_record(name)[0], script, row, dataset=f', instruction = "{WORDS}"', top=top)


def written(name):
    """The golden text of a method: its debate, and the bodies that were sent."""
    parts = [on_record(name)[0]]
    for number, (request, body) in enumerate(debate_of(name).calls, 1):
        who = f"agent {request.agent}, " if request.agent is not None else ""
        parts.append(f"######## {number}. {request.purpose}: {who}model {request.model}")
        parts += [f"==== {message['role']}\n{shown(message['content'])}" for message in body["messages"]]
    return "\n\n".join(parts) + "\n"


def shown(content):
    """A message's text, and that it has images."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] if part["type"] == "text" else "<image>" for part in content)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_sends_the_prompts_on_record(name):
    path = GOLDEN / f"{name}.txt"
    expected, sent = path.read_text(encoding="utf-8"), written(name)
    changed = "\n".join(unified_diff(expected.split("\n"), sent.split("\n"), "on record", "sent", lineterm="", n=1))
    assert sent == expected, f"{changed}\n\npython tests/integration/test_golden.py {name}  writes it again"


@pytest.mark.parametrize("name", METHODS)
def test_a_round_of_a_method_takes_as_many_steps_as_its_turn_order_says_or_one_less(name):
    done = debate_of(name)
    result, cell = done.results[0], done.plan.cells[0]
    for number in range(1, result.rounds + 1):
        steps = len({m.wave for m in result.messages if m.round == number and m.calls})
        assert cell.turns.steps(cell.plan.agents, number) - steps in (0, 1)


@pytest.mark.parametrize("name", METHODS)
def test_every_prompt_on_record_states_the_task_in_words_once_and_asks_for_one_form_of_answer(name):
    for call in on_record(name)[1]:
        assert call.count(WORDS) == 1, call
        asked = call.rpartition("==== ")[2]
        if "one JSON object" in asked or "Write a Python program" in asked:
            assert "end your reply" not in asked, asked


def test_every_paradigm_with_prompts_of_its_own_is_on_record():
    paradigms = set(re.findall(r'paradigm = "([\w.]+)"', "\n".join(on_record(name)[0] for name in METHODS)))
    offered = {o.name for o in REGISTRY.offers("paradigm") if o.distribution.startswith("madplug-")} - {"kit.pair"}
    assert offered - paradigms <= {
        "replay.debate", "freemad.baseline1", "freemad.baseline2", "madc.cot", "madc.self_consistency", "moa.lite",
        "moa.self", "council.original", "council.ranked", "council.delphi", "oversight.debate", "oversight.sequential",
        "oversight.naive", "controls.isolated", "controls.first_vote"}


def main(names):
    """Write the golden texts."""
    for name in names or METHODS:
        (GOLDEN / f"{name}.txt").write_text(written(name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
