"""The options that chat models behind a network have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, field_validator

from madplug import ModelOptions, Volatile


class ChatOptions(ModelOptions):
    """Sampling, time limits, and what else goes into a request."""

    model_config = ConfigDict(hide_input_in_errors=True)
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Fields of a request that `extra` must not set, in lower case."""

    temperature: float | None = Field(
        default=None, ge=0, le=10, description="randomness of sampling; default: the provider's own")
    top_p: float | None = Field(default=None, gt=0, le=1, description="share of the probability to sample from")
    max_tokens: int | None = Field(default=None, ge=1, description="the most tokens of one reply")
    stop: tuple[str, ...] | None = Field(default=None, description="texts that end a reply")
    extra: Mapping[str, Any] = Field(
        default_factory=dict, description="further fields of a request, such as reasoning_effort")
    keep_reasoning: Annotated[bool, Volatile] = Field(
        default=True, description="keep the reasoning that some models return, with the call's usage")
    timeout: Annotated[float, Volatile] = Field(
        default=300.0, gt=0, le=86_400, description="seconds before an attempt is abandoned")
    max_reply_mb: Annotated[float, Volatile] = Field(
        default=16.0, gt=0, le=1024, description="the largest reply in megabytes, unpacked; a larger one is refused")

    @field_validator("extra")
    @classmethod
    def _sets_nothing_reserved(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        taken = sorted(name for name in extra if name.lower() in cls.reserved)
        if taken:
            raise ValueError(f"must not set {', '.join(taken)}")
        return extra
