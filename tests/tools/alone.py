"""Tests every plugin alone, those to copy included: an environment with its wheel and what it declares, nothing else.

Without names each plugin gets the smoke tests (`smoke.py`), because `tox run -e all` runs its own tests.
`alone.py NAME ...` runs all tests of these plugins. Two at a time, in two environments: what the plugin before needed
and this one does not is removed, and what both need stays compiled.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from wheels import ROOT, build, distributions

KIT = ("madplug-testing", "hypothesis>=6.100")
SMOKE = ("-p", "no:hypothesispytest", "--confcutdir=tests/tools", "tests/tools/smoke.py")
"""What needs no fixtures of other tests."""


def test_alone(plugin: Path, scratch: Path, wheels: Path, *tests: str | Path) -> tuple[str, int, str]:
    """Install one plugin and run its tests; its name, pytest's status and what it printed."""
    home = scratch / threading.current_thread().name
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    steps = [["uv", "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(home)],
             ["uv", "pip", "install", "--quiet", "--exact", "--python", str(python), "--find-links", str(wheels),
              f"{plugin.name} @ {next(wheels.glob(plugin.name.replace('-', '_') + '-*.whl')).as_uri()}", *KIT],
             [str(python.with_name("pytest")), "-q", "--no-header", "-p", "no:cacheprovider", *tests]]
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False,
                              env={**os.environ, "DISTRIBUTION": plugin.name})
        if done.returncode:
            break
    return plugin.name, done.returncode, done.stdout + done.stderr


def main(names: list[str]) -> int:
    """Test the plugins of these names, or all; the number that failed."""
    plugins = [p for p in distributions() if p != ROOT]
    chosen = [p for p in plugins if not names or p.name in names or p.name.removeprefix("madplug-") in names]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        wheels = Path(folder) / "wheels"
        build(wheels)
        done = pool.map(lambda p: test_alone(p, Path(folder), wheels, *([p] if names else SMOKE)), chosen)
        for name, status, output in done:
            last = output.strip().splitlines()[-1] if output.strip() else ""
            counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", last)}
            passed += counts.get("passed", 0)
            failed += counts.get("failed", 0) + counts.get("error", 0) or int(bool(status))
            print(f"{'ok    ' if status == 0 else 'FAILED'} {name}: {last}", flush=True)
            if status:
                print(output)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
