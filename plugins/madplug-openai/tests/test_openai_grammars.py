"""Regular expressions as grammars, read back as regular expressions and tried on the same texts."""

import re

import pytest

from madplug_openai.gbnf import grammar_of

TEXTS = ["", "a", "A", "ab", "abc", "b\n", "a\nb", "Final Solution: B", "why\nFinal Solution: B", "x" * 30, "-12.50",
         "7", "yes", "NO", "a-b]c", 'say "hi"', "é", "大", "[x]", "^", "\\"]
PATTERNS = [r"a", r"a|b\n", r"[a-c]+", r"[^a]", r".*", r"(?s).*", r"[\s\S]*\nFinal Solution: [A-D]",
            r"[\s\S]{0,20}", r"-?\d+(\.\d+)?", r"(?i:yes|no)", r"(?i)[a-b]+", r"^a$", r"\w{2,}", r"\D", r"(?a)[^\W\d]*",
            r"[\]\-^a-c\\]+", r"(?:a(b)?){1,2}c?", r"a*?b?", r"", r"(a|)", r"say \"\w+\"", r"[é大]", r"\x41"]


def as_regex(grammar):
    """Our grammars have one rule of groups and classes: without its spaces it is a regular expression."""
    body = grammar.removeprefix("root ::= ")
    body = re.sub(r'(\[(?:[^\]\\]|\\.)*\])|(?:"")|( )', lambda m: m.group(1) or "", body)
    return re.compile(body)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_grammar_holds_what_its_pattern_matches(pattern):
    held = as_regex(grammar_of(pattern))
    for text in TEXTS:
        assert bool(held.fullmatch(text)) == bool(re.fullmatch(pattern, text)), text


def test_a_closing_line_reads_as_a_grammar():
    assert grammar_of(r"[\s\S]{0,500}\nAnswer: [A-C]") == (
        r"root ::= ([^\x00]){0,500} [\x0A] [A] [n] [s] [w] [e] [r] [:] [ ] [A-C]")


@pytest.mark.parametrize(("pattern", "times"), [("a{0,1000}", "{0,1000}"), ("a{0,1001}", "*"), ("a{1,5000}", "+"),
                                                ("a{3,5000}", "{3,}"), ("a{2}", "{2,2}")])
def test_a_bound_beyond_what_the_server_takes_becomes_none(pattern, times):
    assert grammar_of(pattern) == f"root ::= ([a]){times}"


@pytest.mark.parametrize("pattern", [r"(?=a)a", r"(a)\1", r"\bfoo", r"(", r"a{1001}", r"(?<!x)a"])
def test_what_no_grammar_can_say_is_left_out(pattern):
    assert grammar_of(pattern) is None
