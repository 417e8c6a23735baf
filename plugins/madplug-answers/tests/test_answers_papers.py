"""Replies read as the papers' released code reads them (methods, section 1.1), faults included."""

from types import SimpleNamespace

import pytest

from madplug_answers import Choice, Math, Number, YesNo, papers
from madplug_testing import play

VECTORS = {
    "mallm_choice": {"Final Solution: B": "B", "final solution: b": "b", "I think A) is wrong, B) is right": "A",
    "final solution: The answer is B)": "T", "UNKNOWN": "N", "Final Solution: (B)": "B"},
    "som_number": {r"so \boxed{1,234}": "1234", r"\boxed{-5}": "5", "the total is 3. So 42.": "42.", "x {} y": None},
    "som_choice": {"(a) or (c)": "C", "it is 3 or 4": "4"},
    "eot_number": {"so the answer is 1,234.": "1234", "the answer is -3.5 dollars": "-3.5", "got 3 then 4.": "4"},
    "eot_choice": {"A? the answer is D, not E": "D"}, "eot_yesno": {"No. So the answer is Yes": "yes"},
    "madc_choice": {"(A) then (B)": "B", "(b)": None},
    "dylan_choice": {"(A), no: (c)": "C", "B) since A": "B", "the answer is B": None},
    "dylan_math": {r"so \boxed{\frac{1}{2}}, not 3": r"\frac{1}{2}", "So the answer is 67,600.": "67,600",
    "the final answer: 67,600": "600"}, "madc_math": {r"\boxed{1} and $\boxed{\dfrac{1}{2}.}$": r"\dfrac{1}{2}",
    r"\boxed{$x^{2}$}": "x^{2}", r"\boxed{\frac{\sqrt{2}}{3}}": r"\frac{\sqrt{2}}{3}",
    r"\boxed{5}, then \boxed{a{b{c{d}}}}": "5", "the answer is 5": None,
    "The answer is: (283)? No. The answer is: (284).": "284", r"So the answer is $(\frac{1}{2})$": r"\frac{1}{2}",
    "The answer is: (f(2) + 1)": "f(2) + 1", "The answer is: (1,234)": "1,234", "The answer is: (3, 4)": "(3, 4)",
    "The answer is: ()": None}, "slm_choice": {"(B) holds, in a way": "B", "B holds, in a way": "A"},
    "mmlu_pro_choice": {"The answer is (J). Or the answer is (A).": "J", "Answer: B, answer: C": "C",
    "The best option is (G)": None}}


@pytest.mark.parametrize(("rule", "text", "expected"), [
    (rule, *row) for rule, rows in VECTORS.items() for row in rows.items()])
def test_the_rules_give_what_the_papers_code_gives(rule, text, expected):
    assert getattr(papers, rule)(text) == expected


@pytest.mark.parametrize(("answers", "text", "key"), [
    (Choice(read_as="mallm"), "I think A) is wrong, B) is right", "A"),
    (Choice(read_as="mallm"), "final solution: b", "B"), (Choice(read_as="madc"), "Final answer: B", None),
    (Choice(), "I think A) is wrong, B) is right", "B"), (Number(read_as="som"), r"\boxed{-5}", "5"),
    (Number(), r"\boxed{-5}", "-5"), (Math(read_as="dylan"), "6 + 3 = 9. The answer is $9$, surely.", "9"),
    (Math(read_as="madc"), r"The answer is 7, or \boxed{\dfrac12}", "0.5"),
    (Math(read_as="madc"), "The answer is 7.", None), (YesNo(read_as="eot"), "No. So the answer is Yes", "yes")])
def test_a_debate_reads_as_its_answer_format_says(answers, text, key):
    assert play(replies=[text], answers=answers, agents=1).messages[0].key == key


def test_a_rule_that_reads_one_letter_excludes_several():
    with pytest.raises(ValueError, match="several = true excludes read_as = 'som'"):
        Choice(several=True, read_as="som")


def test_a_rule_that_cannot_read_what_agents_are_asked_for_is_for_recorded_replies():
    (said,) = Choice(read_as="mmlu_pro").check(SimpleNamespace(models=("m",)))
    assert said == ("read_as = 'mmlu_pro' cannot read the closing line that agents are asked for, such as "
                    "'Final answer: (B)'; use it with recorded replies only")
    assert list(Choice(read_as="mmlu_pro").check(SimpleNamespace(models=()))) == []
    asked = [*(Choice(read_as=name) for name in ("mallm", "som", "madc", "eot", "dylan", "slm")), YesNo(read_as="eot"),
        *(Number(read_as=name) for name in ("som", "eot")), Math(read_as="dylan"), Math(read_as="madc")]
    assert [problem for answers in asked for problem in answers.check(SimpleNamespace(models=("m",)))] == []


@pytest.mark.parametrize("rule", [getattr(papers, name) for name in VECTORS])
def test_long_hostile_texts_are_read_in_one_pass(rule, in_proportion):
    for piece in ("(", "{1,", "{", "9.", "final solution: ", "the answer is ", "answer: ", "A" * 9, "\\boxed{",
                  "\\boxed{{}"):
        in_proportion(rule, piece * 20_000)
