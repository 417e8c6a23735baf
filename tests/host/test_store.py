"""What is kept: hostile text, calls before debates, and every hook of a run heard once."""

import pytest

from madplug import Extension, hookimpl
from madplug.hookspecs import RUN_HOOKS
from madplug.store import open_recorder, open_study
from madplug_testing import LastRound, play


@pytest.mark.parametrize("text", [
    "\x1b]0;title\x07\x00\x9b", "\ud800 alone", "x" * 10_000_000, "'; DROP TABLE calls; --",
                                  "\u202egnp.exe", ""])
def test_hostile_text_is_kept_and_read_back(tmp_path, text):
    store = open_recorder(tmp_path)
    play(replies=lambda request: text, agents=1, store=store)
    store.close()
    with open_study(tmp_path) as study:
        kept = next(study.debates())
    assert kept.messages[0].content == text.encode("utf-8", "replace").decode()


def test_a_call_is_on_disk_before_the_debate_goes_on(tmp_path):
    store = open_recorder(tmp_path)
    seen = []

    class Look(LastRound):
        """Reads the database when a message is on record."""

        def after_wave(self, debate):
            with open_study(tmp_path) as other:
                seen.append([row["text"] for row in other.calls()])

    play(replies=["A"], agents=1, decision=Look(), store=store)
    store.close()
    assert seen == [["A"]]


def test_every_hook_of_a_run_is_heard():
    """If this fails: a hook is declared that nothing calls."""
    heard = set()

    def hears(name):
        arguments = [a for a in RUN_HOOKS[name].__code__.co_varnames if a != "return"]
        space = {"heard": heard, "hookimpl": hookimpl}
        exec(f"@hookimpl\ndef {name}(self, {', '.join(arguments)}):\n    heard.add('{name}')\n", space)
        return space[name]

    Ear = type("Ear", (Extension,), {"__doc__": "Hears.", "name": "ear", **{n: hears(n) for n in RUN_HOOKS}})
    play(replies=["A", "A"], agents=1, rounds=2, extensions=[Ear()])
    play(replies=[], agents=1, extensions=[Ear()], expect_failure=True)
    assert heard == set(RUN_HOOKS)
