"""What a component's options are made of: the base class, and the types a run file's values can have.

    class Options(Options):
        judge: ModelName = Field(description="who judges")                          # one of [models.NAME]
        embedder: Annotated[ServiceName, Offers(Embedder)] = Field(description="...")  # one of [services.NAME]
        inner: Nested[Visibility] = Field(description="what is narrowed down")       # a component: {use = ..., ...}
        path: RunPath = Field(description="the file")                                # relative to the run file
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializationInfo,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from madplug.errors import ComponentError

T = TypeVar("T")


class Options(BaseModel):
    """Base class of a component's options: frozen, and undeclared options are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, protected_namespaces=(),
                              allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name is not None:  # to Python, `True` is 1
            wanted = {*unions(cls.model_fields[info.field_name].annotation)}
            if wanted & {int, float} and bool not in wanted and Any not in wanted:
                raise PydanticCustomError("int_type" if int in wanted else "float_type", "expected a number")
        return value


def unions(annotation: Any) -> Iterator[Any]:
    """The members of a union, or the type itself."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from unions(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for part in get_args(annotation):
            yield from unions(part)
    else:
        yield annotation


# Marks

@dataclass(frozen=True)
class Names:
    """Marks an option that names a table of the run file: `Annotated[str, Names("tool")]`, one of `[tools.NAME]`."""

    kind: str
    """The kind of component in these tables: `model`, `service`, or one that a plugin defines."""


@dataclass(frozen=True)
class Offers:
    """Names the protocol that a service named by an option must implement, such as those in `madplug.services`.

    `Annotated[ServiceName, Offers(Embedder)]`: `madplug check` looks for each method of the protocol on the class of
    the service, where it must be an `async def`.
    """

    protocol: type[Any]


class _Volatile:
    """Marks an option that may change between two runs of the same study."""


class _RunPath:
    """Marks a path that counts in the study's identity by its content, not by its location."""


class _Nested:
    """Marks an option that is a component."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Accept the component, which the host has made from its table."""
        def made(value: Any) -> Any:
            if isinstance(value, source):
                return value
            given = " as {use = ...}; in a test, pass the component: inner=SeeAll()" \
                if isinstance(value, str | Mapping) else ""
            raise PydanticCustomError("nested_type", f"expected a {source.label}{given}")

        def table(made: Any, info: SerializationInfo) -> Any:
            return made.to_table(volatile=(info.context or {}).get("volatile", True))

        return core_schema.no_info_plain_validator_function(
            made, serialization=core_schema.plain_serializer_function_ser_schema(table, info_arg=True))


def _from_run_file(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a path cannot contain a NUL character")
    base = (info.context or {}).get("folder")
    return (Path(base) / value).absolute() if base and isinstance(value, str) and value else value


ModelName = Annotated[str, Names("model")]
"""An option that names one of the run file's `[models.NAME]`."""
ServiceName = Annotated[str, Names("service")]
"""An option that names one of the run file's `[services.NAME]`."""
RunPath = Annotated[Path, BeforeValidator(_from_run_file), _RunPath()]
"""A path; a relative one is relative to the run file and is made absolute. In the study's identity, a digest of the
file or folder takes the place of the path."""
NESTED = _Nested()
Nested = Annotated[T, NESTED]
"""`Nested[Visibility]`: an option that is a component. In the run file it is a slot, `{use = ..., ...}` or a name; in
`self.options` it is the component. Also `Nested[Visibility] | None` and `list[Nested[Metric]]`."""
Volatile = _Volatile()
"""`Annotated[int, Volatile]`: may change between two runs of the same study, such as an address or a rate limit."""


def marks(options: type[BaseModel], name: str) -> Iterator[Any]:
    """The marks of an option, on its type or nested inside it."""
    info = options.model_fields[name]
    yield from info.metadata
    yield from _inside(info.annotation)


def _inside(annotation: Any) -> Iterator[Any]:
    for part in get_args(annotation):
        yield part
        yield from _inside(part)


def is_path(options: type[BaseModel], name: str) -> bool:
    """Whether an option is a `RunPath`."""
    return any(isinstance(mark, _RunPath) for mark in marks(options, name))


def is_volatile(options: type[BaseModel], name: str) -> bool:
    """Whether an option may change between two runs of the same study."""
    return Volatile in options.model_fields[name].metadata


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


@dataclass(frozen=True)
class Naming:
    """An option whose value names tables of the run file."""

    option: str
    kind: str
    protocol: type[Any] | None = None

    def names(self, options: BaseModel) -> list[str]:
        """The names that these options give."""
        value = getattr(options, self.option)
        return [value] if isinstance(value, str) else list(value or ())


def naming(options: type[BaseModel]) -> Iterator[Naming]:
    """The options whose values name tables of the run file, and the protocol the named services must implement."""
    for name in options.model_fields:
        found = list(marks(options, name))
        kinds = [mark.kind for mark in found if isinstance(mark, Names)]
        if kinds:
            yield Naming(name, kinds[0], next((m.protocol for m in found if isinstance(m, Offers)), None))


def complete(options: type[BaseModel]) -> None:
    """Let pydantic read the types of all options. Raises `ComponentError` for one that no run file can give."""
    from pydantic.errors import PydanticUserError

    try:
        options.model_rebuild(force=False)
    except (PydanticUserError, NameError) as error:
        raise ComponentError(f"{options.__module__}.{options.__qualname__} has an option of a type that no run file "
                             f"can give: {str(error).splitlines()[0].rstrip('.')}; an option that is a component is "
                             "written `Nested[Visibility]`") from None


# The options of every model

class Price(Options):
    """USD per million tokens; unless `cached` is given, cached tokens cost as much as the rest of the prompt.

    Without one of the others, costs would be too low without a word, and `limits.cost_usd` too late.
    """

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class ModelOptions(Options):
    """The options that every model has."""

    max_in_flight: Annotated[int, Volatile] = Field(
        default=100, ge=1, le=100_000, description="the most requests at the same time")
    start_in_flight: Annotated[int | None, Volatile] = Field(default=None, ge=1, le=100_000, description=(
        "start with this many requests at the same time; grow up to max_in_flight while the endpoint keeps up, and "
        "halve when it answers 429. Unset: max_in_flight from the start"))
    requests_per_minute: Annotated[float | None, Volatile] = Field(
        default=None, gt=0, description="the most requests started per minute")
    tokens_per_minute: Annotated[float | None, Volatile] = Field(
        default=None, gt=0, description="the most tokens used per minute, estimated from the usage reported so far")
    attempts: Annotated[int, Volatile] = Field(
        default=8, ge=1, le=100, description="attempts at one request that reach the endpoint, the first included")
    empty_attempts: Annotated[int, Volatile] = Field(
        default=3, ge=1, le=100, description="attempts after which a reply without text counts: the agent is silent")
    deadline: Annotated[float, Volatile] = Field(
        default=900.0, gt=0, description="seconds after an attempt within which the next one has to begin")
    price: Annotated[Price | None, Volatile] = Field(
        default=None, description="USD per million tokens: {prompt = ..., completion = ..., cached = ...}")
