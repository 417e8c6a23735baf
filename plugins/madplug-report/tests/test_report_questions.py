"""Debates on the same question have the same number."""

from madplug_report.questions import Questions


def test_questions_are_numbered_as_they_first_occur_and_differ_by_name_and_by_text():
    questions = Questions()
    for name, text in (("q2", "Why?"), ("q1", "Why?"), ("q2", "Why?"), ("q2", "How?"), ("q1", "Why?")):
        questions.add(name, (text,))
    numbers, names = questions.number()
    assert numbers.tolist() == [0, 1, 0, 2, 1]
    assert names.tolist() == [hash("q2"), hash("q1"), hash("q2")]


def test_no_debates_have_no_questions():
    numbers, names = Questions().number()
    assert len(numbers) == len(names) == 0
