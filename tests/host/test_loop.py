"""The loop: rounds, waves, decisions, redos, and what components may not do."""

import asyncio
import gc
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests_support import OneByOne, Openings, Reviews, made, redo_once

from madplug import (
    Decision,
    Extension,
    Message,
    Persona,
    PersonaGenerator,
    Phase,
    Reply,
    Review,
    hookimpl,
)
from madplug.aio import gather_all
from madplug_testing import LastRound, PlainStyle, SpeakAll, StrippedText, play


def test_rounds_count_every_round_in_which_agents_speak_and_a_wave_never_shows_a_message_of_itself():
    played = play(replies=lambda request: "A", agents=3, rounds=2)
    assert played.transcript.answers() == [["A"] * 2] * 3
    assert played.result.rounds == 2
    assert [m.seen for m in played.messages] == [(), (), (), (0, 1, 2), (0, 1, 2), (0, 1, 2)]


def test_a_wave_of_one_sees_the_waves_before_it():
    played = play(replies=lambda request: "A", agents=3, turns=OneByOne())
    assert [(m.wave, m.seen) for m in played.messages] == [(0, ()), (1, (0,)), (2, (0, 1))]


def test_messages_are_recorded_in_the_order_of_the_wave_whoever_answers_first():
    async def late(self, debate, turn, view):
        await asyncio.sleep(0.02 * (3 - turn.agent.id))
        return Reply(f"from {turn.agent.id}")

    played = play(styles=[made(PlainStyle, respond=late)], agents=3)
    assert [m.content for m in played.messages] == ["from 0", "from 1", "from 2"]


def test_a_round_without_a_wave_ends_the_debate_and_is_not_counted():
    two_rounds = made(SpeakAll, waves=lambda self, debate: SpeakAll.waves(self, debate) if debate.round <= 2 else ())
    played = play(replies=lambda request: "A", turns=two_rounds, rounds=9)
    assert played.debate.round == 2
    assert played.decision.agreed


def test_a_decision_in_the_middle_of_a_round_ends_it_there():
    first_word = made(LastRound, after_wave=lambda self, debate: Decision(debate.transcript.messages[-1].key))
    played = play(replies=["A"], turns=OneByOne(), decision=first_word, rounds=3)
    assert (played.decision.key, len(played.messages)) == ("A", 1)


def test_a_round_can_be_retracted_and_run_again_with_fresh_replies():
    played = play(replies=["A", "A", "B", "B"], agents=2, extensions=[Reviews(redo_once)])
    assert [(m.id, m.content, m.retracted) for m in played.result.messages] == [
        (0, "A", True), (1, "A", True), (2, "B", False), (3, "B", False)]
    assert played.decision.key == "B"
    assert played.result.calls == 4


def test_a_round_that_is_always_retracted_fails_instead_of_looping():
    played = play(replies=lambda request: "A", expect_failure=True,
                  extensions=[Reviews(lambda debate: Review(redo=True))])
    assert "was retracted 21 times; an extension keeps requesting a redo" in played.result.error


def test_what_a_review_says_is_a_message_that_nobody_wrote():
    summary = Reviews(lambda debate: Review(say="so far: A") if debate.round == 1 else None)
    played = play(replies=lambda request: "A", agents=1, rounds=2, extensions=[summary])
    said = [(m.round, m.agent, m.content) for m in played.messages]
    assert said == [(1, 0, "A"), (1, None, "so far: A"), (2, 0, "A")]
    assert "so far: A" in played.prompts[-1]


def test_a_stop_leaves_the_decision_to_at_end():
    played = play(replies=lambda request: "A", rounds=5, extensions=[Reviews(lambda debate: Review(stop=True))])
    assert played.result.rounds == 1


def test_generators_make_one_persona_each_and_the_last_makes_all_the_rest_and_models_are_used_in_turn():
    def named(word):
        return made(PersonaGenerator, generate=lambda self, debate, roster: Persona(
            f"{word} after {len(roster)}", votes=word != "judge"))

    personas = [named("judge"), named("peer")]
    played = play(replies=lambda request: "A", personas=personas, agents=3, models=["x", "y"])
    assert [(a.persona.name, a.model) for a in played.result.agents] == [
        ("judge after 0", "x"), ("peer after 1", "y"), ("peer after 2", "x")]
    assert [a.id for a in played.debate.voters] == [1, 2]


def test_equal_answers_get_the_key_of_the_first():
    folded = made(StrippedText, same=lambda self, a, b, sample: a.lower() == b.lower())
    played = play(replies=["yes", "YES", "no"], answers=folded)
    assert played.transcript.answers() == [["yes"], ["yes"], ["no"]]


def test_a_fallback_is_never_an_agreement():
    fallback = made(LastRound, at_end=lambda self, debate: Decision("A", agreed=True, fallback=True))
    assert not play(replies=lambda r: "A", decision=fallback).decision.agreed


