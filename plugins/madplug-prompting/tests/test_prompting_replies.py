"""Reading replies: agreement, JSON in prose, confidences."""

import pytest

from madplug_prompting.replies import read_agreement, read_json, read_percent, read_share, spoken, without_stances


@pytest.mark.parametrize(("text", "agrees"), [
    ("[AGREE]", True), ("[DISAGREE] no", False), ("I agree.", True), ("I disagree with Bob but [AGREE]", True),
    ("No agreement yet", False), ("Yes", False), ("[AGREE] there is no disagreement", True),
    ("I thought [DISAGREE], but now [AGREE]", True), ("**[DISAGREE]** Bob wrote [AGREE] without a reason.", False),
    ("I do not [AGREE] with Bob.", False), ("I cannot [disagree]", True), ("［AGREE］", True),
    ("I do not agree", False),
    ("I can't really agree with that", False), ("I agree, though others disagree", False), ("AGREED!", True),
    ("Agreed. The choir sang.", True), ("I am in agreement with the solution.", True), ("I am not in agreement", False),
    ("They agreed on B before", False), ("<think>Maybe I agree? [AGREE]</think>[DISAGREE] It is C.", False),
    ("<think>I disagree at first.</think>I agree.", True),
    # what is quoted, asked or conditional is no agreement
    *((text, False) for text in (
        "> [AGREE]\n\nNo, that is wrong.", "\"[AGREE]\" is what Bob said. I do not.", "Ann: 'I agree.' She is wrong.",
        "[DISAGREE]\n\n> Bob: [AGREE]", "I no longer agree.", "I hardly agree", "I refuse to agree", "Do I agree? No.",
        "I am unable to agree", "I would agree if it were right", "I'd agree if it were shorter",
        "It is unclear whether they agree",
        "Nobody can agree")),
    # marks around the own agreement do no harm
    *((text, True) for text in (
        "'[AGREE]'", "\"[AGREE]\"", "> [AGREE]", "Ann says \"no\". [AGREE]", "I'd agree.",
        "I agree, and would agree again.", "\"I agree.\""))])
def test_the_tag_at_the_beginning_or_the_last_one_decides_and_words_only_without_a_tag(text, agrees):
    assert read_agreement(text)[0] is agrees


@pytest.mark.parametrize(("text", "agrees"), [
    ("[AGREE]", True), ("[DISAGREE] no", False), ("I agree.", True), ("I disagree with Bob but [AGREE]", False),
    ("No agreement yet", True), ("Yes", False), ("[AGREE] there is no disagreement", False)])
def test_legacy_agreement_is_the_authors_rule_with_its_mistakes(text, agrees):
    assert read_agreement(text, "legacy")[0] is agrees


@pytest.mark.parametrize("text", ["", "Yes", "No agreement yet", "Parser, set agreement = true",
                                  "They agreed on B before", "I do not disagree with you", "[PARTIALLY AGREE] but B"])
def test_agreement_that_cannot_be_read_is_none_and_said_so(text):
    assert read_agreement(text) == (False, True)


@pytest.mark.parametrize(("text", "found"), [
    ('{"answer": "B"}', {"answer": "B"}), ('{"answer": "B"}<think>or {"answer": "C"}?', {"answer": "B"}),
    ('```json\n{"answer": 3}\n```', {"answer": 3}),
    ('Like {"answer": "X"}: here is mine {"answer": "B"}', {"answer": "B"}),
    ("{answer: 'B', reasoning: 'because'", {"answer": "B", "reasoning": "because"}),
    ('{"answer": "B", "reasoning": "cut off he', {"answer": "B", "reasoning": "cut off he"}),
    ('[{"answer": "B"}, {"answer": "C"}]', {"answer": "B"}), ('[AGREE] as in [1]: {"answer": "B"}', {"answer": "B"}),
    ('{"a": {"x": 1}, "b": {"x": 2},}', {"a": {"x": 1}, "b": {"x": 2}}),
    ('{"a": "left,]", "b": [1, 2, ], }', {"a": "left,]", "b": [1, 2]}),
    ('{"a": "\\",}", "b": 1,}', {"a": '",}', "b": 1}), ("plain prose", None), ("[1, 2]", None), ("", None),
    ("the set {1, 2}", None), (r"\frac{1}{2}", None)])
def test_json_is_found_in_prose_and_repaired(text, found):
    assert read_json(text) == found


@pytest.mark.parametrize("text", ["{" * 200_000, '{"a":' * 40_000, "not " * 50_000, "{" + " " * 200_000,
    '{"a": [' * 30_000, '"{' * 100_000, "［" * 200_000, '{"' + '\\"' * 100_000, "{" + ", " * 100_000, "\x00" * 200_000])
def test_a_huge_hostile_reply_is_read_in_proportion(text, in_proportion):
    in_proportion(read_json, text)
    in_proportion(read_agreement, text)
    assert read_agreement(text)[0] is False


@pytest.mark.parametrize(("value", "share"), [
    ("0.5%", 0.005), ("900%", None), (0.8, 0.8), ("0.8", 0.8), ("80 %", 0.8), (80, 0.8), (1, 1.0),
    (0, 0.0), ("high", None), (None, None), (True, None), (-1, None),
    (1000, None), (10 ** 400, None), (float("nan"), None), ("1e400", None), ("9" * 5000, None)])
def test_confidence_is_a_share_or_nothing(value, share):
    assert read_share(value) == share


@pytest.mark.parametrize(("text", "share"), [
    ("1", 0.01), ("1%", 0.01), ("100", 1.0), ("0", 0.0), ("0.8", 0.8), ("1.0", 1.0), ("80 %", 0.8), ("101", None)])
def test_a_whole_number_that_was_asked_for_up_to_100_is_a_percentage(text, share):
    assert read_percent(text) == share


@pytest.mark.parametrize(("text", "said"), [
    ("  It is B. ", "  It is B. "), ("<think>A?</think>\n\nIt is B.", "It is B."), ("A?</think>It is B.", "It is B."),
    ("<thinking>A? B", ""), ("It is B.<think>or not</think>", "It is B.")])
def test_what_is_said_has_no_thoughts_and_an_answer_no_stance(text, said):
    assert spoken(text) == said
    assert without_stances("**[DISAGREE]** The choir. [agree]") == "The choir."
