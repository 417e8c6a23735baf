"""How a debate went. Rows of the little tables are agents, letters are rounds."""

from math import log2

import pytest

from madplug import (
    AnswerFormat,
    Decision,
    DecisionProtocol,
    Message,
    Persona,
    PersonaGenerator,
    Sample,
    Service,
    pictures_in,
)
from madplug.debate.state import change
from madplug.testing import debate_from, play, wait_for
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
from madplug_dynamics.agreement import pairwise_agreement
from madplug_dynamics.information import entropy
from madplug_prompting.finals import FinalOptions, final_answers


def score(metric, rows, references=(), decision=None, **more):
    debate = debate_from(rows, **more)
    change(debate, decision=decision or Decision.undecided("not asked"))
    return wait_for(metric.score(debate, references))


def some(parts, names):
    return {name: parts[name] for name in names.split()}


class TestEntropy:
    @pytest.mark.parametrize(("keys", "bits"), [
        ("AAAAAAAABC", 0.921928), ("AAAAAAAAAB", 0.4690), ("AAAAAAAAAA", 0.0), ("AAAAABBBBB", 1.0), ("ABCD", 2.0),
        ("", 0.0)])
    def test_worked_numbers(self, keys, bits):
        assert entropy(list(keys)) == pytest.approx(bits, abs=5e-5)

    def test_the_paper_s_addends(self):
        addends = (0.257542, 0.332193, 0.332193)
        assert [-p * log2(p) for p in (0.8, 0.1, 0.1)] == pytest.approx(addends, abs=1e-6)
        assert entropy(list("AAAAAAAABC")) == pytest.approx(sum(addends), abs=1e-6)

    def test_one_figure_for_each_round(self):
        assert score(Entropy(), "AB BB CB DB") == {"round_1": 2.0, "round_2": 0.0, "last": 0.0}

    def test_answers_that_could_not_be_read_are_left_out(self):
        assert score(Entropy(), "A A -")["last"] == 0.0
        assert score(Entropy(), "- -")["last"] == 0.0

    def test_or_are_one_more_answer(self):
        assert score(Entropy(none_as_answer=True), "A A - -")["last"] == 1.0
        assert score(Entropy(none_as_answer=True), "- -")["last"] == 0.0

    def test_who_does_not_vote_does_not_count(self):
        people = [Persona("Ada"), Persona("Bob"), Persona("judge", votes=False)]
        assert score(Entropy(), "A A B", personas=people)["last"] == 0.0

    def test_a_debate_without_messages_has_none(self):
        assert score(Entropy(), "") is None


class TestLogLikelihood:
    def test_worked_numbers(self):
        nine = score(LogLikelihood(), " ".join("A" * 9 + "B"), ["A"], Decision("A"))
        assert nine == {
            "log2p": pytest.approx(-0.1520, abs=5e-5), "smoothed": pytest.approx(log2(9.5 / 11)), "skipped": 0.0}
        assert score(LogLikelihood(), "A A A", ["A"], Decision("A"))["log2p"] == 0.0

    def test_a_wrong_group_is_skipped_but_for_the_smoothed_figure(self):
        assert score(LogLikelihood(), "A B B", ["A"], Decision("B")) == {
            "log2p": None, "smoothed": pytest.approx(log2(1.5 / 4)), "skipped": 1.0}

    def test_a_group_without_a_right_answer_is_skipped_even_if_a_judge_found_it(self):
        assert score(LogLikelihood(), "B B", ["A"], Decision("A"))["skipped"] == 1.0

    def test_shares_are_of_answers_that_could_be_read(self):
        assert score(LogLikelihood(), "A B - -", ["A"], Decision("A"))["log2p"] == -1.0

    def test_no_answer_could_be_read(self):
        assert score(LogLikelihood(), "- -", ["A"]) == {"log2p": None, "smoothed": -1.0, "skipped": 1.0}

    def test_without_references_it_does_not_apply(self):
        assert score(LogLikelihood(), "A B", [], Decision("A")) is None

    def test_sums_over_samples_and_tells_what_it_leaves_out(self):
        said = {"nine": "AAAAAAAAAB", "five": "AAAAABBBBB", "none": "BBBBBBBBBB"}
        played = play(sample=[Sample(name, name) for name in said], agents=10, references=["A"],
                      metrics={"log_likelihood": LogLikelihood()},
                      replies=lambda r: said[r.messages[0]["content"].split("\n")[1]][r.agent])
        figures = played.summary["cells"][0]["figures"]["log_likelihood"]
        assert figures["log_likelihood"] == pytest.approx(-1.1520, abs=5e-5)
        assert (figures["debates"], figures["skipped_debates"]) == (3, 1)
        assert figures["pooled_smoothed"] == pytest.approx((log2(9.5 / 11) + log2(5.5 / 11) + log2(0.5 / 11)) / 3)


