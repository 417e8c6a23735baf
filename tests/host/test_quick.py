"""Records that are made quickly are ordinary frozen dataclasses otherwise."""

import copy
import inspect
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from madplug import Message
from madplug.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Point:
    """Two numbers and notes."""

    x: int
    y: int = 2
    notes: Mapping[str, Any] = field(default_factory=dict)


def test_arguments_and_defaults_are_those_of_the_fields():
    assert (Point(1).x, Point(1).y, Point(1).notes) == (1, 2, {})
    assert Point(1, y=5, notes={"a": 1}) == Point(1, 5, {"a": 1})
    assert list(inspect.signature(Point).parameters) == ["x", "y", "notes"]


def test_each_record_has_its_own_default_value():
    assert Point(1).notes is not Point(1).notes


@pytest.mark.parametrize("arguments", [(), (1, 2, {}, 4)])
def test_wrong_arguments_are_a_type_error(arguments):
    with pytest.raises(TypeError, match="__init__"):
        Point(*arguments)


def test_a_record_is_frozen_once_it_is_made():
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 3
    with pytest.raises(FrozenInstanceError):
        del point.y
    assert type(point) is Point


def test_a_record_pickles_copies_compares_and_replaces():
    point = Point(1, notes={"a": [1]})
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == point
    assert replace(point, x=4) == Point(4, notes={"a": [1]})
    assert hash(Message(0, 1, 0, 0, "improve", "A", data=())) == hash(Message(0, 1, 0, 0, "improve", "A", data=()))


def test_a_subclass_stays_one():
    class Named(Point):
        pass

    @dataclass(frozen=True, slots=True)
    class Third(Point):
        z: int = 3

    assert type(Named(1)) is Named
    assert Named(1).notes == {}
    assert Third(1, z=4) == Third(1, 2, {}, 4)
