"""What a tie leads to, in every decision that lets a run file choose: draws are part of the results of a study.

The draws were recorded once. If one of them changes, studies with `tie = "random"` no longer give what they gave.
"""

import json
import re

import pytest
from tests_support import Letter

from madplug import Sample
from madplug.registry.installed import Registry
from madplug_testing import debate_from, play, wait_for

SEEDS = range(12)
DRAWN = {
    "baselines.most_common": "BBAACCBBCBCC", "chateval.scores": "BAACCBBCBBAA", "eot.consistent": "CBACAACBABCB",
    "freemad.score": "CABCCBCCCBCC", "judge.synthesis": "CACCCACCCACA", "mad.moderated": "CCACAAACCCAC",
    "reconcile.weighted": "AACABBAABBCA", "voting.approval": "BACBACABBCCB", "voting.plurality": "AACCBBACBACC",
    "voting.simple": "BBBBBBAACCAC",
}


def replies(request):
    """Agents that answer C, A and B, each for itself, and judges that say nothing that can be read."""
    if request.purpose == "vote":
        return str(request.agent + 1)
    return "CAB"[request.agent] if request.purpose == "extract" else "hm"


REGISTRY = Registry()


def component(kind, name, **options):
    return REGISTRY.find(kind, name).component(**options)


def decided(name, seed, tie="random"):
    """What is decided on three agents that end on C, A and B, which tie in every count."""
    debate = debate_from("C A B", seed=seed, replies=replies, answers=Letter(), confidence=0.5)
    more = {"fallback": "none"} if name.startswith("voting.") else {}
    return wait_for(component("decision", name, tie=tie, **more).at_end(debate))


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_tie_drawn_at_random_is_drawn_as_ever(name):
    assert "".join(decided(name, seed).key for seed in SEEDS) == DRAWN[name]


@pytest.mark.parametrize("name", sorted(DRAWN))
@pytest.mark.parametrize(("tie", "key"), [("first", "C"), ("lexical", "A"), ("undecided", None)])
def test_the_other_policies_mean_the_same_everywhere(name, tie, key):
    decision = decided(name, 0, tie)
    assert (decision.key, decision.tie, decision.agreed) == (key, True, False)


class Worded(Letter):
    """The answer is the whole last line, and its key the letter at the end."""

    name = "worded"

    def extract(self, debate, turn, text):
        return text.splitlines()[-1] if self.canonical(text, debate.sample) else None


SAID = {0: ["I think\nIt is C", "Sure: B"], 1: ["Perhaps\nI say B", "Still\nAnswer B"], 2: ["Answer: A", "so B"]}


@pytest.mark.parametrize(("name", "options"), [
    ("voting.plurality", {}), ("voting.plurality", {"scope": "latest"}), ("freemad.score", {}),
    ("consensus.unanimity", {"final": "recorded"}), ("consensus.threshold", {"final": "recorded"}),
    ("reconcile.weighted", {"early": False}), ("baselines.most_common", {}), ("eot.consistent", {}),
    ("voting.simple", {}), ("voting.ranked", {"final": "recorded"})])
def test_an_answer_has_the_words_of_the_message_that_first_gave_it(name, options):
    def reply(request):
        if request.purpose == "vote":
            return "1"
        return SAID[request.agent]["[3]" in str(request.messages) or "[2]" in str(request.messages)]

    played = play(decision=component("decision", name, **options), agents=3, rounds=2, replies=reply, answers=Worded())
    assert (played.decision.key, played.decision.answer) == ("B", "I say B")


def test_equal_solutions_take_part_in_a_draw_each_for_itself():
    """Three agents say A, C and A, and each votes for itself: who wins is drawn, not only what."""
    def reply(request):
        return str(request.agent + 1) if request.purpose == "vote" else "ACA"[request.agent]

    def winner(seed):
        debate = debate_from("A C A", seed=seed, replies=reply, answers=Letter())
        return wait_for(component("decision", "voting.simple", tie="random").at_end(debate)).reason

    assert "".join(re.search(r"solution (\d)", winner(seed))[1] for seed in SEEDS) == "333333112212"


def test_equal_models_are_drawn_in_the_order_of_the_run_file():
    equal = {f"Agent {i}": {"Role fulfilment": 3, "Correctness": 3} for i in (1, 2, 3)}

    def reply(request):
        return json.dumps(equal) if request.purpose == "review" else "A"

    def cast(tie, seed=0):
        played = play(casting=component("casting", "metadebate.cast", tie=tie), models=("b", "c", "a"), agents=3,
                      replies=reply, seed=seed)
        return "".join(agent.model for agent in played.debate.agents)

    assert [cast("random", seed) for seed in range(4)] == ["baa", "bba", "bab", "aac"]
    assert [cast("first"), cast("lexical"), cast("undecided")] == ["bbb", "aaa", "bbb"]


def test_two_equally_frequent_verdicts_are_broken_like_any_tie():
    def reply(request):
        first, second = ((8, 7), (7, 8))[request.agent]
        return f"Score of Assistant 1: {first}\nScore of Assistant 2: {second}"

    def verdict(tie, seed=0):
        pair = Sample("q", "which?", metadata={"responses": ["x", "y"]})
        played = play(styles=[component("style", "chateval.referee")], agents=2, sample=pair, replies=reply, seed=seed,
                      decision=component("decision", "chateval.scores", combine="labels", tie=tie))
        return played.decision.key

    assert "".join(verdict("random", seed) for seed in SEEDS) == "221122122112"
    assert [verdict("first"), verdict("lexical"), verdict("undecided")] == ["1", "1", None]