TABLES = [  # rows, reference, TT TF FT FF, changes, opportunities, conforming, harmful, helpful
    ("AB BB BB", "A", (0, 1, 0, 2), 1, 1, 1, 1, 0),
    ("AB BB BB", "B", (2, 0, 1, 0), 1, 1, 1, 0, 1),
    ("AA BA BB", "A", (1, 0, 1, 1), 1, 1, 0, 0, 0),
    ("ABB BBA CCB", "A", (0, 1, 1, 4), 3, 1, 1, 0, 0),
]


@pytest.mark.parametrize(("rows", "reference", "flips", "changed", "chances", "taken", "harmful", "helpful"), TABLES)
def test_worked_tables(rows, reference, flips, changed, chances, taken, harmful, helpful):
    parts = score(Flips(), rows, [reference])
    assert tuple(parts[kind] for kind in ("TT", "TF", "FT", "FF")) == flips
    assert parts["changed"] == changed
    followed = score(Conformity(), rows, [reference])
    assert some(followed, "opportunities conforming harmful helpful") == {
        "opportunities": chances, "conforming": taken, "harmful": harmful, "helpful": helpful}


class TestFlips:
    def test_change_rates_of_the_worked_tables(self):
        assert score(Flips(), "AB BB BB")["change_rate"] == pytest.approx(1 / 3)
        assert score(Flips(), "ABB BBA CCB")["change_rate"] == 0.5

    def test_the_group_s_flip_of_the_worked_table(self):
        parts = score(Flips(), "AB BB BB", ["A"])
        assert some(parts, "group_TT group_TF group_FT group_FF") == {
            "group_TT": 0, "group_TF": 0, "group_FT": 0, "group_FF": 1}

    def test_rates_are_of_those_that_could_flip(self):
        parts = score(Flips(), "AA AB AB BA", ["A"])
        assert (parts["to_wrong"], parts["to_right"]) == (pytest.approx(2 / 3), 1.0)
        assert score(Flips(), "AA", ["A"])["to_right"] is None

    def test_ends_look_at_first_and_last_only(self):
        parts = score(Flips(), "ABA", ["A"])
        assert some(parts, "TT TF FT FF") == {"TT": 0, "TF": 1, "FT": 1, "FF": 0}
        assert some(parts, "ends_TT ends_TF ends_FT ends_FF") == {
            "ends_TT": 1, "ends_TF": 0, "ends_FT": 0, "ends_FF": 0}

    def test_an_answer_that_could_not_be_read_is_wrong_and_no_change(self):
        assert some(score(Flips(), "A-A -AA", ["A"]), "TT TF FT FF changed") == {
            "TT": 1, "TF": 1, "FT": 2, "FF": 0, "changed": 0}

    def test_a_round_without_a_word_is_passed_over(self):
        debate = debate_from("AAB BBB")
        silent = [m.id for m in debate.transcript.messages if m.agent == 0 and m.round == 2]
        debate.transcript.retract(silent)
        parts = Flips().score(debate, ["A"])
        assert some(parts, "TT TF FT FF changed") == {"TT": 0, "TF": 1, "FT": 0, "FF": 2, "changed": 1}

    def test_relying_on_others_and_being_bullied(self):
        parts = score(Flips(), "BBA BAB AAB BAA ABA", ["A"])
        assert some(parts, "relied_on_other relied_on_other_any bullied_by_other bullied_by_other_any") == {
            "relied_on_other": 2, "relied_on_other_any": 3, "bullied_by_other": 1, "bullied_by_other_any": 2}

    def test_how_many_agents_changed(self):
        assert score(Flips(), "AAB ABA AAA")["agents_changed"] == 2

    def test_without_references_only_change_is_counted(self):
        assert set(score(Flips(), "AB BB")) == {"changed", "change_rate", "agents_changed"}

    def test_one_round_has_no_step(self):
        parts = score(Flips(), "A B", ["A"])
        assert (parts["TF"], parts["change_rate"], parts["to_wrong"]) == (0, None, None)

    def test_the_cell_s_rates_are_over_all_debates_together(self):
        said = {"one": ["AB", "AA"], "two": ["AA", "BB"]}
        played = play(sample=[Sample(name, name) for name in said], agents=2, rounds=2, references=["A"],
                      metrics={"flips": Flips()}, replies=lambda r: _script(said, r))
        assert played.summary["cells"][0]["figures"]["flips"] == {
            "pooled_to_wrong": pytest.approx(1 / 3), "pooled_to_right": 0.0, "pooled_group_to_wrong": 0.5,
            "pooled_group_to_right": None}


def _script(said, request):
    text = request.messages[0]["content"]
    rows = next(rows for name, rows in said.items() if f"\n{name}\n" in text)
    return rows[request.agent][1 if "[0]" in text else 0]


