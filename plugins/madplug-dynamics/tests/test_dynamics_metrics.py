"""How a debate went. Rows of the little tables are agents, letters are rounds."""

from math import log2

import pytest
from tests_support import Cast, Letter

from madplug import Decision, DecisionProtocol, Message, Persona, Sample, Service, pictures_in
from madplug.debate.state import change
from madplug_dynamics import (
    Agreement,
    Answers,
    Conformity,
    Decided,
    Diversity,
    Entropy,
    Flips,
    LogLikelihood,
    PersonaDiversity,
    Rounds,
)
from madplug_dynamics.information import entropy
from madplug_prompting.finals import FinalOptions, final_answers
from madplug_testing import debate_from, play, transcript_from, wait_for


def score(metric, rows, references=(), decision=None, **more):
    debate = debate_from(rows, **more)
    change(debate, decision=decision or Decision.undecided("not asked"))
    return wait_for(metric.score(debate, references))


@pytest.mark.parametrize(("keys", "bits"), [
    ("AAAAAAAABC", 0.921928), ("AAAAAAAAAB", 0.4690), ("AAAAAAAAAA", 0.0), ("AAAAABBBBB", 1.0), ("ABCD", 2.0)])
def test_entropies_have_the_worked_values(keys, bits):
    assert entropy(list(keys)) == pytest.approx(bits, abs=5e-5)
    assert entropy([]) is entropy([None]) is None


JUDGE = [Persona("Ada"), Persona("Bob"), Persona("judge", votes=False)]
PHYSICISTS = [Persona("Ada", "a physicist"), Persona("Ada", "a physicist"), Persona("Ada", "a poet")]
MODERATORS = [Persona("Ada"), Persona("Bob"), Persona("m", votes=False), Persona("n", votes=False)]
RIGHT = {"decision": Decision("A")}


@pytest.mark.parametrize(("metric", "rows", "references", "more", "figures"), [
    # entropy: one figure for each round; what could not be read is left out, or one more answer
    (Entropy(), "AB BB CB DB", "", {}, {"round_1": 2, "round_2": 0, "last": 0}),
    (Entropy(), "A A -", "", {}, {"last": 0}), (Entropy(), "A- A-", "", {}, {"round_1": 0, "last": None}),
    (Entropy(none_as_answer=True), "A A - -", "", {}, {"last": 1}),
    (Entropy(none_as_answer=True), "- -", "", {}, {"last": 0}),
    (Entropy(), "A A B", "", {"personas": JUDGE}, {"last": 0}),
    # log likelihood: shares are of what could be read; a group that is wrong, or without a right answer though a judge
    # found it, is skipped but for the smoothed figure
    (LogLikelihood(), " ".join("A" * 9 + "B"), "A", RIGHT,
     {"log2p": -0.1520, "smoothed": log2(9.5 / 11), "skipped": 0}),
    (LogLikelihood(), "A A A", "A", RIGHT, {"log2p": 0}), (LogLikelihood(), "A B - -", "A", RIGHT, {"log2p": -1}),
    (LogLikelihood(), "A B B", "A", {"decision": Decision("B")},
     {"log2p": None, "smoothed": log2(1.5 / 4), "skipped": 1}),
    (LogLikelihood(), "B B", "A", RIGHT, {"skipped": 1}),
    (LogLikelihood(), "- -", "A", {}, {"log2p": None, "smoothed": -1, "skipped": 1}),
    # flips of agents and of the group, and rates of those that could flip; ends look at first and last only
    (Flips(), "AB BB BB", "A", {}, {"TT": 0, "TF": 1, "FT": 0, "FF": 2, "changed": 1, "change_rate": 1 / 3,
                                    "group_TT": 0, "group_TF": 0, "group_FT": 0, "group_FF": 1}),
    (Flips(), "AB BB BB", "B", {}, {"TT": 2, "TF": 0, "FT": 1, "FF": 0, "changed": 1}),
    (Flips(), "AA BA BB", "A", {}, {"TT": 1, "TF": 0, "FT": 1, "FF": 1, "changed": 1}),
    (Flips(), "ABB BBA CCB", "A", {}, {"TT": 0, "TF": 1, "FT": 1, "FF": 4, "changed": 3, "change_rate": 0.5}),
    (Flips(), "AA AB AB BA", "A", {}, {"to_wrong": 2 / 3, "to_right": 1}), (Flips(), "AA", "A", {}, {"to_right": None}),
    (Flips(), "ABA", "A", {}, {"TT": 0, "TF": 1, "FT": 1, "FF": 0, "ends_TT": 1, "ends_TF": 0, "ends_FT": 0,
                               "ends_FF": 0}),
    # what could not be read is wrong and no change
    (Flips(), "A-A -AA", "A", {}, {"TT": 1, "TF": 1, "FT": 2, "FF": 0, "changed": 0}),
    (Flips(), "BBA BAB AAB BAA ABA", "A", {}, {"relied_on_other": 2, "relied_on_other_any": 3, "bullied_by_other": 1,
                                               "bullied_by_other_any": 2}),
    (Flips(), "AAB ABA AAA", "", {}, {"agents_changed": 2}),
    (Flips(), "A B", "A", {}, {"TF": 0, "change_rate": None, "to_wrong": None}),  # one round has no step
    *((Conformity(), rows, reference, {}, dict(zip(
        ("opportunities", "conforming", "harmful", "helpful"), counted, strict=True))) for rows, reference, counted in (
        ("AB BB BB", "A", (1, 1, 1, 0)), ("AB BB BB", "B", (1, 1, 0, 1)), ("AA BA BB", "A", (1, 0, 0, 0)),
        ("ABB BBA CCB", "A", (1, 1, 0, 0)))),
    # conformity: only what was seen in the round before counts, of which a part can be the majority
    (Conformity(), "AB BB BB", "", {"seen": [()] * 6}, {"opportunities": 0}),
    (Conformity(), ["BB", "AAB"], "", {"seen": [(), (), (), (), (0, 1)]}, {"opportunities": 0}),
    (Conformity(), "AB BB AA", "A", {"seen": [(), (), (), (1,), (), ()]},
     {"opportunities": 1, "conforming": 1, "rate": 1, "harmful": 1}),
    # nor is there an opportunity in a tie, for who has no answer to give up, or in opinions of who does not vote
    (Conformity(), "AA BB CC", "", {}, {"opportunities": 0, "rate": None}),
    (Conformity(), "-B BB BB", "", {}, {"opportunities": 0}),
    (Conformity(), "AA AA BB BB", "", {"personas": MODERATORS}, {"opportunities": 0}),
    # agreement: shares of pairs by round, strength with and without what could not be read, unanimity of all voters
    (Agreement(), "AB BB BB", "", {}, {"round_1": 1 / 3, "round_2": 1, "last": 1}),
    (Agreement(), "ABB BBA CCB", "", {}, {"round_1": 0, "round_2": 1 / 3, "last": 1 / 3}),
    (Agreement(), "A", "", {}, {"last": None}), (Agreement(), "A A -", "", {}, {"last": 1 / 3, "unanimous": 0}),
    (Agreement(), "A A B -", "", {}, {"strength": 0.5, "strength_parsed": 2 / 3, "unanimous": 0}),
    (Agreement(), "- -", "", {}, {"last": 0, "strength_parsed": None}),
    (Agreement(), "A A A", "", {}, {"unanimous": 1}),
    (Agreement(), "AB BB CB -B", "", {}, {"unique_first_answers": 3}),
    # without an embedder the answers that a decision did not ask for, and equal personas, are counted
    *((Diversity(), rows, "", {}, {"distinct": share}) for rows, share in (
        ("AB BB CB", 1 / 3), ("A B -", 2 / 3), ("- -", 0), ("AB BB C-", 2 / 3))),
    (PersonaDiversity(), "A A A", "", {"personas": PHYSICISTS}, {"distinct": 2 / 3})])
