"""Pictures that plugins note with a debate, as the page gets them."""

import pytest

from madplug import Picture
from madplug.rows import plain
from madplug_view.texts import pictures

LEFT = Picture("Agents left", "line", ({"round": 1, "left": 5}, {"round": 2, "left": 3}), "round", "left")


@pytest.mark.parametrize(("notes", "given"), [
    ({"mine": {"pictures": [LEFT], "other": 1}}, [{**plain(LEFT), "plugin": "mine"}]),
    ({"mine": {"pictures": [{"title": "x", "kind": "script", "rows": []}]}}, []),
    ({"mine": "text", "other": {"pictures": None}}, [])])
def test_a_noted_picture_is_given_with_its_plugin_and_what_is_none_stays_with_the_notes(notes, given):
    assert pictures(plain(notes)) == given
