"""Builds every distribution as it would be published, checks it, and uses it: `python tests/tools/dist.py [FOLDER]`.

Wheels and source archives of everything; their metadata (twine); a bill of materials in CycloneDX of an environment
into which FREE-MAD is installed from the wheels, and nothing of this repository from anywhere else; and a study there,
with simulated debaters.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from wheels import build, distributions

INSTALLED = ("madplug-freemad", "madplug-simulator", "madplug-qa")
STUDY = """
name = "dist"
oracle = true
[dataset]
use = "simulator.questions"
size = 5
[debate]
paradigm = "freemad.n"
agents = 3
styles = ["simulator.debater"]
[[metrics]]
use = "qa.accuracy"
"""


def call(*words: object, cwd: Path | None = None) -> str:
    """Run a program; what it printed. Raises `SystemExit` where it fails."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build_archives(folder: Path) -> list[Path]:
    """Source archives of everything."""
    from hatchling.builders.sdist import SdistBuilder

    return [Path(path) for root in distributions()
            for path in SdistBuilder(str(root)).build(directory=str(folder), versions=["standard"])]


def install(home: Path, wheels: Path) -> Path:
    """An empty environment with the wheels that a user of FREE-MAD needs; its interpreter."""
    call("uv", "venv", "--quiet", "--python", sys.executable, home)
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    named = [f"{name} @ {next(wheels.glob(name.replace('-', '_') + '-*.whl')).as_uri()}" for name in INSTALLED]
    call("uv", "pip", "install", "--quiet", "--python", python, "--find-links", wheels, *named)
    return python


def main(folder: Path) -> None:
    """Build, check, install and run."""
    wheels, archives = build(folder), build_archives(folder)
    call(sys.executable, "-m", "twine", "check", "--strict", *wheels, *archives)
    print(f"{len(wheels)} wheels and {len(archives)} source archives in {folder}: metadata checked")
    with tempfile.TemporaryDirectory() as scratch:
        python = install(Path(scratch) / "home", folder)
        bill = folder / "bill-of-materials.json"
        call("cyclonedx-py", "environment", "--output-format", "JSON", "--output-file", bill, python)
        print(f"bill of materials: {bill}")
        (Path(scratch) / "study.toml").write_text(STUDY, encoding="utf-8")
        print(call(python, "-m", "madplug", "run", "study.toml", cwd=Path(scratch)))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
