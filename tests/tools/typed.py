"""Checks the types of the host and the plugins with mypy --strict: `python tests/tools/typed.py [NAME ...]`.

A plugin that ships `py.typed` promises types to others, and is checked. With names these plugins alone are.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mypy import api

ROOT = Path(__file__).resolve().parents[2]


def modules(names: list[str]) -> list[str]:
    """The modules of the plugins of these names, or the host and all that ship types."""
    typed = sorted(path.parent.name for path in ROOT.glob("plugins/*/madplug_*/py.typed"))
    return [module for module in typed if module.removeprefix("madplug_") in names] if names else ["madplug", *typed]


def main(names: list[str]) -> int:
    """Print what mypy finds; its exit status."""
    packages = [argument for module in modules(names) for argument in ("-p", module)]
    if not packages:
        print(f"no plugin with types among {', '.join(names)}")
        return 2
    output, errors, status = api.run(["--config-file", str(ROOT / "pyproject.toml"), "--num-workers", "2", *packages])
    print(output + errors, end="")
    return status


if __name__ == "__main__":
    sys.exit(main([name.removeprefix("madplug-") for name in sys.argv[1:]]))
