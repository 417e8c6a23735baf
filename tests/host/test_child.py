"""Code in a process of its own."""

import subprocess

from madplug.subprocesses import python_command

CODE = "import sys, json, helper_of_mine; print(json.dumps([sys.argv[1:], helper_of_mine.VALUE]))"


def test_it_imports_from_the_same_places_and_not_from_the_current_directory(tmp_path, monkeypatch):
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    for folder in (own, foreign):
        folder.mkdir()
    (own / "helper_of_mine.py").write_text("VALUE = 1")
    for name in ("json", "helper_of_mine"):
        (foreign / f"{name}.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(own)
    done = subprocess.run(python_command(CODE, "a b", "", "--c"), cwd=foreign, capture_output=True,
                          text=True, check=False)
    assert (done.stdout, done.stderr) == ('[["a b", "", "--c"], 1]\n', "")
