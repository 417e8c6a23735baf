"""Components that no distribution offers: a class in a local file, or one defined in a Python session.

    decision = "./mine.py:Firmest"                                   # in a run file; the path is relative to it
    madplug.run("study.toml", components=[Firmest])                  # and decision = "Firmest"

Such a class needs neither a `name` nor a docstring. The manifest of a study has the file and a hash of its content.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from madplug.component import Component, kind_of
from madplug.errors import UserError, message_of, nearest_file, nearest_or_all
from madplug.registry.offers import Offer, class_problem, kind_problem

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")


def is_file_reference(name: str) -> bool:
    """Whether a `use` names a class in a file: `./mine.py:Firmest`."""
    return _FILE.fullmatch(name) is not None or name.startswith(("./", "../", "/")) or name.endswith(".py")


def load_from_file(name: str, folder: Path, base: type[Component]) -> Offer:
    """The component of a kind that `PATH.py:CLASS` names. folder: what a relative path is relative to.

    Raises `UserError` if there is no such file or class, or it is not a component of this kind.
    """
    found = _FILE.fullmatch(name)
    if found is None:
        raise UserError(f"'{name}' names no class; expected ./FILE.py:CLASS, such as ./mine.py:Firmest")
    path = (folder / found["path"]).absolute()
    module, digest = _load(path)
    cls = vars(module).get(found["name"])
    if cls is None:
        own = [n for n, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__]
        raise UserError(f"{path.name} has no class '{found['name']}'{nearest_or_all(found['name'], own)}")
    _check(cls, base)
    return Offer(base.kind, f"{path.name}:{found['name']}", cls, path.name, f"sha256 {digest}",
                 written_as=f"{path}:{found['name']}")


def _load(path: Path) -> tuple[Any, str]:
    """The module in a file, and a hash of its content; loaded once until the content changes."""
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file{nearest_file(path, '.py')}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{str(path)!r:.200}: cannot be read: {error}") from None
    digest = sha256(source).hexdigest()
    stem = re.sub(r"\W", "_", path.stem)
    name = f"local_{stem}_{sha256(str(path).encode() + source).hexdigest()[:8]}"
    if name not in sys.modules:
        sys.modules[name] = module = ModuleType(name)
        module.__file__ = str(path)
        try:
            exec(compile(source, path, "exec"), module.__dict__)  # not the loader, whose cache goes by time and size
        except (Exception, SystemExit) as error:
            sys.modules.pop(name, None)
            raise UserError(f"{path}: does not load: {message_of(error)}{_line(error, path)}") from None
        linecache.checkcache(str(path))
    return sys.modules[name], digest


def _line(error: BaseException, path: Path) -> str:
    """The line of the file in which an error arose."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" (line {lines[-1]})" if lines else ""


def from_session(classes: Sequence[type[Component]]) -> list[Offer]:
    """The offers of classes that were passed to `madplug.run`. Raises `UserError` for what is not a component."""
    offers = []
    for cls in classes:
        base = kind_of(cls) if inspect.isclass(cls) and issubclass(cls, Component) else Component
        if base is Component:
            raise UserError(f"components: {cls!r:.80} is not a class of component, such as a subclass of "
                            "madplug.DecisionProtocol")
        _check(cls, base)
        offers.append(Offer(base.kind, f"python:{cls.__name__}", cls, "a Python session", _version(cls)))
    return offers


def _version(cls: type[Any]) -> str:
    """A hash of a class's source, or, in a notebook, whose cells are not files, of what it was compiled to."""
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):
        source = repr(_compiled(cls))
    return f"sha256 {sha256(source.encode('utf-8', 'replace')).hexdigest()}"


def _compiled(cls: type[Any]) -> list[tuple[str, Any]]:
    """The functions and plain values of a class and of those in it, wherever they stand in their cell."""
    found: list[tuple[str, Any]] = []
    for name, value in sorted(vars(cls).items()):
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            found.append((name, _instructions(code)))
        elif isinstance(value, type) and value.__qualname__ == f"{cls.__qualname__}.{name}":
            found.append((name, _compiled(value)))
        elif isinstance(value, str | int | float | None) and name != "__firstlineno__":
            found.append((name, repr(value)))
    return found


def _instructions(code: CodeType) -> Any:
    """What a function does, without the lines in which it is written."""
    constants = [_instructions(c) if isinstance(c, CodeType) else sorted(map(repr, c)) if isinstance(c, frozenset)
                 else repr(c) for c in code.co_consts]
    return code.co_code.hex(), code.co_names, constants


def _check(cls: Any, base: type[Component]) -> None:
    if wrong := kind_problem(cls, base) or class_problem(cls):
        raise UserError(wrong.replace("offers ", "", 1))
    if not hasattr(cls, "name"):
        cls.name = cls.__name__
