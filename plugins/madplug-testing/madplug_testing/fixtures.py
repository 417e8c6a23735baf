"""Fixtures for the tests of plugins: `pytest_plugins = ["madplug_testing.fixtures"]` in the topmost conftest.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


@pytest.fixture
def madplug_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Install a plugin for one test: `madplug_plugin("hello", source)`, optionally with `distribution` and `version`.

    source: the text of its only module. It is found through its entry point, in this process and, through PYTHONPATH,
    in child processes. Returns its folder.
    """
    return plugin_installer(tmp_path, monkeypatch)


def plugin_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """What the fixture `madplug_plugin` gives."""

    def install(plugin: str, source: str, *, distribution: str | None = None, version: str = "1.0",
                module: str | None = None) -> Path:
        name = distribution or f"madplug-{plugin}"
        module = module or f"{name.replace('-', '_')}_under_test"
        folder = tmp_path / f"site-{name}"
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source, encoding="utf-8")
        (info / "METADATA").write_text(_METADATA.format(name=name, version=version), encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[madplug]\n{plugin} = {module}\n", encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)  # the module of an earlier test
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        return folder

    return install
