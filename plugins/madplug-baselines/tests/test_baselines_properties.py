"""What is true of counting samples, whatever they say."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from madplug.testing import debate_from, wait_for
from madplug_baselines import MostCommon

SAMPLES = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=9)


def decide(keys: list[str | None], **options: str):
    return wait_for(MostCommon(**options).at_end(debate_from([[key] for key in keys])))


@given(SAMPLES, st.randoms())
def test_the_order_of_samples_changes_nothing_but_the_first_of_equals(keys, random) -> None:
    shuffled = random.sample(keys, len(keys))
    before, after = decide(keys, tie="lexical"), decide(shuffled, tie="lexical")
    assert (before.key, before.scores, before.tie) == (after.key, after.scores, after.tie)
    assert decide(keys).key == decide(shuffled).key or decide(keys).tie


@given(SAMPLES)
def test_other_names_for_the_answers_give_the_other_name(keys) -> None:
    names = {"A": "z", "B": "y", "C": "x", None: None}
    assert decide([names[key] for key in keys]).key == names[decide(keys).key]


@given(SAMPLES)
def test_a_tie_is_reported_as_a_tie_and_is_no_agreement(keys) -> None:
    counts = Counter(key for key in keys if key)
    leaders = [key for key in counts if counts[key] == max(counts.values())]
    decision = decide(keys)
    assert decision.tie == (len(leaders) > 1)
    assert decision.agreed == (len(leaders) == 1 and counts[leaders[0]] > keys.count(None))
    assert decision.key in leaders or not leaders
