"""Ensemble refinement, Medprompt and best of N: what is asked, how it is sampled, and what counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from madplug import Completion, Dataset, Request, Sample, Service
from madplug_answers import Choice
from madplug_baselines import BestOfN, MostCommon, Refine, Refinement, Samples, Shuffled
from madplug_testing import Played, play

QUESTION = Sample("q1", "Which?", ("red", "green", "blue", "black"))


def refined(replies: list[str], **options: int) -> Played:
    return play(styles=[Refine(examples="An example.")], turns=Refinement(**options), agents=1, replies=replies,
                decision=MostCommon(moves=("improve",)))


def test_a_refinement_reads_every_sample_as_an_earlier_message_and_no_example_and_is_sampled_cooler() -> None:
    played = refined(["one", "two", "three", "two"])
    assert [len(r.messages) for r in played.requests] == [1, 1, 1, 3]
    assert [r.messages[0]["content"].startswith("An example.") for r in played.requests] == [True] * 3 + [False]
    assert played.requests[-1].messages[1] == {"role": "assistant", "content": "one\n\ntwo\n\nthree"}
    assert [r.params for r in played.requests] == [{"temperature": 0.7, "top_p": 0.5}] * 3 + [
        {"temperature": 0.5, "top_p": 0.5}]
    assert Refine(temperature=0.1).options.sampling(0.2)["temperature"] == 0


@pytest.mark.parametrize(("refinements", "replies", "expected"), [
    (1, "AABC", "C"), (3, "AAABCC", "C"), (2, "AAABC", "B"), (0, "ABB", "B")])
def test_the_most_common_refinement_counts_or_sample_where_there_is_none(
        refinements: int, replies: str, expected: str) -> None:
    played = refined(list(replies), refinements=refinements)
    assert (played.decision.key, played.result.calls) == (expected, len(replies))


def test_a_letter_is_mapped_back_to_the_choice_that_it_stood_for() -> None:
    def reply(request: Request) -> str:
        line = next(line for line in str(request.messages[0]["content"]).split("\n") if line.endswith(") blue"))
        return f"Final answer: {line[1]}"

    played = play(styles=[Shuffled()], turns=Samples(), decision=MostCommon(), agents=5, sample=QUESTION,
                  answers=Choice(), replies=reply)
    assert {m.key for m in played.messages} == {"C"}
    assert len({str(r.messages) for r in played.requests}) > 1
    assert {str(r.params) for r in played.requests} == {"{'temperature': 0.5, 'top_p': 0.5}"}


def test_choices_with_one_text_are_told_apart_and_no_answer_stays_none() -> None:
    same = Sample("q1", "Which?", ("same", "same"))
    played = play(styles=[Shuffled()], turns=Samples(), agents=6, sample=same, answers=Choice(),
                  replies=["Final answer: A"] * 5 + ["I cannot say."])
    orders = [m.data["baselines"]["order"] for m in played.messages]
    assert [m.key for m in played.messages] == ["AB"[order[0]] for order in orders[:5]] + [None]
    assert len({str(order) for order in orders}) == 2


def test_a_question_without_choices_is_asked_as_it_is() -> None:
    played = play(styles=[Shuffled()], turns=Samples(), decision=MostCommon(), agents=2, replies=["4", "4"])
    assert (played.decision.key, played.prompts[0]) == (
        "4", "the question\n\nThink step by step.\nReply with the answer and nothing else.")


def graded(replies: str, scores: list[str], **options: str) -> Played:
    grades = iter(scores)
    said = iter(replies)
    return play(turns=Samples(), decision=BestOfN(**options), agents=len(replies),
                replies=lambda r: next(grades) if r.purpose == "grade" else next(said))


@pytest.mark.parametrize(("scores", "key", "tie", "agreed", "fallback"), [
    (["Score: 2", "score: 9.5", "Score: 1, no: Score: 3"], "B", False, True, False),
    (["Score: 5", "Score: 5", "Score: 1"], "A", True, False, False),
    (["none", "Score: 0", "?"], "B", False, True, False),
    (["Score: 99", "Score: 10", "-"], "A", True, False, False),
    (["?", "?", "?"], "A", False, False, True)])
def test_the_sample_with_the_highest_score_wins(
        scores: list[str], key: str, tie: bool, agreed: bool, fallback: bool) -> None:
    decision = graded("ABC", scores).decision
    assert (decision.key, decision.tie, decision.agreed, decision.fallback) == (key, tie, agreed, fallback)


def test_the_score_of_an_answer_is_that_of_its_best_sample() -> None:
    decision = graded("ABAB", ["Score: 2", "Score: 5", "Score: 7", "?"]).decision
    assert decision.scores == {"A": 7.0, "B": 5.0}
    assert [vote.weights for vote in decision.votes] == [{"A": 2.0}, {"B": 5.0}, {"A": 7.0}, {}]


def test_the_most_probable_sample_wins_without_a_further_call() -> None:
    logs = iter([(-0.5, -0.1), (-0.2,), (-0.1, -0.3), None])
    played = play(turns=Samples(), decision=BestOfN(by="logprobs"), agents=4,
                  replies=lambda r: Completion("ABCD"[r.agent or 0], logprobs=next(logs)))
    assert [r.params for r in played.requests] == [{"logprobs": True}] * 4
    assert [m.data.get("prompting", {}).get("tokens") for m in played.messages] == [2, 1, 2, None]
    assert (played.decision.key, played.decision.tie) == ("B", True)
    assert played.decision.reason == "1 of 4 samples without a score"


class Letters(Service):
    """Embeds a text by whether it has these letters."""

    name = "letters"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(letter in text) for letter in "xyz"] for text in texts]


class Split(Dataset):
    """One question, and a training split with another set of them."""

    name = "split"

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The reference of a training question is its text."""
        for text in ("x y", "x", "z", "wrong x y") if split else ("x y ?",):
            yield Sample(text, text), (text,)


def test_the_nearest_training_questions_that_the_model_solves_stand_before_the_task() -> None:
    def reply(request: Request) -> str:
        asked = str(request.messages[0]["content"]).split("\n")[0]
        return asked.removeprefix("wrong ") if request.purpose == "example" else "x y ?"

    played = play(styles=[Shuffled(neighbours=2, embedder="near", trigger="", example="{question}: {solution}")],
                  turns=Samples(), agents=1, dataset=Split(), services={"near": Letters()}, replies=reply)
    assert [(r.purpose, r.params.get("temperature")) for r in played.requests] == [("example", 0)] * 4 + [
        ("discuss", 0.5)]
    assert played.prompts[-1] == "x: x\n\nx y: x y\n\nx y ?\n\nReply with the answer and nothing else."
    assert played.result.calls == 1


def test_neighbours_take_an_embedder() -> None:
    for options in ({"neighbours": 5}, {"embedder": "near"}):
        [problem] = Shuffled(**options).check(None)  # type: ignore[arg-type]
        assert "belong together" in problem
