"""The engine: one loaded model with parallel slots, called from threads."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from madplug import ModelError


@dataclass
class Answer:
    """What the engine said, collected token by token; calling it with a chunk returns whether to stop."""

    shown: Callable[[str], None] | None = None
    """Called with each piece of the reply."""
    stopped: threading.Event = field(default_factory=threading.Event)
    text: list[str] = field(default_factory=list)
    tokens: list[Mapping[str, Any]] = field(default_factory=list)
    """Tokens with their log-probabilities, where these were asked for."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = None
    error: Mapping[str, Any] | None = None

    def __call__(self, chunk: Mapping[str, Any]) -> bool:
        """Take a chunk of the reply."""
        self.error = chunk.get("error") or self.error
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or ():
            text = choice.get("delta", {}).get("content") or ""
            self.text.append(text)
            if text and self.shown is not None:
                self.shown(text)
            self.tokens += (choice.get("logprobs") or {}).get("content") or ()
            self.finish = choice.get("finish_reason") or self.finish
        return self.stopped.is_set()


class Engine:
    """A loaded model. It belongs to the process that loaded it: after a fork its threads are gone."""

    def __init__(self, path: Path, options: Any) -> None:
        """Load; takes a second or more, and the interpreter waits."""
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelError(f"{path}: is not a GGUF file")
        # Threads that spin while they wait would keep a core busy; the library reads this once, when it is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        import xllamacpp

        try:
            self._server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), path, options))
        except Exception as error:
            raise ModelError(f"{path}: the engine cannot load these weights ({error}); the file may be damaged, of a "
                             "kind that it does not know, or too large for the memory") from error
        self._process = os.getpid()

    def refuse_after_fork(self) -> None:
        """Raise `ModelError` in a process other than the one that loaded the model; a call there would never end."""
        if os.getpid() != self._process:
            raise ModelError("the model was loaded by another process and cannot be used after a fork; open it in the "
                             "process that uses it")

    def answer(self, body: Mapping[str, Any], answer: Answer) -> Answer:
        """Answer one request, in the calling thread, which releases the interpreter lock meanwhile."""
        try:
            self._server.handle_chat_completions({**body, "stream": True, "stream_options": {"include_usage": True}},
                                                 answer)
        except (RuntimeError, ValueError) as error:  # what the engine says about a body that it cannot read
            answer.error = {"code": 400, "message": str(error), "type": "invalid_request_error"}
        return answer


def _parameters(params: Any, path: Path, options: Any) -> Any:
    cores = available_cores()
    params.model.path = str(path)
    params.n_parallel = options.max_in_flight
    params.n_ctx = options.context * options.max_in_flight  # the engine divides it among its slots
    params.kv_unified = options.kv_unified
    params.cpuparams.n_threads = options.threads or max(1, cores - 1)
    params.cpuparams_batch.n_threads = options.batch_threads or cores
    params.n_gpu_layers = options.gpu_layers
    params.cache_prompt = options.prompt_cache
    params.cache_ram_mib = options.cache_mib if options.prompt_cache else 0
    params.prefill_assistant = False  # a reply of an agent that ends a prompt is not to be continued
    params.warmup = False
    params.verbosity = 0
    # The engine opens a port on this machine that is not needed: a random key keeps other programs out.
    params.api_keys = [secrets.token_urlsafe(32)]
    params.ui = False
    params.endpoint_slots = False
    return params


def available_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
