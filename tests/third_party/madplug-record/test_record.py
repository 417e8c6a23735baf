"""An agent whose model was right before has more to say."""

import pytest

from madplug import Dataset, Sample
from madplug_record import Weighted
from madplug_testing import play
from madplug_testing.contracts import DecisionContract


class Split(Dataset):
    """One question to debate, four to calibrate on."""

    name = "split"

    def samples(self, split=None):
        if split is None:
            yield Sample("q", "debate this"), ("A",)
        for i in range(4 if split == "train" else 0):
            yield Sample(f"t{i}", f"calibrate {i}"), ("A",)


def replies(request):
    """The model `good` is right in three of four calibrations, `bad` in one; they then disagree."""
    if request.purpose == "calibrate":
        right = ("0", "1", "2") if request.model == "good" else ("3",)
        return "A" if request.messages[0]["content"].splitlines()[0].endswith(right) else "B"
    return "A" if request.model == "good" else "B"


@pytest.mark.parametrize(("questions", "good", "bad"), [(4, 0.75, 0.25), (2, 1.0, 0.05)])
def test_agents_weigh_as_much_as_their_models_were_right_and_the_calibration_is_kept(questions, good, bad):
    played = play(replies=replies, models=["good", "bad"], agents=3, dataset=Split(),
                  decision=Weighted(questions=questions))
    assert [dict(v.weights) for v in played.decision.votes] == [{"A": good}, {"B": bad}, {"A": good}]
    assert played.decision.scores == {"A": 2 * good, "B": bad}
    assert played.store.fact("kept.record.accuracy") == {"good": good, "bad": bad if questions == 4 else 0.0}
    assert played.store.fact("trained.play") == {"train": questions}


class TestWeighted(DecisionContract):
    component = Weighted
