"""Kinds of entries of a JSON document, each with the words for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bfreplay.datasets.times import FIRST_TIME_US, LAST_TIME_US

_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Kind:
    """``words`` tell a person what is expected."""

    words: str
    holds: Callable[[Any], bool]


def one_of(*words: str) -> Kind:
    """One of a few texts."""
    return Kind("one of " + ", ".join(map(repr, words)), lambda value: isinstance(value, str) and value in words)


def or_null(kind: Kind) -> Kind:
    """The same, or null."""
    return Kind(f"{kind.words}, or null", lambda value: value is None or kind.holds(value))


def _is_number(value: Any) -> bool:
    """Finite, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value)


def _are_files(value: Any) -> bool:
    return isinstance(value, Sequence) and all(
        isinstance(each, Mapping) and isinstance(each.get("name"), str) and isinstance(each.get("sha256"), str)
        for each in value
    )


def _is_range(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(_is_whole, value)) and 0 <= value[0] < value[1]


def _object_of(kind: Kind, words: str) -> Kind:
    return Kind(
        f"an object of {words}",
        lambda value: isinstance(value, Mapping) and all(map(kind.holds, value.values())),
    )


TEXT = Kind("text", lambda value: isinstance(value, str))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a finite number", _is_number)
AMOUNT = Kind("a finite number of at least 0", lambda value: _is_number(value) and value >= 0)
COUNT = Kind("a whole number of at least 0", lambda value: _is_whole(value) and value >= 0)
TIME = Kind(
    "microseconds since 1970-01-01 UTC, in the years 1 to 9999",
    lambda value: _is_whole(value) and FIRST_TIME_US <= value <= LAST_TIME_US,
)
OBJECT = Kind("an object", lambda value: isinstance(value, Mapping))
COUNTS = _object_of(COUNT, "whole numbers of at least 0")
AMOUNTS = _object_of(AMOUNT, "finite numbers of at least 0")
NAMES = Kind("a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
LISTS_OF_NAMES = _object_of(NAMES, "lists of texts")
RANGE = Kind("two whole numbers, the first >= 0 and below the second", _is_range)
FILES = Kind("a list of objects with name and sha256", _are_files)
