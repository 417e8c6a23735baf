"""Pictures that plugins note with a debate, as the page gets them."""

from madplug import Picture
from madplug.rows import plain
from madplug_view.texts import pictures

LEFT = Picture("Agents left", "line", ({"round": 1, "left": 5}, {"round": 2, "left": 3}), "round", "left")


def test_a_noted_picture_is_given_with_its_plugin():
    given = pictures(plain({"mine": {"pictures": [LEFT], "other": 1}}))
    assert given == [{**plain(LEFT), "plugin": "mine"}]


def test_what_is_no_picture_stays_with_the_notes():
    assert pictures({"mine": {"pictures": [{"title": "x", "kind": "script", "rows": []}]}}) == []
    assert pictures({"mine": "text", "other": {"pictures": None}}) == []
