"""A question to several seats, as a run file in a directory of its own: the same question has the same directory."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from socket import create_connection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from madplug import Model, Paradigm, UserError, nearest, nearest_or_all, to_json
from madplug.study import Registry, ResolvedStudy, load, read
from madplug_ask.attachments import check_sizes
from madplug_ask.study import EMBEDDED, model_table
from madplug_prices.forecast import Forecast, forecast

METHOD, JURY = "council.three_stages", "council.jury"
WHOLE: Mapping[str, Any] = {"use": "answers.free", "instruction": "", "extract": "regex"}
"""The whole reply is the answer."""
PATIENCE: Mapping[str, Any] = {"attempts": 4, "deadline": 60.0}
"""The options of a seat's model unless it has its own: somebody is waiting."""
KEYS: Mapping[str, str] = {
    "OPENAI_API_KEY": "openai:gpt-4o-mini", "ANTHROPIC_API_KEY": "litellm:anthropic/claude-3-5-haiku-latest",
    "GEMINI_API_KEY": "litellm:gemini/gemini-2.0-flash", "MISTRAL_API_KEY": "litellm:mistral/mistral-small-latest",
    "XAI_API_KEY": "litellm:xai/grok-3-mini"}
"""A small model of each provider, by the variable that has its key."""
SERVERS: Mapping[str, str] = {"ollama": "http://127.0.0.1:11434/v1", "llamacpp": "http://127.0.0.1:8080/v1"}
"""Where local servers listen unless told otherwise."""
FREE: Mapping[str, float] = {"prompt": 0.0, "completion": 0.0}
MOST_LOCAL = 3
HERE = ("localhost", "127.0.0.1", "::1")
FOLDER = Path("runs") / "ask"


