"""Patterns that are compiled on first use."""

import re

import pytest

from madplug_prompting.patterns import regex


def test_a_pattern_does_what_a_compiled_one_does():
    text, lazy, compiled = "one two\nthree", regex(r"(?m)^(\w)\w+", re.I), re.compile(r"(?m)^(\w)\w+", re.I)
    assert lazy.findall(text) == compiled.findall(text)
    assert lazy.sub("-", text) == compiled.sub("-", text)
    assert [m.span() for m in lazy.finditer(text, 3)] == [m.span() for m in compiled.finditer(text, 3)]
    assert lazy.match(text)[1] == "o"
    assert lazy.fullmatch(text) is None
    assert lazy.groups == 1
    assert (lazy.pattern, lazy.flags) == (compiled.pattern, compiled.flags)


def test_a_pattern_is_compiled_on_first_use():
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")
