"""Builds a wheel of every distribution in the repository: `python tests/tools/wheels.py FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def distributions() -> Iterator[Path]:
    """The folders of all distributions: the host, the plugins, and the examples' plugins."""
    yield ROOT
    yield from sorted(p.parent for p in ROOT.glob("plugins/*/pyproject.toml"))
    yield from sorted(p.parent for p in ROOT.glob("examples/*/pyproject.toml"))


def build(folder: Path) -> list[Path]:
    """Wheels of everything, made in `folder`."""
    from hatchling.builders.wheel import WheelBuilder

    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    return [Path(path) for root in distributions()
            for path in WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"])]


if __name__ == "__main__":
    print(f"{len(build(Path(sys.argv[1])))} wheels in {sys.argv[1]}")