def test_a_phase_may_replace_the_decision_and_leave_notes():
    async def doubt(self, debate, decision):
        said = await debate.ask("sure?", purpose="challenge", agent=debate.agents[0])
        debate.notes["doubt"] = {"was": decision.key}
        return Decision(said.text)

    played = play(replies={0: ["A", "B"], 1: ["A"]}, agents=2, phases=[made(Phase, run=doubt)])
    assert (played.decision.key, played.result.notes) == ("B", {"doubt": {"was": "A"}})
    behind_messages = {key for message in played.messages for key in message.calls}
    assert len(played.result.other_calls) == 1, "the call is behind no message, and is on record all the same"
    assert not behind_messages & set(played.result.other_calls)
    assert len(behind_messages) + len(played.result.other_calls) == played.result.calls


def test_references_are_out_of_reach_without_oracle():
    peek = made(PlainStyle, respond=lambda self, debate, turn, view: Reply(debate.references[0]))
    error = play(styles=[peek], references=["secret"], expect_failure=True).result.error
    assert "does not say oracle = true" in error
    assert play(styles=[peek], references=["secret"], oracle=True).decision.key == "secret"
    assert "secret" not in repr(play(replies=lambda r: "A", references=["secret"], rounds=3).requests)


def test_a_participant_that_fails_fails_its_debate():
    @hookimpl(wrapper=True)
    def view(self, debate, turn):
        yield
        raise ValueError("no view")

    broken = made(Extension, madplug_view=view)
    error = play(replies=lambda r: "A", extensions=[broken], expect_failure=True).result.error
    assert re.search(r"ValueError: no view \(in .*Made\.view, test_loop\.py:", error)


def test_extensions_apply_in_the_order_of_the_run_file():
    def appending(word):
        @hookimpl(wrapper=True)
        def reply(self, debate, turn, view):
            pending = yield

            async def changed():
                return Reply((await pending).content + word)

            return changed()

        return made(Extension, madplug_reply=reply)

    assert play(replies=["A"], agents=1, extensions=[appending("1"), appending("2")]).messages[0].content == "A12"


def test_openings_are_on_record_before_round_one():
    openings = Openings(Message(0, 0, 0, None, "say", "known so far"), Message(0, 0, 0, 1, "draft", "mine", key="mine"))
    played = play(replies=lambda r: "A", agents=2, extensions=[openings])
    assert [(m.id, m.round, m.agent) for m in played.messages[:2]] == [(0, 0, None), (1, 0, 1)]
    assert played.messages[2].seen == (0, 1)


def test_a_request_can_be_changed_on_its_way():
    @hookimpl(wrapper=True)
    def louder(self, debate, request):
        request = yield
        return replace(request, messages=(*request.messages, {"role": "user", "content": "LOUD"}))

    loud = made(Extension, madplug_request=louder)
    assert all("LOUD" in p for p in play(replies=lambda r: "A", extensions=[loud]).prompts)


def test_random_choices_do_not_depend_on_what_ran_before():
    one, two = (play(replies=lambda r: "A").debate for _ in range(2))
    assert one.rng("x").random() == two.rng("x").random() != one.rng("y").random()


def test_no_method_is_known_to_the_host():
    """If this fails: a name of a paper, a paradigm or a protocol has slipped into the host."""
    import madplug

    words = re.compile(r"freemad|mallm|madc|reconcile|chateval|dmad|metadebate|\bsom\b|consensus|voting|plurality|"
                       r"conformity|affirmative|moderat\w+ (?!`)", re.IGNORECASE)
    host = Path(madplug.__file__).parent
    for path in (p for p in host.rglob("*.py") if p.name != "hookspecs.py"):
        code = "\n".join(line for line in path.read_text().splitlines() if not re.search(r"`[^`]*`", line))
        assert not words.search(code), (path.name, words.search(code))


@pytest.mark.parametrize(("parts", "error"), [
    ({"styles": [made(PlainStyle, moves=frozenset({"sing"}))]}, "no style of this cell takes the move 'improve'"),
    ({"models": []}, "the cell has none")])
def test_a_turn_needs_a_style_that_takes_it_and_a_model_to_ask(parts, error):
    assert error in play(**parts, expect_failure=True).result.error


def test_two_names_of_one_model_are_asked_one_call_each():
    async def asks_both(self, debate):
        asks = (debate.ask("the same request", model=name, purpose="judge") for name in debate.models)
        return Decision(" ".join(c.text for c in await debate.ask_all(asks)))

    played = play(decision=made(LastRound, at_end=asks_both), models=("one", "two"), agents=1,
                  replies=["A", "first", "second"])
    assert (played.decision.key, played.result.calls) == ("first second", 3)
    assert len(played.requests) == 3


def test_turns_that_are_cancelled_before_they_begin_warn_of_nothing(recwarn):
    async def turn():
        raise AssertionError

    async def main():
        turns = asyncio.create_task(gather_all([turn(), turn()]))
        await asyncio.sleep(0)
        turns.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turns

    asyncio.run(main())
    gc.collect()
    assert not recwarn.list
