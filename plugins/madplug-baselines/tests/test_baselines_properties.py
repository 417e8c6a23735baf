"""What is true of counting samples, whatever they say."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from madplug_baselines import MostCommon
from madplug_testing import debate_from, wait_for

SAMPLES = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=9)


def decide(keys: list[str | None], **options: str):
    return wait_for(MostCommon(**options).at_end(debate_from([[key] for key in keys])))


@given(SAMPLES)
def test_a_tie_is_reported_as_a_tie_and_is_no_agreement(keys) -> None:
    counts = Counter(key for key in keys if key)
    leaders = [key for key in counts if counts[key] == max(counts.values())]
    decision = decide(keys)
    assert decision.tie == (len(leaders) > 1)
    assert decision.agreed == (len(leaders) == 1 and counts[leaders[0]] > keys.count(None))
    assert decision.key in leaders or not leaders