def test_figures_of_small_debates(metric, rows, references, more, figures):
    found = score(metric, rows, references, **more)
    assert {name: found[name] for name in figures} == pytest.approx(figures, abs=5e-5)


@pytest.mark.parametrize(("metric", "rows", "figures"), [
    (LogLikelihood(), "A B", None), (Entropy(), "", None), (Diversity(), "A B", {"distinct"}),
    (Flips(), "AB BB", {"changed", "change_rate", "agents_changed"})])
def test_without_references_messages_or_an_embedder_a_metric_tells_less_or_nothing(metric, rows, figures):
    found = score(metric, rows)
    assert found is None if figures is None else set(found) == figures


def test_a_log_likelihood_sums_over_samples_and_tells_what_it_leaves_out():
    said = {"nine": "AAAAAAAAAB", "five": "AAAAABBBBB", "none": "BBBBBBBBBB"}
    played = play(sample=[Sample(name, name) for name in said], agents=10, references=["A"],
                  metrics={"log_likelihood": LogLikelihood()},
                  replies=lambda r: said[r.messages[0]["content"].split("\n")[1]][r.agent])
    figures = played.summary["cells"][0]["figures"]["log_likelihood"]
    assert figures["log_likelihood"] == pytest.approx(-1.1520, abs=5e-5)
    assert (figures["debates"], figures["skipped_debates"]) == (3, 1)
    assert figures["pooled_smoothed"] == pytest.approx((log2(9.5 / 11) + log2(5.5 / 11) + log2(0.5 / 11)) / 3)


def test_a_round_without_a_word_is_passed_over():
    debate = debate_from("AAB BBB")
    silent = [m.id for m in debate.transcript.messages if m.agent == 0 and m.round == 2]
    debate.transcript.retract(silent)
    parts = Flips().score(debate, ["A"])
    assert [parts[name] for name in ("TT", "TF", "FT", "FF", "changed")] == [0, 1, 0, 2, 1]


