"""Parts of a question that some roles may not know."""

import pytest

from madplug import ComponentError, Decision, DecisionProtocol, Persona, PersonaGenerator, Reply, Sample, Style
from madplug.debate.checks import check_sample
from madplug_testing import play

SAMPLE = Sample("s", "Who did it?", context=("The butler did.",), metadata={"page": 7, "year": 1920},
                hidden_from={"context": ("judge",), "page": ("judge", "clerk")})


class Court(PersonaGenerator):
    """A lawyer, a judge and a clerk."""

    name = "court"
    count = 3
    roles = frozenset({"lawyer", "judge", "clerk"})

    def generate(self, debate, roster):
        SEEN.append(("personas", debate.sample))
        return [Persona(role, role=role) for role in ("lawyer", "judge", "clerk")]


class Telling(Style):
    """Notes what each agent gets, and asks."""

    name = "telling"
    moves = frozenset({"improve", "draft"})

    async def respond(self, debate, turn, view):
        SEEN.append((turn.agent.persona.role, debate.sample))
        return Reply((await debate.ask(str(debate.sample), agent=turn.agent, purpose="discuss")).text)


class Bench(DecisionProtocol):
    """Decides on behalf of the judge."""

    name = "bench"

    async def at_end(self, debate):
        SEEN.append(("decision", debate.sample))
        SEEN.append(("on behalf of the judge", debate.seen_by(1).sample))
        SEEN.append(("on behalf of the lawyer", debate.seen_by(debate.agent(0)).sample))
        return Decision("x")


SEEN: list = []


def knows(sample):
    return bool(sample.context), "page" in sample.metadata


def test_a_component_gets_a_hidden_column_only_on_behalf_of_who_may_know_it():
    SEEN.clear()
    played = play(sample=SAMPLE, personas=[Court()], styles=[Telling()], decision=Bench(), agents=3, rounds=1,
                  replies=lambda request: "x")
    assert {who: knows(sample) for who, sample in SEEN} == {
        "personas": (False, False), "lawyer": (True, True), "judge": (False, False), "clerk": (True, False),
        "decision": (False, False), "on behalf of the judge": (False, False), "on behalf of the lawyer": (True, True)}
    assert all("year" in sample.metadata for _, sample in SEEN)
    assert ["butler" in prompt for prompt in played.prompts] == [True, False, True]


def test_the_record_has_the_whole_question_and_who_may_not_know_what():
    played = play(sample=SAMPLE, replies=lambda request: "x")
    recorded = played.result.sample
    assert (recorded.context, recorded.metadata["page"]) == (("The butler did.",), 7)
    assert {column: tuple(roles) for column, roles in recorded.hidden_from.items()} == SAMPLE.hidden_from


@pytest.mark.parametrize("hidden_from", [{"contxt": ("judge",)}, {"question": ("judge",)}])
def test_a_column_that_cannot_be_hidden_is_told(hidden_from):


    with pytest.raises(ComponentError, match="expected choices, context, images or a column of its metadata"):
        check_sample(Sample("s", "?", hidden_from=hidden_from), "the data set gave")
