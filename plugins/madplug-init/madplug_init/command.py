"""The command `madplug init`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import click

import madplug
from madplug import Problem, UserError, safe
from madplug_files.columns import REQUIRED
from madplug_files.readers import source

METHOD = "som.debate"
FORMATS = ("answers.choice", "answers.number", "answers.yesno", "answers.text")
"""Answer formats from the strictest: the first that fits the rows is written."""
QUESTIONS = (
    {"question": "Which planet is the smallest?", "choices": ["Venus", "Mercury"], "reference": "Mercury"},
    {"question": "Which of these is a prime number?", "choices": ["27", "29"], "reference": "29"})
"""What the file of questions has until it has yours."""
CALLED = {"question": r"question|prompt|input|problem|query|frage",
          "reference": r"reference|(correct[ _]?)?answer|answer[ _]?key|correct|label|target|gold([ _]?label)?|antwort",
          "choices": r"choices|options"}
"""What the column of a part is often called."""
CHOICE = r"[a-j]|(option|choice)[ _]?[a-j1-9]"
"""What a column with one choice of several is often called."""

RUN = '''\
# madplug check {file}   says what it takes; --ping also tries the model
# madplug run {file}     runs it, and continues it after a stop, or with more questions

[dataset]
use = "files.table"
path = {questions}    # .jsonl, .csv, .tsv or .parquet; relative to this file
# limit = 20    # begin with a few; a higher limit later pays only for what is new
{columns}    # {why}

[answers]
use = "{answers}"    # what counts as an answer: madplug list answers

[models.main]
use = "openai.chat"    # any OpenAI-compatible endpoint; others: madplug list models
model = {model}
{url}
max_tokens = 1000
# temperature = 0.7
# api_key_env = "OPENAI_API_KEY"    # the variable with the key; the key itself never stands here
# price = {{prompt = 0.15, completion = 0.6}}    # USD per million tokens, where madplug prices has none

# [limits]
# cost_usd = 1.0    # also calls, tokens, seconds

[[cells]]
name = "debate"

[cells.debate]
paradigm = "{method}"    # madplug show {method}; others: madplug list paradigms
{agents}agents = 3
# rounds = 2    # the most; madplug show {method} has the default

# The baseline: as many independent answers to each question as the debate made calls.
[[cells]]
name = "self-consistency"
match = {{cell = "debate", by = "calls"}}
debate = {{paradigm = "baselines.self_consistency"}}

[[metrics]]
use = "qa.accuracy"
'''


@click.command()
@click.argument("method", default=METHOD)
@click.option("--questions", metavar="FILE", type=click.Path(path_type=Path),
              help="Your questions.  [default: questions.jsonl, written with two to replace if it does not exist]")
@click.option("--column", "columns", metavar="PART=COLUMN", multiple=True,
              help="What a column is called: reference=answer, or choices=A,B,C,D if each has its own; usual "
                   "names are guessed.")
@click.option("--delimiter", metavar="CHARACTER", type=click.Choice([";", "|"]),
              help="What separates the columns of a CSV file, if no comma: ';' or '|'.")
@click.option("--reference-as", type=click.Choice(["letter", "index", "position", "text"]),
              help="How references name choices, where they can be read in two ways: by letter, by index from 0, by "
                   "position from 1, or as text.")
@click.option("--model", default="gpt-4o-mini", show_default=True, help="The model's name, as the endpoint knows it.")
@click.option("--base-url", metavar="URL", help="The endpoint.  [default: OPENAI_BASE_URL, or OpenAI]")
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), default=Path("study.toml"),
              help="The run file.  [default: study.toml]")
def init(method: str, questions: Path | None, columns: tuple[str, ...], delimiter: str | None,
         reference_as: str | None, model: str, base_url: str | None, output: Path) -> None:
    """Write a run file that debates your own questions by METHOD, beside as many single answers.

    METHOD is a paradigm of `madplug list paradigms`; by default som.debate. The file passes `madplug check`.
    """
    if output.exists():
        raise UserError(f"{output}: already exists; name another file with --output")
    mine, folder = (questions or Path("questions.jsonl")).absolute(), output.absolute().parent
    if new := questions is None and not mine.exists():
        mine.write_text("".join(json.dumps(row) + "\n" for row in QUESTIONS), encoding="utf-8")
    path = mine.relative_to(folder) if mine.is_relative_to(folder) else mine
    url = f"base_url = {json.dumps(base_url)}" if base_url else \
        '# base_url = "http://127.0.0.1:8000/v1"    # default: OPENAI_BASE_URL, or OpenAI'
    given = dict(map(_column, columns))
    present = list(source(mine, delimiter).columns)
    guessed = _guessed(present, given)
    named = f"columns = {{{_table({**given, **guessed})}}}" if given or guessed else \
        '# columns = {question = "input", reference = "target"}'
    named = f"delimiter = {json.dumps(delimiter)}\n{named}" if delimiter else named
    named = f"reference_as = {json.dumps(reference_as)}\n{named}" if reference_as else named
    why = f"guessed: {', '.join(guessed)}" if guessed else "where columns have other names"
    text = partial(RUN.format, file=output, questions=json.dumps(str(path)), url=url, model=json.dumps(model),
                   method=method, columns=named, why=why)
    try:
        answers, notes = _write(output, text)
    except UserError as error:
        if new:
            mine.unlink()
        lost = [part for part in REQUIRED if part not in {*present, *given, *guessed}]
        delimited = Problem("--delimiter", "says what separates the columns: ';' or '|'")
        hints = [delimited] if "with delimiter" in str(error) else \
            [Problem(f"--column {part}=COLUMN", f"names the {part}") for part in lost]
        hints += [Problem("--reference-as", "says it")] if "reference_as" in str(error) else []
        raise UserError([*error.problems, *hints]) from None
    if new:
        click.echo(f"wrote {mine.name}: put your questions there")
    click.echo(f"wrote {output}: next, madplug check {output}")
    if guessed:
        click.echo(f"guessed that {_table(guessed)}; edit `columns` there if that is wrong")
    for note in (note for note in notes if note.startswith("warning: dataset")):
        click.echo(safe(note))
    if answers != FORMATS[0]:
        click.echo(f"not every row has choices, so replies are read by {answers}; columns that have them are named "
                   "there, columns = {choices = [\"A\", \"B\", \"C\"]}")


def _write(output: Path, text: Callable[..., str]) -> tuple[str, list[str]]:
    """Write the first run file that `check` accepts: its answer format, and what `check` notes about it.

    Raises `UserError` of the one that is nearest: with the fewest problems, such as rows that do not fit, and none
    with a number of agents that nobody asked for.
    """
    refused: list[UserError] = []
    for agents, answers in product(("# ", ""), FORMATS):  # agents only where the method has no default
        try:
            output.write_text(text(agents=agents, answers=answers), encoding="utf-8")
            return answers, madplug.check(output)["notes"]
        except OSError as error:
            raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None
        except UserError as error:
            refused.append(error)
            output.unlink()
    raise min(refused, key=lambda error: ("debate.agents: is" in str(error.problems[0]), len(error.problems)))


def _column(text: str) -> tuple[str, str | list[str]]:
    """`PART=COLUMN`; several columns are a list."""
    part, _, column = text.partition("=")
    return part, column.split(",") if "," in column else column


def _guessed(present: Sequence[str], given: Mapping[str, object]) -> dict[str, str | list[str]]:
    """The columns of parts that are not given and that no column is called after, where just one can be meant."""
    found: dict[str, str | list[str]] = {}
    for part, pattern in CALLED.items():
        if part not in {*given, *present} and len(called := _matching(pattern, present)) == 1:
            found[part] = called[0]
    if len(own := _matching(CHOICE, present)) > 1 and "choices" not in {*present, *given, *found}:
        found["choices"] = own
    return found


def _matching(pattern: str, present: Sequence[str]) -> list[str]:
    return [name for name in present if re.fullmatch(pattern, name, re.IGNORECASE)]


def _table(columns: Mapping[str, object]) -> str:
    """Columns by part as TOML."""
    return ", ".join(f"{part} = {json.dumps(column, ensure_ascii=False)}" for part, column in columns.items())