class TestConformity:
    def test_only_what_was_seen_counts(self):
        alone = [(), (), (), (), (), ()]
        assert score(Conformity(), "AB BB BB", seen=alone)["opportunities"] == 0

    def test_part_of_the_peers_can_be_the_majority(self):
        seen = [(), (), (), (1,), (), ()]
        parts = score(Conformity(), "AB BB AA", ["A"], seen=seen)
        assert some(parts, "opportunities conforming rate harmful") == {
            "opportunities": 1, "conforming": 1, "rate": 1.0, "harmful": 1}

    def test_a_tie_among_the_others_is_no_opportunity(self):
        assert score(Conformity(), "AA BB CC")["opportunities"] == 0
        assert score(Conformity(), "AA BB CC")["rate"] is None

    def test_an_agent_without_an_answer_has_nothing_to_give_up(self):
        assert score(Conformity(), "-B BB BB")["opportunities"] == 0

    def test_the_opinion_of_who_does_not_vote_is_no_majority(self):
        people = [Persona("Ada"), Persona("Bob"), Persona("m", votes=False), Persona("n", votes=False)]
        parts = score(Conformity(), "AA AA BB BB", personas=people)
        assert parts["opportunities"] == 0

    def test_older_rounds_do_not_count(self):
        seen = [(), (), (), (), (0, 1)]
        assert score(Conformity(), ["BB", "AAB"], seen=seen)["opportunities"] == 0

    def test_what_a_debate_really_showed_counts(self):
        played = play(agents=3, rounds=2, references=["B"], metrics={"conformity": Conformity()},
                      replies={0: ["A", "B"], 1: ["B", "B"], 2: ["B", "B"]})
        assert played.metrics == {f"conformity.{name}": value for name, value in
                                  {"opportunities": 1, "conforming": 1, "rate": 1, "harmful": 0, "helpful": 1}.items()}
        assert played.summary["cells"][0]["figures"]["conformity"] == {
            "all_opportunities": 1, "all_conforming": 1, "pooled_rate": 1}


