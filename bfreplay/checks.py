"""Values that a user gave, checked: what is wrong with one, what was expected, what was meant, and what to do."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable, Sequence
from typing import SupportsIndex

from bfreplay.errors import InputError

LARGEST = 2**53
"""Whole numbers up to here are exact as floating-point numbers too."""


def whole(key: str, value: object, least: int, most: float = LARGEST) -> int:
    """Return a whole number within bounds; ``most`` may be infinite.

    Raises
    ------
    InputError
        It is something else: text, a truth value, a fraction, or out of bounds.
    """
    expected = f"a whole number >= {least}" if most >= LARGEST else f"a whole number from {least} to {most}"
    try:
        if isinstance(value, bool) or not isinstance(value, SupportsIndex):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        fix = "write it without quotes" if isinstance(value, str) and value.isdigit() else "give a whole number"
        raise InputError(f"{key} is no whole number", column=key, value=value, expected=expected, fix=fix) from None
    if not least <= number <= most:
        side, fix = ("below", f"give {least} or more") if number < least else ("above", f"give {most} or less")
        problem = f"{key} is {side} {least if number < least else most}"
        raise InputError(problem, column=key, value=value, expected=expected, fix=fix)
    return number


def number(
    key: str, value: object, *, least: float | None = None, above: float | None = None, most: float = math.inf
) -> float:
    """Return a finite number within bounds: at least ``least`` or above ``above``, and at most ``most``.

    Raises
    ------
    InputError
        It is something else.
    """
    bounds = [
        *([f">= {least:g}"] if least is not None else []),
        *([f"> {above:g}"] if above is not None else []),
        *([f"<= {most:g}"] if most != math.inf else []),
    ]
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        fix = "write it without quotes, in digits with a decimal point" if isinstance(value, str) else "give a number"
        raise InputError(f"{key} is no number", column=key, value=value, expected=expected, fix=fix)
    too_low = (least is not None and value < least) or (above is not None and value <= above)
    if not math.isfinite(value) or too_low or value > most:
        problem = "out of range" if math.isfinite(value) else "not finite"
        raise InputError(f"{key} is {problem}", column=key, value=value, expected=expected, fix=f"give {expected}")
    return float(value)


def text(key: str, value: object) -> str:
    """Return text of one line that is not empty; InputError for anything else."""
    if isinstance(value, str) and not value.isprintable():
        raise InputError(
            f"{key} has a line break or another control character",
            column=key,
            value=value,
            expected="text of one line",
            fix="take it out",
        )
    if not isinstance(value, str) or not value.strip():
        fix = "put it in quotes" if not isinstance(value, str) else "write something between the quotes"
        raise InputError(f"{key} is no text", column=key, value=value, expected="text", fix=fix)
    return value


def one_of(key: str, value: object, choices: Sequence[str]) -> str:
    """Return one of the words in ``choices``; InputError with the nearest one for anything else."""
    if value not in choices:
        near = near_name(value, choices) if isinstance(value, str) else None
        raise InputError(
            f"{key} is unknown: {value!r}",
            column=key,
            value=value,
            expected="one of " + ", ".join(repr(choice) for choice in choices),
            fix=f"did you mean {near!r}?" if near else "write one of these words, in quotes",
        )
    return str(value)


def truth(key: str, value: object) -> bool:
    """Return true or false; InputError for anything else, 1, 0 and words among it."""
    if not isinstance(value, bool):
        raise InputError(
            f"{key} is neither true nor false",
            column=key,
            value=value,
            expected="true or false",
            fix="write true or false, in small letters and without quotes",
        )
    return value


def known_keys(given: Iterable[str], known: Sequence[str], what: str) -> None:
    """Refuse keys that ``what`` does not have; InputError with the nearest known one."""
    for key in given:
        if key not in known:
            near = near_name(key, known)
            raise InputError(
                f"{what} has no key {key!r}",
                column=key,
                value=key,
                expected=", ".join(known) or "no keys",
                fix=f"did you mean {near!r}?" if near else "drop the key, or move it to the table that has it",
            )


def belongs(key: str, value: object, setting: str, *, wanted: bool) -> None:
    """Refuse a key that is missing though ``setting`` needs it, or given though only ``setting`` reads it."""
    if wanted and value is None:
        raise InputError(
            f"{key} is missing: {setting} needs it", column=key, value=None, expected="a number", fix=f"add {key} = ..."
        )
    if not wanted and value is not None:
        raise InputError(
            f"{key} has no effect without {setting}",
            column=key,
            value=value,
            expected=f"{key} with {setting} only",
            fix=f"drop {key}, or write {setting}",
        )


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is most like, whatever its case and the spaces around it."""
    near = difflib.get_close_matches(name.strip().lower(), list(known), n=1)
    return near[0] if near else None
