"""What a message says of itself: its calls, its model, what the agent saw altered, and its turn's data."""

from dataclasses import FrozenInstanceError, replace

import pytest
from tests_support import made

from madplug import Extension, Reply, Style, Turn, hookimpl
from madplug.store import MemoryStore
from madplug_testing import AnyMove, LastRound, PlainStyle, SpeakAll, StrippedText, play


class Twice(Style):
    """Asks twice, the second time another model."""

    name = "twice"
    moves = AnyMove()

    async def respond(self, debate, turn, view):
        first = await debate.ask(f"first {debate.round}", purpose="discuss", agent=turn.agent)
        await debate.ask(f"second {debate.round}", purpose="discuss", model="other", agent=turn.agent)
        return Reply(first.text)


def test_a_message_names_its_calls_and_the_model_that_answered_last():
    store = MemoryStore()
    played = play(replies=lambda r: "A", styles=[Twice()], agents=2, rounds=2, models=["model", "other"], store=store)
    rows = {row["key"]: row for row in store.calls()}
    for message in played.messages:
        assert message.model == "other"
        assert [rows[key]["model"] for key in message.calls] == [played.result.agents[message.agent].model, "other"]
        assert {(rows[key]["round"], rows[key]["agent"]) for key in message.calls} == {(message.round, message.agent)}


def test_what_was_shown_otherwise_than_it_stands_on_record_is_recorded():
    @hookimpl(wrapper=True)
    def capitals(self, debate, turn):
        view = yield
        return [replace(m, content=m.content.upper()) for m in view] if turn.agent.id == 0 else view

    played = play(replies=lambda r: "a", agents=2, rounds=2, extensions=[made(Extension, madplug_view=capitals)])
    assert [(m.seen, m.altered) for m in played.messages] == [((), ()), ((), ()), ((0, 1), (0, 1)), ((0, 1), ())]


def test_what_a_turn_carries_goes_into_the_message_it_causes():
    briefed = made(SpeakAll, waves=lambda self, debate: [
        [Turn(agent, data={"briefed": {"nth": agent.id}}) for agent in debate.agents]])
    noting = made(Style, moves=AnyMove(), respond=lambda self, debate, turn, view: Reply(
        "A", data={"noting": turn.data["briefed"]["nth"] + 10}))
    played = play(turns=briefed, styles=[noting], agents=2)
    assert [dict(m.data) for m in played.messages] == [{"briefed": {"nth": i}, "noting": i + 10} for i in (0, 1)]


def test_an_agent_equals_its_id_and_nothing_else_that_is_a_number():
    agents = play(replies=lambda r: "A", agents=2).result.agents
    assert agents[1] == 1
    assert agents[1] != 0
    assert agents[0] != agents[1]
    assert {agents[0]: "x"}[agents[0]] == "x"


def test_the_answer_is_the_text_that_first_gave_the_key():
    spellings = ("1.5 km", "1.5 KM", " 1.5 km ")
    folded = made(Style, moves=AnyMove(),
                  respond=lambda self, debate, turn, view: Reply("x", answer=spellings[turn.agent.id]))
    loose = made(StrippedText, canonical=lambda self, text, sample: text.strip().lower().replace(" ", "") or None)
    played = play(styles=[folded], agents=3, answers=loose)
    assert (played.decision.key, played.decision.answer) == ("1.5km", "1.5 km")


def test_a_decision_cannot_write_into_the_record():
    def forge(self, debate):
        assert not any(hasattr(debate, name) for name in ("record", "tell", "send", "respond", "result", "stored"))
        for name in ("agents", "round", "transcript", "decision", "rounds", "sample"):
            with pytest.raises(FrozenInstanceError):
                setattr(debate, name, None)
        return LastRound().at_end(debate)

    assert play(replies=lambda r: "A", decision=made(LastRound, at_end=forge)).decision.key == "A"


@pytest.mark.parametrize(("reply", "answer", "asked"), [
    (Reply("A first, then B", answers=False), "", False),
    (Reply("A", answer="B", answers=False), "", False),
    (Reply("A", answer=""), None, True),
    (Reply("A"), "A", True),
])
def test_a_turn_that_gives_no_answer_by_design_is_told_from_one_whose_answer_cannot_be_read(reply, answer, asked):
    given = made(PlainStyle, respond=lambda self, debate, turn, view: reply)
    message = play(styles=[given], agents=1).messages[0]
    assert (message.answer, message.key, message.answers) == (answer, answer or None, asked)
