"""A number, exactly."""

import re

import pytest

from madplug import Sample
from madplug_answers import Number

ANY = Sample("q1", "How many?")
READ = {
    "upstream vectors without upstream's bugs": {  # which read "5", and an empty answer, in the second and third
        r"so \boxed{1,234}": "1234", r"\boxed{-5}": "-5", "x {} y": None, "the total is 3. So 42.": "42",
        "so the answer is 1,234.": "1234", "the answer is -3.5 dollars": "-3.5", "got 3 then 4.": "4"},
    "the shortest exact form": {
        "18.00": "18", "018": "18", ".5": "0.5", "5.": "5", "-0": "0", "1,234,567.50": "1234567.5", "1e3": "1000",
        "1.5e-3": "0.0015", r"3 \times 10^5": "300000", "3/4": "0.75", "1/3": "1/3", "2/6": "1/3", "-1/3": "-1/3",
        r"\frac{3}{4}": "0.75", r"-\dfrac{1}{3}": "-1/3", "50%": "50", "$5": "5", r"\$45{,}000": "45000",
        r"10\,000": "10000", "9007199254740993.1": "9007199254740993.1"},
    "a minus is a sign only where it is one": {
        "-7": "-7", "−7": "-7", "x=-3": "-3", "= - 5": "-5", "-$5": "-5", "$-5": "-5", r"-\$5": "-5",
        "the answer is -12": "-12", "10-5": "5", "3-5 apples": "5", "- 5 apples": "5", "a dash - 5": "5",
        "$45$-$90$": "90", "f(x)-2": "2"},
    "digits of every script count, superscripts do not": {
        "٣٫٥": "3.5", "５": "5", "१२": "12", "5²": "5", "½": "0.5", "1\u202f234": "1234", "Ⅷ": None},
    "a number of too many digits gives way to another one": {"It is 7. The answer is 10^10^10.": "7"},
    "a box wins over what follows it; the last one that is closed and has a number counts": {
        r"\boxed{17 hours}. This includes the 60 minutes of rest.": "17",
        r"\boxed{3}, \boxed{7} and \boxed{30 * 3 = 90": "7", r"\boxed{the answer is large}, about 12": "12"},
    "after the announcement the first number counts, and a sum as worked out, but no equation of words": {
        "The answer is 12, because 3 times 4 is 12 and not 13.": "12", "The answer is 20 + 8 + 20 = 48.": "48",
        "The answer is 8 since x = 3.": "8", r"Final Solution: $3 \cdot 14 = 42$": "42",
        "Final answer: 3 x 14 = 42": "42",
        "The answer is 6 apples + 2 green apples = 8 apples.": "8",
        r"Final answer: \left(2+3\right) \times 2 = 10": "10"},
    "what is discussed before the closing line is no answer": {
        "It would be 12.\nFinal answer: it cannot be determined": None, "12 or 13\nFinal answer: <13>": "13",
        "So it is 12.\nFinal answer:": "12"},
    "Markdown does not join factors": {"10*5": "5"},
    "thousands are grouped in any way": dict.fromkeys(
        ["1,500,000", "1 500 000", "1’500’000", "1'500'000", "1.500.000", "15,00,000"], "1500000"),
    "a comma that cannot separate thousands is a decimal comma": {
        "12,50": "12.5", "-€12,5": "-12.5", "Final answer: 12,50": "12.5", "The answer is 3,1416.": "3.1416",
        "0,125": "0.125", "1250,500": "1250.5", "1.250,50": "1250.5", "1 250,500": "1250.5", r"\boxed{12{,}5}": "12.5",
        "x = 2,5, so": "2.5"},
    "a comma that can is none, nor are those of pairs, lists, indices and sets": {
        "1,250": "1250", "12,500": "12500", "1,250.50": "1250.5", "(3,14)": "14", "(-3,14)": "14", "1,2,3": "3",
        "12,50,3": "3", "x_{1,25}": "25", r"\{1,25\}": "25", "1/2,5": "5"},
    "a mixed number is its sum": {
        "1 1/2": "1.5", "Final answer: 2 3/4 cups": "2.75", "Final answer: -1 1/2": "-1.5", "3 ½": "3.5",
        "Final answer: 2\u202f½": "2.5", "Final answer: 1\u00a01/2": "1.5", "Final answer: 1,234 1/2": "1234.5",
        "1\u202f234/2": "617", "1½": "1.5", "\\boxed{1\\frac{1}{3}}": "4/3", "It was 1/2, now 3/4": "0.75",
        "Final answer: 5 7/3": "5", "Final answer: 10 1/0": "10"},
    "what is not a number": dict.fromkeys(
        ["", "none", "GSM", "R2D2", "24/7/2024", "0/0", "1/0", "9" * 401, "1e999", "twelve"])}
NOTATIONS = {
    "0x10": "16", "0XfF": "255", "0x": "0", "1_000": "1000", "1_000_000.5": "1000000.5", "10^2": "100", "2^10": "1024",
    "2^{10}": "1024", "2^3^2": "512", "10^-2": "0.01", "10^399": "1" + "0" * 399, "1^1^1": "1",
    "１\uff0c２３４\uff0e５": "1234.5", **dict.fromkeys(["x^{2}", "x^2", "10^10^10", "10^{10^{10}}", "9^9^9^9", "1e999",
    "1e9999999", "1e-999999", "0^-1", "10^99999", "0x" + "f" * 5000, "9" * 5000, "1/" + "9" * 5000, "10^400"])}


def number(text: str) -> str | None:
    return Number().canonical(text, ANY)


@pytest.mark.parametrize(("text", "expected"), [row for rows in READ.values() for row in rows.items()])
def test_numbers_in_replies(text, expected):
    assert number(text) == expected


@pytest.mark.parametrize(("text", "expected"), NOTATIONS.items())
def test_large_numbers_and_other_notations(text, expected):
    assert number(text) == number(f"The answer is {text}") == expected


@pytest.mark.parametrize(("tolerance", "a", "b", "same"), [
    (None, "0.333333", "1/3", True), (None, "2", "2.000001", True), (None, "2", "2.0000011", False),
    (None, "-5", "5", False), (None, "1" * 400, "2" * 400, False), (0.5, "2", "2.5", True),
    (0, "2", "2.0000001", False)])
def test_numbers_within_the_tolerance_are_the_same(tolerance, a, b, same):
    assert Number(**({} if tolerance is None else {"tolerance": tolerance})).same(a, b, ANY) is same


def test_the_instruction_shows_the_closing_line():
    assert "`Final answer: <number>`" in Number().instruction(ANY)


@pytest.mark.parametrize("value", ["22", "-7", "0.25"])
def test_a_constrained_reply_may_end_with_a_full_stop(value):
    line = f"Final answer: {value}."
    assert re.fullmatch(Number().form(ANY)["regex"], line)
    assert number(line) == value
