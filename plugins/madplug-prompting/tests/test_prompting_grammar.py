"""Regular expressions as grammars, read back as regular expressions and tried on the same texts."""

import re

import pytest

from madplug_prompting.grammar import NoGrammarError, grammar_of

TEXTS = ["", "a", "b", "ab", "abc", "a\nb", "a\n", "\n", "-7", "12.5", "1.", "Final answer: (B)", "x" * 20, "é", "大",
         "why\nFinal answer: (C)", "a-b", "]", "^", "\\", '"', "A", "YES", "No", "a B_9", "say \"hi\"", "A b_9",
         "[AGREE] yes", "\t"]
CLOSING = r"[\s\S]{0,400}\nFinal answer: \((A|B|C)\)"
PATTERNS = [CLOSING,
    r"[\s\S]*\n", r"[\s\S]{0,400}\n", r"(?:[\s\S]*\n)?Final answer: \((A|B|C)\)", r"-?[0-9]+(\.[0-9]+)?",
    r"Final answer: \([A-D]\)", r"\[(?:AGREE|DISAGREE)\] [\s\S]{1,9}", r"", r"a|", r"a|b\n|", r"[^a]", r".*", r"(?s).*",
    r"(?s:.)b", r"^a$", r"\w{2,}", r"\D", r"\d+", r"(?a)[^\w\s]", r"[\]\-^\\]", r"(?:a(b)?c?){1,2}", r"a*?b?",
    r"(?P<x>a)b", r"(?i:yes|no)", r"(?i)[a-b]+", r"(?i)a b_9", r"(?i)[^a]", r"(?a)[^\W\d]*", r"(?:(?:[ab]+)*c?)*",
    r"(^a|b$)", r"say \"\w+\"", r"[é大]", r"\x41 \w\S{2}", r"x{20}", r"(ab|ac)+", r"\"", r"\\", r"[^\n]{1,200}"]


def as_expression(grammar):
    """A grammar of one rule is a regular expression, once its texts are groups and the spaces between them gone."""
    body = grammar.removeprefix("root ::= ")
    pieces = re.findall(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[^" \[]+', body)
    return re.compile("".join(f"(?:{_quoted(p[1:-1])})" if p[0] == '"' else p for p in pieces))


def _quoted(text):
    return re.sub(r"\\[nxuU][0-9A-F]*|(.)", lambda m: re.escape(m[1]) if m[1] else m[0], text)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_grammar_has_the_texts_that_its_pattern_matches(pattern):
    expression = as_expression(grammar_of(pattern))
    assert pattern != CLOSING or grammar_of(pattern) == r'root ::= [^\x00]{0,400} "\nFinal answer: (" ([ABC]) ")"'
    for text in TEXTS:
        assert bool(expression.fullmatch(text)) == bool(re.fullmatch(pattern, text)), text


@pytest.mark.parametrize(("bounds", "most", "end"), [
    ("{0,2000}", {}, "{0,2000}"), ("{0,2001}", {}, "*"), ("{1,9000}", {}, "+"), ("{3,9000}", {}, "{3,}"),
    ("{3}", {}, "{3}"), ("{0,1000}", {"most": 1000}, "{0,1000}"), ("{0,1001}", {"most": 1000}, "*"),
    ("{3,5000}", {"most": 1000}, "{3,}")])
def test_a_bound_beyond_what_llama_cpp_or_a_server_takes_becomes_none(bounds, most, end):
    assert grammar_of(f"[ab]{bounds}", **most) == f"root ::= [ab]{end}"


@pytest.mark.parametrize(("pattern", "reason"), [
    (r"(?=a)b", "assert"), (r"(?<!a)b", "assert"), (r"(a)\1", "groupref"), (r"a\bb", "anchors"), (r"a^b", "anchors"),
    (r"$a", "anchors"), (r"b(^a)", "anchors"), (r"(a$)+", "anchors"), (r"[a]{2001}", "2000"), (r"(", "unterminated"),
    (r"[a-", "unterminated"), ("[^\\x00-\U0010ffff]", "no character"), (r"a{99999999999}", "large")])
def test_what_no_grammar_says_is_named(pattern, reason):
    with pytest.raises(NoGrammarError, match=reason):
        grammar_of(pattern)
    with pytest.raises(NoGrammarError, match="more than 1000 repetitions"):
        grammar_of("a{1001}", most=1000)
