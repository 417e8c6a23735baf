"""Components in the options of components, and a component as a table of the run file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Any

from madplug.components import Component, Dataset, Style, TurnOrder
from madplug.options import is_path, is_volatile, naming, nested_fields
from madplug.rows import to_json


def nested_in(component: Component) -> Iterator[Component]:
    """The components in a component's options, and those in theirs."""
    for field in nested_fields(type(component.options)):
        value = getattr(component.options, field.option)
        for inner in value if field.many and value else [value]:
            if isinstance(inner, Component):
                yield inner
                yield from nested_in(inner)


def moves_of(component: Component) -> list[frozenset[str]]:
    """The moves of a turn order or a style, and of each of the same kind in its options."""
    inner = [c for c in nested_in(component) if c.kind == component.kind]
    return [c.moves for c in (component, *inner) if isinstance(c, TurnOrder | Style)]


def component_to_table(component: Component, *, volatile: bool = True) -> dict[str, Any]:
    """A component as it could be written in a run file: `use` with its full name, and every option.

    Without `volatile`, only what counts when two studies are compared: no volatile option, and instead of a path the
    digest of its content (nothing for a data set, since its samples are compared one by one).
    """
    options = component.options
    table = {"use": (component.written_as if volatile else "") or component.full_name}
    kind, nested = type(options), {field.option: field for field in nested_fields(type(options))}
    left_out = {n for n in kind.model_fields if not volatile and (is_volatile(kind, n) or is_path(kind, n))}
    values = options.model_dump(mode="json", exclude=left_out | set(nested))
    for name in kind.model_fields:
        value = getattr(options, name)
        if name in nested and name not in left_out:
            values[name] = _spell(value, volatile)
        elif name in left_out and not is_volatile(kind, name) and not isinstance(component, Dataset):
            values[name] = path_digest(value) if value is not None else None
    return table | {name: values[name] for name in kind.model_fields if name in values}


def identity_of(component: Component) -> str:
    """What a component is: its options that are not volatile, and its code and that in its options if in local files.

    The full name of a component in a local file has no folder, so that two files of one name differ by their content.
    """
    table = component_to_table(component, volatile=False)
    contents = [one.content for one in (component, *nested_in(component)) if one.content]
    return to_json([table, *contents] if contents else table)


def names_of(component: Component, kind: str) -> Iterator[str]:
    """The models or services that a component's options name, and those of the components in its options.

    kind: `model` or `service`.
    """
    for one in (component, *nested_in(component)):
        for named in naming(type(one.options)):
            value = getattr(one.options, named.option)
            if named.kind == kind:
                yield from [value] if isinstance(value, str) else value or ()


def _spell(value: Any, volatile: bool) -> Any:
    if isinstance(value, Component):
        return component_to_table(value, volatile=volatile)
    return [_spell(one, volatile) for one in value] if isinstance(value, list | tuple) else value


def path_digest(path: Any) -> Any:
    """What represents a path in a study's identity: a digest of the file, or of every file in the folder."""
    if isinstance(path, list | tuple):
        return [path_digest(one) for one in path]
    path = Path(path)
    if path.is_dir():  # a database's -wal and -shm come and go with its readers
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.endswith(("-wal", "-shm")))
        parts = [f"{p.relative_to(path).as_posix()} {path_digest(p)}" for p in files]
        return blake2b("\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode):
            return "not a file"  # a pipe or a device has no end
        return _file_digest(path, state.st_mtime_ns, state.st_size)
    except OSError:
        return "missing"


@lru_cache(maxsize=1000)
def _file_digest(path: Path, changed: int, size: int) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
