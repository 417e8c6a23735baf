"""Who takes part, with a scripted model that invents personas well or badly."""

import json
import re
from typing import Any

import pytest

from madplug import Persona, PersonaGenerator
from madplug_personas import Expert, Fixed, Ipip, Neutral, NoPersona
from madplug_personas.markers import MARKERS, all_traits, describe, traits_of
from madplug_testing import Played, play

LOW = dict.fromkeys(MARKERS, "low")
CHARACTER = {"role": "Cook", **LOW, "experience": "Expert", "gender": "female"}


def expert(role: str) -> str:
    return json.dumps({"role": role, "description": f"You know all about being a {role}."})


def meet(*personas: PersonaGenerator, made: list[str] | None = None, **more: Any) -> Played:
    """A debate whose first calls are answered by `made`; everybody then says the same."""
    waiting = list(made or [])
    return play(personas=personas, replies=lambda r: waiting.pop(0) if r.purpose == "persona" else "42", **more)


def people(played: Played) -> list[Persona]:
    return [agent.persona for agent in played.result.agents]


def names(played: Played) -> list[str]:
    return [persona.name for persona in people(played)]


def asked(played: Played) -> list[Any]:
    return [request for request in played.requests if request.purpose == "persona"]


def test_without_personas_participants_are_numbered() -> None:
    played = meet(NoPersona(), agents=3)
    assert (names(played), asked(played)) == (["Participant 1", "Participant 2", "Participant 3"], [])
    assert all(p.role == "participant" and p.votes and p.description for p in people(played))


def test_experts_are_made_one_after_the_other_by_a_model_of_their_own_and_each_sees_those_before() -> None:
    played = meet(Expert(model="big"), agents=3, made=[expert("Cook"), expert("Baker"), expert("Farmer")],
                  models=["model", "big"])
    assert names(played) == ["Cook", "Baker", "Farmer"]
    assert [r.model for r in played.requests] == ["big"] * 3 + ["model", "big", "model"]
    assert all((r.agent, r.form["json_schema"]["required"]) == (None, ["role", "description"]) for r in asked(played))
    prompts = [r.messages[-1]["content"] for r in asked(played)]
    assert "so far: none" in prompts[0]
    assert [[f"- {name}: You know" in prompt for name in ("Cook", "Baker")] for prompt in prompts] == [
        [False, False], [True, False], [True, True]]
    assert all("the question" in p and "JSON" in p for p in prompts)
    assert "personas" not in played.result.notes


@pytest.mark.parametrize("reply", [
    'Here you are:\n```json\n{"role": "Cook", "description": "d"}\n```',
    "{role: 'Cook', description: 'd'",
    '[{"role": "Cook", "description": "d"}, {"role": "Baker", "description": "e"}]',
    '{"role": " Cook\\n", "description": "d", "more": 1}',
])
def test_json_is_read_leniently_and_a_list_gives_its_first(reply: str) -> None:
    assert people(meet(Expert(), agents=1, made=[reply])) == [Persona("Cook", "d")]


BAD = ["", "no", "{}", "[]", '{"role": "Cook"}', '{"role": "", "description": "d"}', '{"role": {}, "description": "d"}',
       '{"role": "Cook", "description": ""}', '{"role": 7, "description": "d"}', "{" * 200_000, "x" * 200_000,
       json.dumps({"role": "x" * 200_000, "description": "d"}),
       json.dumps({"role": "Cook", "description": "x" * 200_000})]


@pytest.mark.parametrize("generator", [Expert, Ipip])
@pytest.mark.parametrize("reply", BAD)
def test_every_failure_counts_and_after_the_last_a_participant_takes_the_place(generator: Any, reply: str) -> None:
    played = meet(generator(), agents=1, made=[reply] * 5)
    assert names(played) == ["Participant 1"]
    assert len(asked(played)) == 5
    assert played.result.notes["personas"] == {"persona_fallback": [0], "unparsed": True}
    assert played.result.unread


@pytest.mark.parametrize(("attempts", "made", "expected", "notes"), [
    (2, ["sorry?", "Cook"], ["Cook"], None),  # one bad reply costs one more call and no flag
    (5, ["Cook", "COOK", "Baker"], ["Cook", "Baker"], None),  # a taken name is asked for once more,
    (5, ["Cook", *["cook"] * 4], ["Cook", "cook 2", "cook 3"], {"renamed": [1, 2]}),  # and gets a number
    (2, ["Cook", "Cook", "sorry?"], ["Cook", "Cook 2"], {"renamed": [1]})])  # better than none at the end
def test_what_becomes_of_bad_replies_and_of_names_that_are_taken(
        attempts: int, made: list[str], expected: list[str], notes: dict[str, Any] | None) -> None:
    replies = [name if "?" in name else expert(name) for name in made]
    played = meet(Expert(attempts=attempts), agents=len(expected), made=replies)
    assert names(played) == expected
    assert len(asked(played)) == len(made)
    assert played.result.notes.get("personas") == notes
    assert "COOK" not in made or 'already is a "COOK"' in asked(played)[-1].messages[-1]["content"]


