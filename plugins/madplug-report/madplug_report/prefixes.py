"""What a prefix cache could have served: how much of a prompt stands at the beginning of an earlier one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

BLOCK = 16
"""Tokens of a prompt that are cached together, as vLLM does."""
CHARACTERS = 4
"""Of a token, about, where there is no tokenizer."""
MOST = 1_000_000
"""Blocks in a cache: 16 million tokens, in about 150 MB of ours."""


class Prefixes:
    """The beginnings of the latest prompts, in blocks. encode: the tokens of a text; by default, characters stand for
    them."""

    def __init__(self, encode: Callable[[str], Sequence[int]] | None = None) -> None:
        self._encode = encode
        self._known: OrderedDict[int, None] = OrderedDict()
        self._left: dict[tuple[str, str], tuple[float, int]] = {}
        """Of requests for several samples, the share, and how many samples have not been asked about."""

    def share(self, model: str, messages: Iterable[Mapping[str, Any]], samples: int = 1) -> float:
        """The share of a prompt that an earlier one to the same model began with. Notes the prompt.

        samples: how many the request was for; it read its prompt once, and is asked about for each.
        """
        text = "".join(f"{message['role']}\n{message['content']}\n" for message in messages)
        share, left = self._left.pop((model, text), (0.0, 0))
        if not left:
            share, left = self._look(model, text), samples
        if left > 1:
            self._left[model, text] = share, left - 1
        return share

    def _look(self, model: str, text: str) -> float:
        tokens, size = (text, BLOCK * CHARACTERS) if self._encode is None else (self._encode(text), BLOCK)
        known = 0
        beginning = hash(model)
        for start in range(0, len(tokens) - size + 1, size):
            beginning = hash((beginning, *tokens[start:start + size]))
            if beginning in self._known:
                known += size
                self._known.move_to_end(beginning)
                continue
            self._known[beginning] = None
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return known / len(tokens) if tokens else 0.0
