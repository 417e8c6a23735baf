"""Parts of a question that some roles may not know."""

import pytest
from tests_support import made

from madplug import ComponentError, Decision, Persona, PersonaGenerator, Reply, Sample
from madplug.debate.checks import check_sample
from madplug_testing import LastRound, PlainStyle, play

SAMPLE = Sample("s", "Who did it?", context=("The butler did.",), metadata={"page": 7, "year": 1920},
                hidden_from={"context": ("judge",), "page": ("judge", "clerk")})


ROLES = ("lawyer", "judge", "clerk")


def knows(sample):
    return bool(sample.context), "page" in sample.metadata, "year" in sample.metadata


def test_a_component_gets_a_hidden_column_only_on_behalf_of_who_may_know_it():
    seen = {}

    def generate(self, debate, roster):
        seen["personas"] = debate.sample
        return [Persona(role, role=role) for role in ROLES]

    async def respond(self, debate, turn, view):
        seen[turn.agent.persona.role] = debate.sample
        return Reply((await debate.ask(str(debate.sample), agent=turn.agent, purpose="discuss")).text)

    def at_end(self, debate):
        seen["decision"] = debate.sample
        seen["for the judge"], seen["for the lawyer"] = debate.seen_by(1).sample, debate.seen_by(debate.agent(0)).sample
        return Decision("x")

    played = play(sample=SAMPLE, replies=lambda request: "x", agents=3, rounds=1,
                  personas=[made(PersonaGenerator, generate=generate, count=3, roles=frozenset(ROLES))],
                  styles=[made(PlainStyle, respond=respond)], decision=made(LastRound, at_end=at_end))
    assert {who: knows(sample) for who, sample in seen.items()} == {
        "personas": (False, False, True), "lawyer": (True, True, True), "judge": (False, False, True),
        "clerk": (True, False, True), "decision": (False, False, True), "for the judge": (False, False, True),
        "for the lawyer": (True, True, True)}
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
