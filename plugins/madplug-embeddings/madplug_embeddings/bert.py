"""A BERT encoder in NumPy: enough for the sentence models, without a framework of gigabytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

from madplug import ComponentError

Array = NDArray[np.float32]
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


class Bert:
    """A sentence model in a folder as sentence-transformers writes it."""

    def __init__(self, place: Path) -> None:
        self._config = _read(place / "config.json")
        family, act = self._config.get("model_type"), self._config.get("hidden_act", "gelu")
        if family != "bert" or act != "gelu":
            raise ComponentError(f"the model in {place} is of the family '{family}' with '{act}'; embeddings.sentences "
                                 "computes 'bert' with 'gelu'")
        weights = load_file(place / "model.safetensors")
        self._weights = {name.removeprefix("bert."): value.astype(np.float32) for name, value in weights.items()
                         if value.dtype.kind == "f"}
        pooling = _read(place / "1_Pooling" / "config.json")
        self._first = bool(pooling.get("pooling_mode_cls_token"))
        if not self._first and not pooling.get("pooling_mode_mean_tokens", True):
            raise ComponentError(f"the model in {place} pools in another way than by mean or first token")
        # A folder without modules is a bare encoder, whose vectors are compared by their cosine too.
        self._normal = not (place / "modules.json").exists() or "Normalize" in (place / "modules.json").read_text()
        longest = _read(place / "sentence_bert_config.json").get("max_seq_length") or 512
        self._tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        self._tokenizer.enable_truncation(min(longest, self._config["max_position_embeddings"]))
        self._tokenizer.enable_padding(pad_id=self._config.get("pad_token_id", 0))

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text."""
        encoded = self._tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
        ids = np.array([e.ids for e in encoded])
        mask = np.array([e.attention_mask for e in encoded], dtype=np.float32)
        with threadpool_limits(1, "blas"):  # short texts gain nothing from threads, and lose much on a busy machine
            states = self._states(ids, mask)
        pooled = states[:, 0] if self._first else \
            (states * mask[:, :, None]).sum(1) / np.maximum(mask.sum(1, keepdims=True), 1e-9)
        if self._normal:
            pooled = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return pooled.tolist()  # type: ignore[no-any-return]

    def _states(self, ids: NDArray[Any], mask: Array) -> Array:
        """What the last layer makes of each token."""
        w = self._weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x + w["embeddings.position_embeddings.weight"][:ids.shape[1]], "embeddings.LayerNorm")
        hidden = (1.0 - mask[:, None, None, :]) * np.float32(-1e9)
        for i in range(self._config["num_hidden_layers"]):
            x = self._layer(x, hidden, f"encoder.layer.{i}.")
        return x

    def _layer(self, x: Array, hidden: Array, at: str) -> Array:
        count, length, width = x.shape
        heads = self._config["num_attention_heads"]

        def split(name: str) -> Array:
            rows = self._linear(x, f"{at}attention.self.{name}")
            by_head: Array = rows.reshape(count, length, heads, width // heads).transpose(0, 2, 1, 3)
            return by_head

        scores = split("query") @ split("key").transpose(0, 1, 3, 2) / np.float32((width // heads) ** 0.5) + hidden
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        seen = (shares @ split("value")).transpose(0, 2, 1, 3).reshape(count, length, width)
        x = self._norm(x + self._linear(seen, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner: Array = gelu(self._linear(x, f"{at}intermediate.dense"))
        return self._norm(x + self._linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")

    def _linear(self, x: Array, name: str) -> Array:
        # One large product: a product for each text of a batch would be many small ones.
        flat: Array = x.reshape(-1, x.shape[-1]) @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred ** 2).mean(-1, keepdims=True) + np.float32(self._config["layer_norm_eps"]))
        result: Array = centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result


def gelu(x: Array) -> Array:
    """x times the normal distribution's share below x, whose error here is below that of single precision."""
    z = np.abs(x) * np.float32(2 ** -0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = np.zeros_like(t)
    for factor in reversed(_ERF):
        tail = (tail + np.float32(factor)) * t
    erf = np.sign(x) * (1 - tail * np.exp(-z * z))
    result: Array = 0.5 * x * (1 + erf)
    return result


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        if path.name == "config.json" and path.parent.name != "1_Pooling":
            raise ComponentError(f"{path.parent} has no model: there is no config.json")
        return {}
    content: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return content