@dataclass(frozen=True)
class Council:
    """Who is asked, and how."""

    seats: Mapping[str, Mapping[str, Any]]
    """The slots of the seats' models, by name; `role` in one is what the seat is told that it is."""
    chair: str | None = None
    """The name of a seat, or of a further model in `others`."""
    method: str = METHOD
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A question to a council."""

    question: str
    council: Council
    choices: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    seed: int = 0
    max_usd: float | None = None
    max_seconds: float | None = None

    @property
    def table(self) -> dict[str, Any]:
        """The run file."""
        council, limits = self.council, {"cost_usd": self.max_usd, "seconds": self.max_seconds}
        jury = council.method == JURY
        debate: dict[str, Any] = {
            "paradigm": council.method, "agents": len(council.seats), "models": list(council.seats),
            "personas": [{"use": "personas.fixed", "personas": [
                {"name": name, "description": slot["role"]} if slot.get("role") else name
                for name, slot in council.seats.items()]}], "on_failed_agent": "drop"}
        if council.chair is not None:
            debate["decision"] = {"model": council.chair}
        if jury and len(council.seats) == 1:
            debate["decision"] = {"quorum": 1}
        made: dict[str, Any] = {"name": "ask", "seed": self.seed, "debate": debate, "models": {
                    name: {key: value for key, value in slot.items() if key != "role"}
                    for name, slot in {**council.seats, **council.others}.items()},
                "dataset": {"use": "ask.question", "question": self.question, "choices": list(self.choices),
                            "context": list(self.context), "images": list(self.images)},
                "limits": {k: v for k, v in limits.items() if v is not None}}
        made["dataset"] |= {} if self.max_usd is None else {"max_usd": self.max_usd}
        if not self.choices:
            made["answers"] = "answers.yesno" if jury else dict(WHOLE)
        return made

    @property
    def id(self) -> str:
        """The name of its directory: the beginning of the question, and a digest of all that matters to the answer."""
        own = [text for text in self.settings if not text.startswith("limits.")]
        told = to_json({**replace(self, max_usd=None, max_seconds=None).table, "settings": own})
        words = re.sub(r"\W+", "-", self.question.lower()).strip("-")[:40].strip("-")
        return f"{words or 'question'}-{blake2b(told.encode(), digest_size=5).hexdigest()}"

    def resolve(self, registry: Registry | None = None) -> ResolvedStudy:
        """The study. Raises `UserError` with every problem."""
        check_sizes(self.context)
        return load(self.table, self.settings, registry or Registry())

    def folder(self, base: Path = FOLDER, *, again: bool = False) -> Path:
        """Where it is kept. again: a directory that is not there yet."""
        found, number = base / self.id, 2
        while again and found.exists():
            found, number = base / f"{self.id}-{number}", number + 1
        return found


class Estimate(NamedTuple):
    """What a question may take, before anything is asked."""

    calls: int
    """At most, as `check` counts them."""
    usd: tuple[float, float] | None
    """US dollars, the least that is likely and the most; None if they are not known."""
    text: str
    """In words."""


def estimate(resolved: ResolvedStudy) -> Estimate:
    """What a question may take."""
    calls, found = resolved.plan.cells[0].worst_calls(), forecast(resolved) or Forecast()
    known = None if found.unpriced or found.problem else found.usd
    return Estimate(calls, known, f"at most {calls} calls (excluding retries), {found.amounts}")


# Who sits on a council

def seat(registry: Registry, slot: str | Mapping[str, Any], option: str) -> dict[str, Any]:
    """The slot of a seat: a table as in a run file, a component, or PLUGIN:MODEL. option: that named it."""
    return {**PATIENCE, **(model_table(registry, slot, option) if isinstance(slot, str) else slot)}


def council_of(registry: Registry, seats: Mapping[str, str | Mapping[str, Any]], chair: str | None = None,
               method: str | None = None) -> Council:
    """A council of these seats. chair: the name of a seat, or another model. Raises `UserError`."""
    if odd := next((name for name in seats if not re.fullmatch(r"[\w-]{1,60}", name)), None):
        raise UserError(f"--seat {odd}=...: a seat's name has letters, digits, _ and - only")
    made = {name: seat(registry, slot, f"--seat {name}=") for name, slot in seats.items()}
    if chair is None or chair in made:
        return Council(made, chair, method or METHOD)
    if ":" not in chair and (near := nearest(chair, made)):
        raise UserError(f"--chair {chair}: no seat has this name{near} Another model is written PLUGIN:MODEL")
    return Council(made, chair, method or METHOD, {chair: seat(registry, chair, "--chair ")})


def chosen(registry: Registry, council: str | None, seats: Mapping[str, str | Mapping[str, Any]] | None,
           chair: str | None = None, method: str | None = None, only: Sequence[str] = ()) -> Council:
    """The council with a name, or one of these seats, and another chair or method than its own where these are given.

    only: the seats that are asked; without it, all. Raises `UserError`.
    """
    if council and seats:
        raise UserError("--seat and --council: name the seats, or a council that has them")
    found = council_of(registry, seats) if seats else named_council(council or "auto", registry)
    if only:
        found = replace(found, seats={name: slot for name, slot in found.seats.items() if name in only})
        if chair is None and found.chair not in (None, *found.seats, *found.others):
            found = replace(found, chair=None)
    if chair:
        found = council_of(registry, found.seats, chair, found.method)
    found = replace(found, method=method or found.method)
    if found.chair is None or _has_chair(registry, found.method):
        return found
    if method and not chair:  # the council's chair is for its own method
        return replace(found, chair=None, others={})
    raise UserError(f"--chair {found.chair}: {found.method} has no chair; leave it out, or name a method with one, "
                    f"such as --use {METHOD}")


def _has_chair(registry: Registry, method: str) -> bool:
    """Whether the decision of a paradigm asks a model that can be named."""
    paradigm = registry.find("paradigm", method).component
    assert issubclass(paradigm, Paradigm)
    decision = paradigm.debate.get("decision")
    name = decision.get("use") if isinstance(decision, Mapping) else decision
    return name is None or "model" in registry.find("decision", str(name)).component.Options.model_fields


def offered(registry: Registry) -> dict[str, Any]:
    """The councils that can be asked, by name: their seats with models, US dollars per million tokens and what keeps
    this machine from asking them; their chairs and methods; never a key."""
    found: dict[str, Any] = {}
    for name in (*councils(), *(["auto"] if detected(registry) else []), *embedded(registry)):
        try:
            council = named_council(name, registry)
            models = Asked("?", council).resolve(registry).plan.models
        except UserError as error:
            found[name] = {"seats": {}, "chair": None, "method": METHOD, "problem": str(error)}
            continue
        seats = {seat: {"model": model_in(slot), "price": models[seat].price, "problem": problem_of(models[seat])}
                 for seat, slot in council.seats.items()}
        found[name] = {"seats": seats, "chair": council.chair, "method": council.method}
    return found


def problem_of(model: Model) -> str | None:
    """Why this machine cannot ask a model: it lacks a key, or a server that should run here does not answer."""
    where = urlsplit(getattr(model.options, "base_url", ""))
    if where.hostname in HERE:
        try:
            create_connection((where.hostname, where.port or 80), timeout=0.5).close()
        except OSError:
            return f"nothing answers at {where.netloc}"
    return model.missing()


def model_in(slot: Mapping[str, Any]) -> str:
    """Which model a slot has, in words."""
    return str(slot.get("model") or slot.get("weights") or slot["use"])


def named_council(name: str, registry: Registry, environ: Mapping[str, str] = os.environ) -> Council:
    """A council of the user's configuration, `auto`: whatever can be reached, or `embedded`. Raises `UserError`."""
    if name == "auto":
        found = detected(registry, environ)
        if not found:
            wanted = "; ".join(f"{key}, madplug-{model.partition(':')[0]}" for key, model in KEYS.items())
            less = "" if embedded(registry) else ": pip install 'madplug-llamacpp[qwen-0-5b]'"
            raise UserError(f"--council auto: no key of a provider is set, or its plugin is not installed ({wanted}), "
                            f"and no local server answers ({', '.join(SERVERS.values())}); name seats with --seat "
                            f"NAME=MODEL, or ask the embedded model with --council embedded{less}")
        return council_of(registry, found)
    known = {**embedded(registry), **councils(environ)}
    if name == "embedded" and name not in known:
        raise UserError("--council embedded: the embedded model is not installed; pip install "
                        "'madplug-llamacpp[qwen-0-5b]'")
    if name not in known and "," in name:
        raise UserError(f"--council {name}: takes the name of one council; for a council of these models, give each a "
                        f"seat: {' '.join(f'--seat {one}' for one in map(str.strip, name.split(',')) if one)}")
    if name not in known:
        raise UserError(f"--council {name}: there is no [{name}] in {configuration(environ)}"
                        f"{nearest_or_all(name, [*known, 'auto'])}")
    table = known[name]
    if not isinstance(table, dict) or not isinstance(table.get("seats"), dict) or table.keys() - _KEYS:
        raise UserError(f"{configuration(environ)}: [{name}] has a table 'seats' of models by name, and, if wanted, "
                        "'chair' and 'method', and nothing else")
    return council_of(registry, table["seats"], table.get("chair"), table.get("method"))