class TestAgreement:
    @pytest.mark.parametrize(("rows", "shares"), [
        ("AB BB BB", [1 / 3, 1.0]), ("ABB BBA CCB", [0.0, 1 / 3, 1 / 3]), ("A", [None]), ("- -", [0.0]),
        ("A A -", [1 / 3])])
    def test_share_of_pairs_by_round(self, rows, shares):
        parts = score(Agreement(), rows)
        assert [parts[f"round_{k}"] for k in range(1, len(shares) + 1)] == [
            None if share is None else pytest.approx(share) for share in shares]
        assert parts["last"] == parts[f"round_{len(shares)}"]

    def test_strength_with_and_without_what_could_not_be_read(self):
        parts = score(Agreement(), "A A B -")
        assert (parts["strength"], parts["strength_parsed"], parts["unanimous"]) == (0.5, pytest.approx(2 / 3), 0.0)
        assert score(Agreement(), "- -")["strength_parsed"] is None

    def test_a_round_of_reviews_is_no_disagreement_and_changes_no_mind(self):
        debate = debate_from("A A B")
        for agent in range(3):
            debate.transcript.append(Message(0, 2, 0, agent, "review", "text", answer=""))
        parts = wait_for(Agreement().score(debate, ()))
        assert (parts["last"], parts["strength"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
        assert "round_2" not in parts
        assert wait_for(Entropy().score(debate, ()))["last"] == pytest.approx(0.9183, abs=1e-4)
        assert wait_for(Flips().score(debate, ()))["changed"] == 0

    def test_unanimity_is_of_all_voters(self):
        assert score(Agreement(), "A A A")["unanimous"] == 1.0
        assert score(Agreement(), "A A -")["unanimous"] == 0.0

    def test_unique_first_answers(self):
        assert score(Agreement(), "AB BB CB -B")["unique_first_answers"] == 3

    def test_pairs_of_one(self):
        assert pairwise_agreement(["A"]) is None


class Places(Service):
    """Embeds x, y and z as the worked example's vectors."""

    name = "places"
    known = {"x": [1.0, 0.0], "y": [0.0, 1.0], "z": [1.0, 1.0], "I say x": [1.0, 0.0], "I say y": [1.0, 0.0]}

    async def embed(self, texts):
        return [self.known[text] for text in texts]


class TestDiversity:
    def test_final_answers_are_embedded_by_a_service(self):
        played = play(replies=["x", "y", "z"], metrics={"d": Diversity(embedder="e")}, services={"e": Places()})
        assert played.metrics == {"d.distinct": 1.0, "d.similarity": pytest.approx(0.4714, abs=5e-5)}

    def test_whole_messages_can_be_embedded(self):
        class Saying(AnswerFormat):
            name = "saying"

            def instruction(self, sample):
                return ""

            def canonical(self, text, sample):
                return text[-1]

        played = play(replies=["I say x", "I say y"], agents=2, answers=Saying(), services={"e": Places()},
                      metrics={"d": Diversity(embedder="e", of="content"), "a": Diversity(embedder="e")})
        assert (played.metrics["d.similarity"], played.metrics["a.similarity"]) == (1.0, 0.0)

    def test_fewer_than_two_texts_have_no_similarity(self):
        played = play(replies=["x"], agents=1, metrics={"d": Diversity(embedder="e")}, services={"e": Places()})
        assert played.metrics == {"d.distinct": 1.0, "d.similarity": None}

    def test_without_an_embedder_answers_are_counted(self):
        assert score(Diversity(), "AB BB CB") == {"distinct": pytest.approx(1 / 3)}
        assert score(Diversity(), "A B -") == {"distinct": pytest.approx(2 / 3)}
        assert score(Diversity(), "- -") == {"distinct": 0.0}


class Extracting(DecisionProtocol):
    """Asks every voter for its final answer, and takes the first."""

    name = "extracting"

    async def at_end(self, debate):
        found = await final_answers(debate, FinalOptions(final="ask"))
        return Decision(found[0].key)


class TestDiversityOfVotes:
    def test_the_answers_that_were_decided_on_are_compared(self):
        def say(request):
            return "xyz"[request.agent] if request.purpose == "extract" else "the same words of all"

        played = play(replies=say, decision=Extracting(), metrics={"d": Diversity(embedder="e")},
                      services={"e": Places()})
        assert played.metrics == {"d.distinct": 1.0, "d.similarity": pytest.approx(0.4714, abs=5e-5)}

    def test_what_a_decision_did_not_ask_for_is_taken_from_the_record(self):
        assert score(Diversity(), "AB BB C-") == {"distinct": pytest.approx(2 / 3)}


class TestPersonaDiversity:
    def test_personas_are_compared(self):
        people = [Persona("x"), Persona("y"), Persona("z"), Persona("z", votes=False)]
        named = play(replies=["A"] * 4, personas=[Cast(people)], services={"e": Places()},
                     metrics={"p": PersonaDiversity(embedder="e")})
        assert named.metrics == {"p.distinct": 1.0, "p.similarity": pytest.approx(0.4714, abs=5e-5)}

    def test_equal_personas_count_once(self):
        people = [Persona("Ada", "a physicist"), Persona("Ada", "a physicist"), Persona("Ada", "a poet")]
        assert score(PersonaDiversity(), "A A A", personas=people) == {"distinct": pytest.approx(2 / 3)}


class Cast(PersonaGenerator):
    """These personas."""

    name = "cast"

    def __init__(self, people):
        super().__init__()
        self.people, self.count = people, len(people)

    def generate(self, debate, roster):
        return self.people


def test_rounds_are_counted_with_the_first():
    assert score(Rounds(), "ABB BBB") == 3.0
    assert score(Rounds(), "") == 0.0


def test_retracted_rounds_do_not_count():
    debate = debate_from("AB BB")
    debate.transcript.retract(m.id for m in debate.transcript.of_round(2))
    assert Rounds().score(debate, ()) == 1.0


def test_how_it_ended():
    assert score(Decided(), "A", decision=Decision("A", agreed=True)) == {
        "agreed": 1.0, "answered": 1.0, "fallback": 0.0, "tie": 0.0}
    assert score(Decided(), "A", decision=Decision("A", fallback=True, tie=True)) == {
        "agreed": 0.0, "answered": 1.0, "fallback": 1.0, "tie": 1.0}
    assert score(Decided(), "A", decision=Decision.undecided("no")) == {
        "agreed": 0.0, "answered": 0.0, "fallback": 0.0, "tie": 0.0}


def test_success_rate_of_a_cell_is_a_mean():
    replies = ["A", "A", "A", "A", "B", "C"]
    played = play(sample=[Sample("q1", "?"), Sample("q2", "!")], metrics={"decided": Decided()},
                  replies=lambda r: replies[r.agent + 3 * ("!" in r.messages[0]["content"])])
    assert played.summary["cells"][0]["metrics"]["decided.agreed"]["mean"] == 0.5


def test_answers_of_voters_are_counted_by_question_as_pictures():
    replies = ["A", "A", "B", "C", "C", "C"]
    played = play(sample=[Sample("q1", "?"), Sample("q2", "!")], metrics={"answers": Answers(questions=1)},
                  replies=lambda r: replies[r.agent + 3 * ("!" in r.messages[0]["content"])])
    ((_, picture),) = pictures_in(played.summary["cells"][0]["figures"])
    assert picture.title == "Answers to q1"
    assert picture.rows == ({"answer": "A", "times": 2}, {"answer": "B", "times": 1})
