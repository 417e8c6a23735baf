"""An agent whose model was right before has more to say."""

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


def run(**options):
    return play(replies=replies, models=["good", "bad"], agents=3, dataset=Split(), decision=Weighted(**options))


def test_agents_weigh_as_much_as_their_models_were_right():
    played = run()
    assert played.decision.scores == {"A": 1.5, "B": 0.25}
    assert [dict(v.weights) for v in played.decision.votes] == [{"A": 0.75}, {"B": 0.25}, {"A": 0.75}]


def test_the_calibration_is_kept_with_the_study_and_its_use_of_references_recorded():
    played = run(questions=2)
    assert played.store.fact("kept.record.accuracy") == {"good": 1.0, "bad": 0.0}
    assert played.store.fact("trained.play") == {"train": 2}
    assert played.decision.scores == {"A": 2.0, "B": 0.05}


class TestWeighted(DecisionContract):
    component = Weighted
