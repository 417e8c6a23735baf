"""Expressions in LaTeX."""

import importlib.util
import sys
from contextlib import suppress

import pytest

from madplug import Sample
from madplug_answers import Math
from madplug_answers.equivalence import Checker

ANY = Sample("q1", "What is it?")
needs_math_verify = pytest.mark.skipif(importlib.util.find_spec("math_verify") is None,
                                       reason="math-verify is not installed (extra 'math')")


def spelling(text: str) -> str | None:
    return Math().canonical(text, ANY)


@pytest.mark.parametrize("same", [
    [r"\frac{1}{2}", r"\dfrac{1}{2}", r"\tfrac12", "1/2", "0.5", ".50", r"\frac{2}{4}", r"x = \frac{1}{2}",
    r"$\frac12$"], [r"\frac{-1}{3}", r"-\frac{1}{3}", "-1/3", r"-\frac13"],
    ["90", r"90^\circ", r"90^{\circ}", "90°", "90."],
    ["5", r"5 \text{ cm}", r"5\text{ cm}^2", "5 dollars", r"\$5", "005", "5.0"], ["50", r"50\%", "50%"],
    ["10000", "10,000", r"10,\!000", "10{,}000"], [r"\sqrt{2}", r"\sqrt2"], [r"11\sqrt{2}", r"11 \sqrt 2"],
    ["evelyn", "Evelyn", r"\text{Evelyn}", r"\text{ Evelyn }", '"Evelyn"'], ["(3,4]", r"\left( 3, 4 \right]", "(3, 4]"],
    ["284", "(284)", r"\left(284\right)", "{284}", r"\boxed{(284)}", "The answer is: (284)", "Final answer: (284)"],
    ["2.5", r"2\frac{1}{2}", r"2\tfrac12", r"2 \frac{1}{2}", "2 1/2", "The answer is $2 1/2$.", r"\frac{5}{2}"],
    [r"-\frac{7}{3}", r"-2\frac{1}{3}", "-2 1/3", "-7/3"], ["-3", "(-3)"], ["x+1", "(x+1)"],
    ["7", "seven", r"\text{seven}", "(seven)", "Seven"], ["21", "twenty-one"],
    ["284", "two hundred eighty-four", "(two hundred and eighty-four)", r"\text{two hundred eighty-four}"],
    ["100", "one hundred"], ["12045", "twelve thousand forty-five"], ["200000", "two hundred thousand"],
    ["10", "(10 inches)", "10 inches"], ["7", r"The answer is: \left(7\right)"],
    ["nosolution", r"\text{no solution}", "No solution"], [r"2\pi", r"2 \pi", r"x=2\pi"], [r"x\le3", r"x \leq 3"],
    ["7", "3+4=7"], [r"\frac{\sqrt{3}}{3}", r"\frac{\sqrt3}3"],
    [r"\begin{pmatrix}\frac{1}{2}\2\end{pmatrix}", r"\begin{pmatrix} 1/2 \\ 2 \end{pmatrix}"]])
def test_spellings_of_one_expression(same):
    assert {spelling(text) for text in same} == {spelling(same[0])}
    assert spelling(same[0]) is not None


@pytest.mark.parametrize(("a", "b"), [
    ("1", "-1"), ("(1,2)", "1,2"), ("(1)(2)", "12"), ("[5]", "5"), (r"\{5\}", "5"), ("a", "A"), ("x^2", "x2"),
    (r"\frac{1}{2}", r"\frac{2}{1}"), ("12", "1 + 2"), ("10*5", "105"),
    (r"\begin{pmatrix} 1 \\ 23 \end{pmatrix}", r"\begin{pmatrix} 12 \\ 3 \end{pmatrix}"), ("x^2 + y^2 = 4", "4"),
    ("hundred", "100"), ("twenty hundred", "2000"), ("three four", "34")])
def test_different_expressions_stay_different(a, b):
    assert spelling(a) != spelling(b)


