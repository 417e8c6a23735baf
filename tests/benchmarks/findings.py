"""What `madplug report` costs on 100,000 debates in 12 cells, drawn from a seed: CPU, memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

CELLS, SAMPLES, REPEATS = 12, 2778, 3
DRAWN = Path(__file__).parents[2] / "plugins" / "madplug-report" / "tests" / "conftest.py"


def drawn() -> Any:
    """The generator of the report's own tests."""
    spec = spec_from_file_location("drawn", DRAWN)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["drawn"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure() -> tuple[int, float, float]:
    """Debates, CPU seconds, peak in MB."""
    draw = drawn()
    with tempfile.TemporaryDirectory() as folder:
        cells = [draw.Drawn(f"cell {i}", skill=0.4 + i / 40, agents=3 + i % 3) for i in range(CELLS)]
        debates = (draw.debate(cell, sample, repeat)
                   for cell in cells for repeat in range(REPEATS) for sample in range(SAMPLES))
        draw.write(Path(folder) / "study", debates, cells, repeats=REPEATS)
        subprocess.run([sys.executable, "-m", "madplug", "report", "study", "--output", "report"], cwd=folder,
                       check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return CELLS * SAMPLES * REPEATS, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    print(*measure())