def test_rates_of_flips_in_a_cell_are_over_all_debates_together():
    said = {"one": ["AB", "AA"], "two": ["AA", "BB"]}

    def reply(request):
        text = request.messages[0]["content"]
        return next(rows for name, rows in said.items() if f"\n{name}\n" in text)[request.agent]["[0]" in text]

    played = play(sample=[Sample(name, name) for name in said], agents=2, rounds=2, references=["A"],
                  metrics={"flips": Flips()}, replies=reply)
    assert played.summary["cells"][0]["figures"]["flips"] == {
        "pooled_to_wrong": pytest.approx(1 / 3), "pooled_to_right": 0.0, "pooled_group_to_wrong": 0.5,
        "pooled_group_to_right": None}


def test_conformity_is_to_what_a_debate_really_showed():
    played = play(agents=3, rounds=2, references=["B"], metrics={"conformity": Conformity()},
                  replies={0: ["A", "B"], 1: ["B", "B"], 2: ["B", "B"]})
    assert played.metrics == {f"conformity.{name}": value for name, value in
                              {"opportunities": 1, "conforming": 1, "rate": 1, "harmful": 0, "helpful": 1}.items()}
    assert played.summary["cells"][0]["figures"]["conformity"] == {
        "all_opportunities": 1, "all_conforming": 1, "pooled_rate": 1}


def test_a_round_of_reviews_is_no_disagreement_and_changes_no_mind_nor_do_voters_who_were_not_asked():
    debate = debate_from("A A B")
    for agent in range(3):
        debate.transcript.append(Message(0, 2, 0, agent, "review", "text", answer=""))
    parts = wait_for(Agreement().score(debate, ()))
    assert (parts["last"], parts["strength"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert "round_2" not in parts
    assert wait_for(Entropy().score(debate, ()))["last"] == pytest.approx(0.9183, abs=1e-4)
    assert wait_for(Flips().score(debate, ()))["changed"] == 0
    parts = wait_for(Agreement().score(debate_from("A A B B", transcript=transcript_from("A A")), ()))
    assert (parts["last"], parts["unanimous"]) == (1, 1)


class Places(Service):
    """Embeds X, Y and Z as the worked example's vectors."""

    name = "places"
    known = {"X": [1.0, 0.0], "Y": [0.0, 1.0], "Z": [1.0, 1.0], "I say X": [1.0, 0.0], "I say Y": [1.0, 0.0]}

    async def embed(self, texts):
        return [self.known[text] for text in texts]


class Extracting(DecisionProtocol):
    """Asks every voter for its final answer, and takes the first."""

    name = "extracting"

    async def at_end(self, debate):
        found = await final_answers(debate, FinalOptions(final="ask"))
        return Decision(found[0].key)


TWO = {"replies": ["I say X", "I say Y"], "agents": 2, "answers": Letter()}
PEOPLE = [Persona("X"), Persona("Y"), Persona("Z"), Persona("Z", votes=False)]


@pytest.mark.parametrize(("debate", "metric", "similarity"), [
    ({"replies": ["X", "Y", "Z"]}, Diversity(embedder="e"), pytest.approx(0.4714, abs=5e-5)),  # of final answers
    ({"replies": lambda r: "XYZ"[r.agent] if r.purpose == "extract" else "the same words of all",
      "decision": Extracting()}, Diversity(embedder="e"), pytest.approx(0.4714, abs=5e-5)),  # that a decision asked for
    (TWO, Diversity(embedder="e"), 0.0), (TWO, Diversity(embedder="e", of="content"), 1.0),  # of whole messages
    ({"replies": ["X"], "agents": 1}, Diversity(embedder="e"), None),
    ({"replies": ["A"] * 4, "personas": [Cast(*PEOPLE)]}, PersonaDiversity(embedder="e"),
     pytest.approx(0.4714, abs=5e-5))])
def test_texts_are_compared_as_a_service_embeds_them(debate, metric, similarity):
    played = play(**debate, metrics={"d": metric}, services={"e": Places()})
    assert played.metrics == {"d.distinct": 1.0, "d.similarity": similarity}


def test_rounds_are_counted_with_the_first_and_without_retracted_ones():
    debate = debate_from("AB BB")
    debate.transcript.retract(m.id for m in debate.transcript.of_round(2))
    assert [score(Rounds(), "ABB BBB"), score(Rounds(), ""), Rounds().score(debate, ())] == [3.0, 0.0, 1.0]


@pytest.mark.parametrize(("decision", "said"), [
    (Decision("A", agreed=True), "agreed answered"), (Decision("A", fallback=True, tie=True), "answered fallback tie"),
    (Decision.undecided("no"), "")])
def test_how_it_ended(decision, said):
    assert score(Decided(), "A", decision=decision) == {
        name: float(name in said) for name in ("agreed", "answered", "fallback", "tie")}


def test_answers_of_voters_are_counted_by_question_as_pictures():
    replies = ["A", "A", "B", "C", "C", "C"]
    played = play(sample=[Sample("q1", "?"), Sample("q2", "!")], metrics={"answers": Answers(questions=1)},
                  replies=lambda r: replies[r.agent + 3 * ("!" in r.messages[0]["content"])])
    ((_, picture),) = pictures_in(played.summary["cells"][0]["figures"])
    assert picture.title == "Answers to q1"
    assert picture.rows == ({"answer": "A", "times": 2}, {"answer": "B", "times": 1})
