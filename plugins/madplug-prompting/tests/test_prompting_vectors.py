"""How alike embeddings are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madplug_prompting.vectors import cosine, mean_cosine

VECTORS = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3)


def test_cosines_of_the_worked_example():
    assert [cosine((1, 0), (0, 1)), cosine((1, 0), (1, 1))] == [0.0, pytest.approx(math.sqrt(0.5))]
    assert mean_cosine([(1, 0), (0, 1), (1, 1)]) == pytest.approx(0.4714, abs=5e-5)
    assert cosine((0, 0), (1, 0)) == 0.0
    with pytest.raises(ValueError, match="longer"):
        cosine((1, 0), (1, 0, 0))


@given(VECTORS, VECTORS)
def test_a_cosine_is_symmetric_and_between_minus_one_and_one(a, b):
    assert cosine(a, b) == cosine(b, a)
    assert -1 - 1e-9 <= cosine(a, b) <= 1 + 1e-9