_KEYS = {"seats", "chair", "method"}


def configuration(environ: Mapping[str, str] = os.environ) -> Path:
    """The file of named councils."""
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".config"
    return Path(base) / "madplug" / "councils.toml"


def councils(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The named councils, as they are written. Raises `UserError` if the file cannot be read."""
    path = configuration(environ)
    found = read(path, environ={}) if path.exists() else {}
    return {name: table for name, table in found.items() if (name, table) != ("name", path.stem)}  # a run file's name


def embedded(registry: Registry) -> dict[str, Any]:
    """The council of the embedded model, where its plugin is installed: it shows how a council works."""
    installed = any(offer.name == EMBEDDED for offer in registry.offers("model"))
    return {"embedded": {"seats": {"one": EMBEDDED, "two": EMBEDDED}}} if installed else {}


def detected(registry: Registry, environ: Mapping[str, str] = os.environ) -> dict[str, str | Mapping[str, Any]]:
    """Seats for the keys that are set, of plugins that are installed, and the models of local servers that answer."""
    found: dict[str, str | Mapping[str, Any]] = {
        re.sub(r"_API_KEY$", "", key).lower(): model for key, model in KEYS.items()
        if environ.get(key) and registry.of_plugin(model.partition(":")[0])}
    for server, url in SERVERS.items():
        for model in _served(url)[:MOST_LOCAL]:
            name = re.sub(r"[^\w-]+", "-", f"{server}-{model}")[:60]
            found[name] = {"use": "openai.chat", "model": model, "base_url": url, "price": FREE}
    return found


def _served(url: str) -> list[str]:
    """The models of a server on this machine; none if it does not answer at once."""
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=0.5) as reply:
            return [str(model["id"]) for model in json.load(reply)["data"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def parsed_seats(words: Sequence[str]) -> dict[str, str]:
    """`NAME=MODEL` each; without a name, the model's last word is one."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, model = word.partition("=")
        name, model = (name, model) if equals else (re.sub(r"[^\w-]+", "-", re.split(r"[:/]", word)[-1]), word)
        if not name or not model or name in found:
            raise UserError(f"--seat {word}: " + ("is there twice" if name in found else "is not NAME=MODEL"))
        found[name] = model
    return found
