"""What it costs to import a plugin, and to make a component."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

HEAVY = frozenset({
    "aiohttp", "bert_score", "datasets", "faiss", "gensim", "huggingface_hub", "jax", "keras", "langchain", "litellm",
    "math_verify", "matplotlib", "nltk", "numpy", "openai", "pandas", "polars", "pyarrow", "pydantic_monty",
    "rouge_score", "sacrebleu", "scipy", "sentence_transformers", "sklearn", "spacy", "starlette", "statsmodels",
    "sympy", "tensorflow", "tokenizers", "torch", "transformers", "vllm", "xllamacpp",
})
"""Packages to import in `prepare` or `open`: when a component is going to be used, not when it is looked at."""

_CODE = """
import importlib, json, sys
heavy, modules = json.load(sys.stdin)
for name in modules:
    before = set(sys.modules)
    importlib.import_module(name)
    new = {module.partition(".")[0] for module in set(sys.modules) - before}
    print(json.dumps([name, sorted(new & set(heavy))]))
"""
_known: dict[str, list[str]] = {}


def heavy_imports(modules: Iterable[str]) -> dict[str, list[str]]:
    """Heavy packages that importing these modules brings in, by the module that brought them first.

    All that are not known yet are asked of one fresh interpreter; so ask for many at once where there are many.
    """
    modules = list(dict.fromkeys(modules))
    unknown = [name for name in modules if name not in _known]
    if unknown:
        path = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run([sys.executable, "-c", _CODE], input=json.dumps([sorted(HEAVY), unknown]), text=True,
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": path})
        assert done.returncode == 0, f"a module cannot be imported in a fresh interpreter:\n{done.stderr}"
        _known.update(json.loads(line) for line in done.stdout.splitlines())
    return {name: _known[name] for name in modules}


@contextmanager
def imports_noted() -> Iterator[set[str]]:
    """The packages that are imported meanwhile, those that were imported before included."""
    noted: set[str] = set()
    real = builtins.__import__

    def noting(name: str, *more: Any, **named: Any) -> Any:
        noted.add(name.partition(".")[0])
        return real(name, *more, **named)

    builtins.__import__ = noting
    try:
        yield noted
    finally:
        builtins.__import__ = real