@pytest.mark.parametrize("high", [[], list(MARKERS), ["openness"]])
def test_a_description_has_52_adjectives_each_of_the_pole_of_its_trait_and_one_more_sentence(high: list[str]) -> None:
    text = describe({**LOW, **dict.fromkeys(high, "high")}, "Non-Expert", "non-binary")
    words = re.findall(r"extremely ([\w -]+?)(?=,| and extremely|\.)", text)
    assert words == [pair[trait in high] for trait, pairs in MARKERS.items() for pair in pairs]
    assert len(words) == text.count("extremely") == 52
    assert text.count(".") == 6
    assert text.endswith(" You are non-binary and, in the matter of the task, not an expert.")
    assert [len(pairs) for pairs in MARKERS.values()] == [9, 11, 10, 10, 12]
    assert len({word for pairs in MARKERS.values() for pair in pairs for word in pair}) == 104


def test_a_character_is_described_by_what_the_model_picked_however_it_is_spelt() -> None:
    said = {**CHARACTER, "Role": "Cook", "neurotiscism": " LOW ", "experience": "non expert", "gender": "Nonbinary"}
    del said["role"], said["neuroticism"]
    for made, described in ((CHARACTER, ("Expert", "female")), (said, ("Non-Expert", "non-binary"))):
        assert people(meet(Ipip(), agents=1, made=[json.dumps(made)])) == [Persona("Cook", describe(LOW, *described))]


@pytest.mark.parametrize("change", [{"openness": "medium"}, {"gender": ""}, {"experience": 3}, {"extraversion": True}])
def test_a_value_that_is_not_offered_counts_as_a_failure(change: dict[str, Any]) -> None:
    played = meet(Ipip(attempts=1), agents=1, made=[json.dumps({**CHARACTER, **change})])
    assert names(played) == ["Participant 1"]


def test_characters_are_unique_by_their_traits_whatever_they_are_called() -> None:
    same, other = {"role": "Farmer", "gender": "male"}, {"role": "Baker", "openness": "high"}
    played = meet(Ipip(), agents=2, made=[json.dumps({**CHARACTER, **c}) for c in ({}, same, other)])
    assert names(played) == ["Cook", "Baker"]
    assert "There already is a participant with these traits" in asked(played)[2].messages[-1]["content"]
    assert "personas" not in played.result.notes


def test_traits_that_no_try_changes_are_changed_as_little_as_possible() -> None:
    played = meet(Ipip(attempts=3), agents=3, made=[json.dumps(CHARACTER)] * 7)
    descriptions = [p.description for p in people(played)]
    assert len({traits_of(text) for text in descriptions}) == 3
    assert len(asked(played)) == 7
    assert all(text.endswith("You are female and, in the matter of the task, an expert.") for text in descriptions)
    for text in descriptions[1:]:
        assert sum(a != b for a, b in zip(text.split(". "), descriptions[0].split(". "), strict=True)) == 1
    assert played.result.notes["personas"] == {"changed_traits": [1, 2], "renamed": [1, 2]}


def test_beyond_all_combinations_traits_repeat() -> None:
    played = meet(Ipip(attempts=1), agents=33, made=[json.dumps(CHARACTER)] * 33)
    assert len({traits_of(p.description) for p in people(played)}) == len(all_traits()) == 32


def test_a_fixed_list_makes_exactly_its_personas() -> None:
    generator = Fixed(personas=("Ann", {"name": "Bob", "description": "You doubt.", "role": "sceptic", "votes": False}))
    assert generator.count == 2
    assert people(meet(generator)) == [Persona("Ann"), Persona("Bob", "You doubt.", "sceptic", votes=False)]


def test_a_fixed_list_rejects_what_a_persona_does_not_have_and_names_listed_twice() -> None:
    with pytest.raises(ValueError, match="votez"):
        Fixed(personas=[{"name": "Ann", "votez": True}])
    with pytest.raises(ValueError, match="at least 1"):
        Fixed(personas=[])
    assert list(Fixed(personas=["Ann", "Bob", "Ann"]).check(None)) == ["the name 'Ann' is listed more than once"]


def test_neutral_agents_do_not_vote_and_several_are_numbered() -> None:
    played = meet(Neutral(), NoPersona(), Neutral(), agents=3)
    assert names(played) == ["Moderator", "Participant 1", "Moderator 2"]
    assert [a.id for a in played.debate.voters] == [1]
    assert people(played)[0].role == "neutral"
    assert names(meet(Neutral(count=2), NoPersona())) == ["Moderator 1", "Moderator 2", "Participant 1"]


def test_generators_can_be_mixed_and_see_each_other() -> None:
    made = [expert("Cook"), json.dumps({**CHARACTER, "role": "Baker"})]
    played = meet(Neutral(), Expert(), Ipip(), NoPersona(), agents=5, made=made)
    assert names(played) == ["Moderator", "Cook", "Baker", "Participant 3", "Participant 4"]
    assert "- Cook: " in asked(played)[1].messages[-1]["content"]
