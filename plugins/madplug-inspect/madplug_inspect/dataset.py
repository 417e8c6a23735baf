"""Data sets of inspect_ai."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Dataset, Options, RunPath, Sample, StudyError, UserError, message_of, nearest, plain, to_json
from madplug_files.images import Images, is_address
from madplug_inspect.needed import NEEDED, is_installed

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample as InspectSample

MOST_BYTES = 20 * 2**20
"""Of one image in a file."""
SPEAKERS = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


class ImportedOptions(Options):
    """Options of `inspect.dataset`."""

    source: str = Field(min_length=1, description=(
        "a function that returns a data set or a task of inspect_ai: `inspect_evals.gsm8k:gsm8k`, "
        "`inspect_ai.dataset:json_dataset`; with `file` its name alone"))
    file: RunPath | None = Field(default=None, description="a Python file that defines the function")
    args: Mapping[str, Any] = Field(default={}, description="arguments of the function")
    limit: int | None = Field(default=None, ge=1, description="only the first so many samples")


class Imported(Dataset):
    """Any data set of inspect_ai: one that a function returns, or that of a task.

    `source` names a function, which is called with `args`. A sample's input is the question; of several messages each
    stands below its speaker. Targets are the references; the targets of a sample with several right options are one
    reference. Images become part of the question; files and sandboxes are left out. Samples with options are answered
    with `answers.choice` unless the run file names another format.
    """

    name = "dataset"
    Options = ImportedOptions

    @cached_property
    def _rows(self) -> Sequence[InspectSample]:
        """The samples of inspect_ai."""
        if not is_installed():
            raise UserError(f"inspect.dataset {NEEDED}")
        from inspect_ai import Task
        from inspect_ai.dataset import Dataset as InspectDataset

        made = self._call()
        made = made.dataset if isinstance(made, Task) else made
        if not isinstance(made, InspectDataset):
            raise UserError(f"inspect.dataset: '{self.options.source}' returned {type(made).__name__}; expected a data "
                            "set or a task of inspect_ai")
        return list(made)[:self.options.limit]

    def _call(self) -> Any:
        function = find_function(self.options.source, self.options.file)
        try:
            return function(**self.options.args)
        except Exception as error:
            raise UserError(f"inspect.dataset: '{self.options.source}' raised {message_of(error)}") from error

    @property
    def has_images(self) -> bool:
        """Whether a sample has an image."""
        return any(not isinstance(row.input, str) and any(_images(row)) for row in self._rows)

    @property
    def answers(self) -> str | None:
        """A letter, if the samples have options."""
        return "answers.choice" if self._rows and self._rows[0].choices else None

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The samples with their targets. Raises `StudyError` for a split: a function is one data set."""
        if split is not None:
            raise StudyError(f"inspect.dataset has no split '{split}'; name another function or other args")
        for i, row in enumerate(self._rows):
            yield to_sample(row, i)

    def size(self) -> int:
        """How many samples there are."""
        return len(self._rows)

    def fingerprint(self) -> str:
        """A digest of all samples."""
        digest = blake2b(digest_size=16)
        for sample, references in self.samples():
            digest.update(to_json([sample, references]).encode())
        return digest.hexdigest()


def find_function(source: str, file: Path | None) -> Any:
    """The function that a data set comes from. Raises `UserError` if there is none."""
    module_name, _, name = source.rpartition(":")
    if file is None and not module_name:
        raise UserError(f"inspect.dataset: source = \"{source}\" names no module; write "
                        "\"module:function\", or name the file that defines it with `file`")
    try:
        module = import_module(module_name) if file is None else _load(file)
    except Exception as error:
        raise UserError(f"inspect.dataset: {file or module_name} cannot be imported: {message_of(error)}") from error
    function = getattr(module, name, None)
    if not callable(function):
        known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise UserError(f"inspect.dataset: {file or module_name} has no function '{name}'{nearest(name, known)}")
    return function


def _load(file: Path) -> Any:
    spec = spec_from_file_location(f"madplug_inspect_file_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise FileNotFoundError("no such Python file")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def to_sample(row: InspectSample, index: int) -> tuple[Sample, tuple[str, ...]]:
    """A sample of inspect_ai as one of madplug, with its references."""
    targets = (row.target,) if isinstance(row.target, str) else tuple(row.target)
    if row.choices and len(targets) > 1:
        targets = (", ".join(targets),)
    id = str(index + 1 if row.id is None else row.id)
    return Sample(id, _question(row), tuple(row.choices or ()), images=tuple(_images(row)),
                  metadata=plain(row.metadata or {})), tuple(t for t in targets if t)


def _question(row: InspectSample) -> str:
    if isinstance(row.input, str):
        return row.input
    said = [(message.role, message.text) for message in row.input if message.text]
    asked = [text for role, text in said if role != "system"]
    if len(asked) <= 1:
        return "\n\n".join(text for _, text in said)
    return "\n\n".join(text if role == "system" else f"{SPEAKERS[role]}: {text}" for role, text in said)


def _images(row: InspectSample) -> Iterator[str]:
    if isinstance(row.input, str):
        return
    for message in row.input:
        for part in message.content if isinstance(message.content, list) else ():
            if part.type == "image":
                yield _address(part.image)


def _address(image: str) -> str:
    """An image as an address: a file becomes part of it, only if it is an image.

    The path may come from a row of somebody else's data, and the file is sent to a model's provider. It may be
    anywhere, because the function that made the data set could read any file itself.
    """
    path = None if is_address(image) else Path(os.path.abspath(image))
    images = Images(path and Path(path.anchor), MOST_BYTES, option=None)
    try:
        return images.address(image if path is None else str(path))
    except ValueError as error:
        raise StudyError(f"inspect.dataset: {error}") from error
