"""Checks who imports whom: runs import-linter on the host and all plugins, which need not be installed."""

from __future__ import annotations

import sys
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), *map(str, ROOT.glob("plugins/*"))]
    sys.exit(lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True))
