"""Patterns that are compiled on first use."""

import re

import pytest

from madplug_prompting.patterns import regex


def test_a_pattern_does_what_a_compiled_one_does_and_is_compiled_on_first_use():
    text, lazy, compiled = "one two\nthree", regex(r"(?m)^(\w)\w+", re.I), re.compile(r"(?m)^(\w)\w+", re.I)
    for use in (lambda p: p.findall(text), lambda p: p.sub("-", text), lambda p: p.match(text)[1], lambda p: p.flags,
                lambda p: [m.span() for m in p.finditer(text, 3)], lambda p: p.fullmatch(text), lambda p: p.groups,
                lambda p: p.pattern):
        assert use(lazy) == use(compiled)
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")
