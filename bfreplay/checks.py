"""Checks of user values, with errors that name the value, the expectation and the fix."""

from __future__ import annotations

import difflib
import math
import operator
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import SupportsIndex

from bfreplay.errors import InputError

LARGEST = 2**53
"""Largest whole number below which all are exact as floating-point numbers."""

MOST_NODES = 10_000_000
"""Most nodes of a job: tables of its values have an entry for each count."""

MOST_TIME_US = 253_402_300_799_000_000
"""Latest time, the end of the year 9999, and as long before 1970 the earliest."""

MOST_EPOCHS = 1_000_000
"""Most epochs of a job whose profile has an entry for each."""

MOST_ROUNDS = 2_000_000
"""Most rounds of a replay: each is a decision."""

MOST_JOBS = 1_000_000
"""Most jobs that a generator makes."""

MOST_THREADS = 1_024
"""Most threads of a solver, and most processes of a sweep."""

LONGEST_NAME = 255
"""Largest length of a name in characters, as for hosts."""


def whole(key: str, value: object, least: int, most: float = LARGEST) -> int:
    """Return a whole number within bounds; ``most`` may be infinite.

    Raises
    ------
    InputError
        The value is text, a truth value, a fraction, or out of bounds.
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


def time_us(key: str, value_us: float) -> int:
    """Return microseconds as a whole number; ``InputError`` beyond the year 9999, or for no number."""
    if not abs(value_us) <= MOST_TIME_US:
        raise InputError(
            f"{key} is beyond the year 9999",
            column=key,
            value=value_us / 1e6,
            expected=f"at most {MOST_TIME_US / 1e6:g} s",
            fix="check its unit, and the rates or gaps before it",
        )
    return round(value_us)


def number(
    key: str, value: object, *, least: float | None = None, above: float | None = None, most: float = math.inf
) -> float:
    """Return a finite number within bounds: at least ``least`` or above ``above``, and at most ``most``.

    Raises
    ------
    InputError
        The value is not such a number.
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
    is_finite = abs(value) <= sys.float_info.max  # whole numbers may be larger than all others
    if not is_finite or too_low or value > most:
        problem = "out of range" if is_finite or isinstance(value, int) else "not finite"
        raise InputError(f"{key} is {problem}", column=key, value=value, expected=expected, fix=f"give {expected}")
    return float(value) + 0.0  # -0.0 is 0


def round_length(key: str, seconds: object) -> float:
    """Return the length of a round, a slot or a lease: a millisecond to a hundred years."""
    return number(key, seconds, least=0.001, most=36_525 * 86_400)


def decimal(text: str) -> float:
    """Return a number from text; ``ValueError`` for ``1_000``, for digits of other scripts, and beyond floats."""
    number = float(text)
    if "_" in text or not text.strip().isascii() or (math.isinf(number) and "n" not in text.lower()):
        raise ValueError(f"{text!r} is no number.")
    return number