@pytest.mark.parametrize(("text", "expected"), [
    (r"Thus $\boxed{\dfrac{3}{17}}$, as $x=4$.", r"\frac{3}{17}"),
    (r"\boxed{1} and then \boxed{\{1, \{2\}\}}", r"\{1,\{2\}\}"),
    (r"The answer is $\frac{13}{15}$ of the pie.", r"\frac{13}{15}"), ("Therefore, the class average is 84.", "84"),
    ("The answer is that there are 5 students in both clubs.", "5"), ("The answer is circle.", "circle"),
    ("Final answer: \\boxed{42}", "42"), ("**Final answer:** $x = -3$", "-3"),
    ("As $x = 3$, so 4.\n\nFinal answer: the number of the apples", None),
    ("It is a circle.\n\nFinal Solution: 2\\pi", "2\\pi"), ("Final Solution: 3", "3"),
    (r"so $abc$ is then equal to $-\frac{1000}{27}$.", r"-\frac{1000}{27}"),
    ("We see that it has to be 4114_6 in base six.", "4114"), ("The answer is correct. So I say it is 9 again.", "9"),
    ("", None), (r"\boxed{}", r"\boxed{}")])
def test_reading_a_reply(text, expected):
    assert spelling(text) == expected


@pytest.mark.parametrize("text", ["10^10^10", "1e999", "9" * 1500, "10^{10^{10}}", "(" * 1000, "0x10", "１２３"])
def test_large_numbers_are_compared_as_they_are_written(text):
    assert (key := spelling(text)) is not None
    assert spelling(key) == key


def test_answers_keep_their_latex_and_by_default_only_their_spelling_counts():
    assert Math().stated(r"so \boxed{\dfrac{1}{2}}", ANY) == r"\dfrac{1}{2}"
    assert not Math().same(r"\sqrt{8}", r"2\sqrt{2}", ANY)


@pytest.fixture(scope="module")
def symbolic():
    """One for the module: loading computer algebra takes a second or more."""
    return Math(equality="symbolic", seconds=2)


@needs_math_verify
@pytest.mark.parametrize(("a", "b", "same"), [
    (r"\sqrt{8}", r"2\sqrt{2}", True), (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}", True),
    (r"\sqrt{8}", r"3\sqrt{2}", False), (r"\frac{", "}{", False),
    # numbers that cannot be worked out are not equal
    ("10^{10^{10}}", "1", False), ("9^{9^{9^{9}}}", "2", False), ("9" * 1500, "1", False), ("1e999999999", "1", False)])
def test_symbolic_equality_sees_through_the_spelling(symbolic, a, b, same):
    assert symbolic.same(a, b, ANY) is same
    assert symbolic.same(r"\sqrt{8}", r"2\sqrt{2}", ANY)


@needs_math_verify
def test_a_comparison_that_takes_too_long_is_not_equal_and_the_next_one_works(symbolic):
    symbolic.same("1", "2", ANY)
    symbolic._checker._seconds = 0.0
    assert not symbolic.same(r"\sqrt{50}", r"5\sqrt{2}", ANY)
    symbolic._checker._seconds = 5.0
    assert symbolic.same(r"\sqrt{18}", r"3\sqrt{2}", ANY)


def test_a_missing_math_verify_is_said_before_the_run(monkeypatch):
    monkeypatch.setattr("madplug_answers.mathematics.find_spec", lambda name: None)
    assert list(Math().check(None)) == []
    assert "pip install" in "".join(Math(equality="symbolic").check(None))


MARK = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


def test_a_module_in_the_current_directory_is_not_executed(tmp_path, monkeypatch):
    for name in ("math_verify", "sympy", "json"):
        (tmp_path / f"{name}.py").write_text(MARK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    with suppress(RuntimeError):  # without math-verify the process ends at once, which is enough here
        Checker(20).equal("1/2", r"\frac{1}{2}")
    assert not list(tmp_path.glob("*.ran"))
