"""The modules of the pages as one script, for pages that open from disk, where a browser loads no modules.

No general bundler: it knows the forms of `import` and `export` that these modules use, and refuses any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_IMPORT = re.compile(r"^import\s+(?P<what>[^'\";]+?)\s+from\s+'(?P<path>[^']+)';[^\S\n]*\n?", re.MULTILINE)
_REEXPORT = re.compile(r"^export\s+\{(?P<what>[^}]*)\}\s+from\s+'(?P<path>[^']+)';[^\S\n]*\n?", re.MULTILINE)
_EXPORTED = re.compile(r"^export\s+(?=(?:async\s+)?(?:const|let|function|class)\s+(?P<name>[\w$]+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default (?P<what>[^;]+);", re.MULTILINE)
_RENAMED = re.compile(r"(\w+)\s+as\s+(\w+)")
_NAMES = re.compile(r"\{(?P<names>[^}]*)\}")


def bundle(start: Path, whole: Path) -> str:
    """The script of a module and everything it imports.

    whole: a folder whose modules import each other in circles; they share one scope, so their names must differ.
    """
    units: dict[Path, str] = {}
    _add(start, whole, units)
    body = "\n".join(units.values())
    return f"(() => {{\n'use strict';\nconst modules = {{}};\n{body}\n}})();\n"


def _add(module: Path, whole: Path, units: dict[Path, str]) -> None:
    """A module after those that it imports."""
    if module in units:
        return
    if module.is_relative_to(whole):
        units.update(dict.fromkeys(_modules_of(whole), ""))
        units[module] = _shared(module, whole)
        return
    text = module.read_text(encoding="utf-8")
    for path in _imported(text):
        _add((module.parent / path).resolve(), whole, units)
    units[module] = _separate(module, text)


def _imported(text: str) -> list[str]:
    return [m["path"] for pattern in (_IMPORT, _REEXPORT) for m in pattern.finditer(text)]


def _name(module: Path) -> str:
    return f"modules[{str(module.stem if module.stem != 'index' else module.parent.name)!r}]"


def _separate(module: Path, text: str) -> str:
    """A module in a scope of its own."""
    exports = [m["name"] for m in _EXPORTED.finditer(text)]
    default = _DEFAULT.search(text)
    text = _IMPORT.sub(lambda m: _binding(m["what"], _name((module.parent / m["path"]).resolve())), text)
    text = _DEFAULT.sub("", _EXPORTED.sub("", text))
    _check(module, text)
    pairs = [*exports, *([f"default: {default['what']}"] if default else [])]
    return f"{_name(module)} = (() => {{\n{text}\nreturn {{ {', '.join(pairs)} }};\n}})();"


def _binding(what: str, source: str) -> str:
    """`import h, { a as b } from x` as constants."""
    named = _NAMES.search(what)
    default = _NAMES.sub("", what).strip(" ,\n\t")
    lines = [f"const {default} = {source}.default;"] if default else []
    if named:
        names = _RENAMED.sub(r"\1: \2", named["names"]).strip()
        lines.append(f"const {{ {names} }} = {source};")
    return " ".join(lines) + "\n"


def _modules_of(whole: Path) -> Iterator[Path]:
    return iter(sorted(whole.rglob("*.js")))


def _shared(start: Path, whole: Path) -> str:
    """The modules of a folder in one scope, each after those that it imports, except in circles."""
    order: list[Path] = []
    _visit(start, order, set())
    texts = []
    for module in order:
        text = module.read_text(encoding="utf-8")
        if module != start:
            text = _DEFAULT.sub("", _EXPORTED.sub("", _REEXPORT.sub("", _IMPORT.sub(_alias, text))))
            _check(module, text)
            texts.append(text)
    pairs = []
    for match in _REEXPORT.finditer(start.read_text(encoding="utf-8")):
        path = (start.parent / match["path"]).resolve()
        default = _DEFAULT.search(path.read_text(encoding="utf-8"))
        for name in filter(None, (part.strip() for part in match["what"].split(","))):
            given, _, known = name.partition(" as ")
            given = default["what"] if given == "default" and default else given
            pairs.append(f"{known or given}: {given}")
    return f"{_name(start)} = (() => {{\n{''.join(texts)}\nreturn {{ {', '.join(pairs)} }};\n}})();"


def _alias(match: re.Match[str]) -> str:
    """In one scope an import needs nothing, unless it gives another name."""
    named = _NAMES.search(match["what"])
    renamed = _RENAMED.findall(named["names"]) if named else []
    return "".join(f"const {new} = {old};\n" for old, new in renamed)


def _visit(module: Path, order: list[Path], seen: set[Path]) -> None:
    if module in seen:
        return
    seen.add(module)
    for path in _imported(module.read_text(encoding="utf-8")):
        _visit((module.parent / path).resolve(), order, seen)
    order.append(module)


def _check(module: Path, text: str) -> None:
    left = re.search(r"^(?:import|export)\b.*", text, re.MULTILINE)
    if left:
        raise ValueError(f"{module.name}: cannot be bundled: {left[0]}")