def instance(key: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise ``InputError`` unless a value has this type, or one of these."""
    if not isinstance(value, kinds):
        raise InputError(f"{key} is of type {type(value).__name__}", column=key, value=value, expected=expected)


def text(key: str, value: object) -> str:
    """Return text of one line that is not empty; InputError for anything else."""
    if isinstance(value, str) and not value.isprintable():
        raise InputError(
            f"{key} has a line break or another control character",
            column=key,
            value=value,
            expected="text of one line",
            fix="remove it",
        )
    if not isinstance(value, str) or not value.strip():
        fix = "put it in quotes" if isinstance(value, int | float) else "give a name, or the path of a file, as text"
        if isinstance(value, str):
            fix = "write something between the quotes"
        raise InputError(f"{key} is no text", column=key, value=value, expected="text", fix=fix)
    return value


def is_name(value: object) -> bool:
    """Return whether a value can be the name of a node, a job, a model or the like."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        return False
    return value == value.strip() and value.isprintable()


def name(title: str, value: object, column: str, file: Path | None = None) -> str:
    """Return a name that ``is_name`` accepts; InputError for anything else."""
    if not is_name(value):
        raise unusable_name(title, value, column, file)
    return str(value)


def no_formula(title: str, name: str, file: Path) -> None:
    """Raise ``InputError`` for a name that a spreadsheet would run as a formula when it opens a CSV file."""
    if name[:1] in ("=", "+", "-", "@"):
        raise InputError(
            f"a {title} name cannot be written as CSV: a spreadsheet would run it as a formula",
            file=file,
            column=title,
            value=name,
            expected="a name that does not begin with = + - or @",
            fix=f"rename the {title}" + (", or write Parquet" if title == "node" else ""),
        )


def unusable_name(
    title: str, value: object, column: str, file: Path | None = None, row: int | None = None
) -> InputError:
    """Return the error for a name that ``is_name`` refuses; ``title`` is the named thing: node, job."""
    fault, fix = "it has a control character or another that no terminal shows", f"rename the {title}"
    if not isinstance(value, str) or not value:
        fault, fix = "it is no text, or empty", f"give the {title} a name"
    elif len(value) > LONGEST_NAME:
        fault = f"it has {len(value):,} characters"
    elif value.strip().isprintable():
        fault, fix = "it has spaces around it", "remove the spaces"
    return InputError(
        f"a {title} name is unusable: {fault}",
        file=file,
        row=row,
        column=column,
        value=value,
        expected=f"printable text of at most {LONGEST_NAME} characters without spaces around it",
        fix=fix,
    )


def one_of(key: str, value: object, choices: Sequence[str]) -> str:
    """Return one of the words in ``choices``; InputError with the nearest one for anything else."""
    if value not in choices:
        raise InputError(
            f"{key} is unknown: {value!r}",
            column=key,
            value=value,
            expected="one of " + ", ".join(repr(choice) for choice in choices),
            fix=nearest(str(value), choices, "write one of these words, in quotes"),
        )
    return str(value)


def truth(key: str, value: object) -> bool:
    """Return true or false; InputError for anything else, also for 1, 0 and words."""
    if not isinstance(value, bool):
        raise InputError(
            f"{key} is neither true nor false",
            column=key,
            value=value,
            expected="true or false",
            fix="write true or false without quotes (in Python True or False)",
        )
    return value


def known_keys(given: Iterable[str], known: Sequence[str], owner: str, kind: str = "key") -> None:
    """Raise ``InputError``, with the nearest known key, for a key that ``owner`` lacks; ``kind`` is its word."""
    for key in given:
        if key not in known:
            raise InputError(
                f"{owner} has no {kind} {key!r}",
                column=key if kind == "key" else None,
                value=key,
                expected=", ".join(known) or f"no {kind}s",
                fix=nearest(key, known, f"remove the {kind}, or move it to where it belongs"),
            )


def belongs(key: str, value: object, setting: str, *, is_needed: bool) -> None:
    """Raise ``InputError`` for a missing key that ``setting`` needs, or a given key that only ``setting`` reads."""
    if is_needed and value is None:
        raise InputError(
            f"{key} is missing: {setting} needs it", column=key, value=None, expected="a number", fix=f"add {key} = ..."
        )
    if not is_needed and value is not None:
        raise InputError(
            f"{key} has no effect without {setting}",
            column=key,
            value=value,
            expected=f"{key} with {setting} only",
            fix=f"remove {key}, or write {setting}",
        )


def near_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name nearest to a misspelt one, ignoring case and surrounding spaces; ``a-007`` for ``a-7``."""
    if len(name) > LONGEST_NAME:
        return None
    names, target = list(known), name.strip().lower()
    same = [name for name in names if _without_leading_zeros(name) == _without_leading_zeros(target)]
    near = same or difflib.get_close_matches(target, names, n=1, cutoff=cutoff)
    return near[0] if near else None


def nearest(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """Return ``"did you mean 'best'?"``, with the known name nearest to a misspelt one; without one ``otherwise``."""
    near = near_name(name, known, cutoff)
    return f"did you mean {near!r}?" if near else otherwise


def _without_leading_zeros(name: str) -> str:
    return re.sub(r"\d+", lambda number: str(int(number[0])), name)


_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def length_of_time(column: str, value: object, least: float = 1e-6) -> float:
    """Return ``"1h"``, ``"10min"``, ``"30s"``, ``"1d"`` or a number in seconds; ``InputError`` below ``least``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?\s*", str(value), re.ASCII)
        seconds = -1.0 if match is None else float(match[1]) * _UNITS[match[2] or "s"]
    if not least <= seconds < 1e9:
        raise InputError(
            f"{column} is no length of time",
            column=column,
            value=value,
            expected="a length of time such as 1h, 10min, 30s or 1d",
        )
    return seconds
