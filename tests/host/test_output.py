"""What is printed: model text is harmless on a terminal, and an output that cannot be written is no traceback."""

import errno
import os
import subprocess
import sys
from io import StringIO

import click
import pytest
from click.testing import CliRunner

from madplug.cli.program import Program, main
from madplug.study.process import echo
from madplug.text import dollars, safe


@pytest.mark.parametrize("hidden", [
    "\x1b", "\x9b", "\r", "\x7f", "\xad", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029",
    "\u202e", "\u2060", "\u2064", "\u2066", "\u2069", "\ufeff", "\ufffb", "\U000e0041", "\ud800"])
def test_nothing_that_hides_or_turns_text_reaches_the_terminal(hidden):
    assert safe(f"a{hidden}b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["tab\tand\nline", "naïve Größe", "日本語", "العربية", "می\u200cخواهم", "👩\u200d🔬"])
def test_what_people_write_stays(text):
    assert safe(text) == text


@pytest.mark.parametrize(("amount", "shown"), [(0, "0"), (1234.5, "1,234.50"), (0.12, "0.1200"), (6e-05, "0.00006"),
                                             (0.22265, "0.2226"), (0.22265000000000007, "0.2226")])
def test_dollars_are_shown_without_exponents(amount, shown):
    assert dollars(amount) == shown


@pytest.mark.parametrize("words", [["run", "study.toml"], ["list"]])
def test_a_full_disk_behind_standard_output_is_said_in_one_line(madplug, write, tmp_path, words):
    write()
    assert madplug("run", "study.toml").returncode == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "madplug", *words], cwd=tmp_path, stdout=full, text=True,
                              stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "the output cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF])
def test_standard_output_that_cannot_be_written_is_said_in_one_line(number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    program = Program("madplug", commands={"fail": click.Command("fail", callback=fail)})
    before = os.dup(1)
    try:
        done = CliRunner().invoke(program, ["fail"])
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert done.exit_code == 1
    assert f"the output cannot be written: {os.strerror(number)}" in done.stderr


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_a_line_on_standard_error_that_cannot_be_printed_ends_nothing(monkeypatch, number):
    class Gone(StringIO):
        """A terminal that was closed, or a pipe that is no longer read."""

        def write(self, text):
            raise OSError(number, "gone")  # which makes BrokenPipeError of EPIPE

    monkeypatch.setattr("sys.stderr", Gone())
    before = os.dup(2)
    try:
        echo("worker 1 was lost", err=True)
    finally:
        os.dup2(before, 2)
        os.close(before)


def test_a_current_directory_that_was_deleted_is_said(tmp_path, monkeypatch):
    program = Program("madplug", commands={"where": click.Command("where", callback=os.getcwd)})
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    done = CliRunner().invoke(program, ["where"])
    assert done.exit_code == 2
    assert "the current directory was deleted" in done.stderr


@pytest.mark.parametrize(("words", "said"), [
    (["export", "runs/study"], "no command 'export'; it comes with madplug-export: pip install madplug-export"),
    (["run", "study.toml", "--watch"],
     "run: no option '--watch'; it comes with madplug-read: pip install madplug-read"),
    (["rum"], "No such command 'rum'; did you mean 'run'?"),
    (["gate"], "No such command 'gate'; plugins of methods bring commands of their own: README says which"),
    (["run", "study.toml", "--dataset.limit", "3"],
     "run: no option '--dataset.limit'; keys of the run file are changed with --set dataset.limit=VALUE"),
    (["run", "study.toml", "--wach"], "No such option")])
def test_a_command_or_option_of_a_plugin_that_is_missing_says_what_to_install(words, said):
    alone = Program("madplug", commands={"run": click.Command("run", params=list(main.commands["run"].params[:2]))})
    alone._add = lambda plugin=None: None  # no plugin is installed
    done = CliRunner().invoke(alone, words, prog_name="madplug")
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
