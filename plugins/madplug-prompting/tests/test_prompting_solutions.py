"""Which solution is on the table, as far as an agent knows."""

from dataclasses import replace

from madplug import Message, Turn, Visibility
from madplug.transcript import Transcript
from madplug_prompting.solutions import current_solution, is_opening
from madplug_testing import debate_from


class Window(Visibility):
    """The messages of the current round and of so many before it."""

    name = "window"

    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def view(self, debate, turn):
        return tuple(m for m in debate.transcript.messages if m.round >= debate.round - self.rounds)


def said(*rows, about=None):
    """A message for each (round, agent, move, answer, agreement), whose author saw the last two rounds."""
    made = []
    for round, agent, move, answer, agreement in rows:
        seen = tuple(m.id for m in made if m.round >= round - 2)
        data = {"styles": {"about": about}} if agreement and about is not None else {}
        made.append(Message(len(made), round, agent, agent, move, "text", answer=answer, key=answer,
                            agreement=agreement, seen=seen, data=data))
    return made


def found(messages, agent=0, round=None, window=2, view=None):
    now = (messages[-1].round if messages else 0) + 1 if round is None else round
    debate = debate_from([[None]] * 3, transcript=Transcript(messages), round=now, visibility=Window(window))
    turn = Turn(debate.agents[agent])
    return current_solution(debate, turn, debate.cell.visibility.view(debate, turn) if view is None else view)


def test_it_is_the_latest_draft_or_disagreeing_improvement():
    messages = said((1, 0, "draft", "1", None), (1, 1, "improve", "2", False))
    assert found(messages) == messages[1]
    assert found(messages[:1]) == messages[0]


def test_an_agreement_has_the_solution_it_is_about_or_stands_for_one_that_an_agent_never_saw():
    messages = said((1, 0, "draft", "1", None), (1, 1, "improve", "1", True), about=0)
    assert found(messages) == messages[0]
    assert found(messages, agent=2, round=1, view=[messages[1]]).answer == "1"


def test_feedback_and_what_could_not_be_read_are_no_solutions():
    messages = said((1, 0, "draft", "1", None), (1, 1, "feedback", None, False), (1, 2, "improve", None, False))
    assert found(messages) == messages[0]
    assert found(said((1, 0, "moderate", "4", None))) is None


def test_a_solution_outlives_the_window():
    rounds = [(n, agent, "improve", None, True) for n in range(2, 9) for agent in (0, 1, 2)]
    messages = said((1, 0, "improve", "1", False), *((1, agent, "improve", None, True) for agent in (1, 2)), *rounds)
    assert all(found(messages, agent, window=window) == messages[0] for agent in range(3) for window in range(3))


def test_nothing_is_known_before_the_first_message_and_in_a_blind_turn():
    assert found([]) is None
    messages = said((1, 0, "improve", "1", False))
    assert found(messages, agent=1, round=1, view=[]) is None
    assert found(messages, agent=0, round=2, view=[]) is None
    debate = debate_from([[None]], transcript=Transcript(messages), round=2, visibility=Window(0))
    assert not is_opening(debate, Turn(debate.agents[0]), [])  # it knows what it said itself


def test_what_an_agent_was_shown_altered_or_what_was_retracted_is_not_known():
    messages = said((1, 0, "improve", "1", False), (1, 1, "feedback", None, False))
    assert found([messages[0], replace(messages[1], altered=(0,))], agent=1, window=0) is None
    assert found([replace(messages[0], retracted=True), messages[1]], agent=1, window=0) is None
