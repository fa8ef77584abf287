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


def refusal(key: str, value: object, fault: str, expected: str, fix: str | None = None) -> InputError:
    """Return the error for the value of a key or an option, of which ``fault`` says what is wrong: "is no number"."""
    return InputError(f"{key} {fault}", column=key, value=value, expected=expected, fix=fix)


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
        remedy = "write it without quotes" if isinstance(value, str) and value.isdigit() else "give a whole number"
        raise refusal(key, value, "is no whole number", expected, remedy) from None
    if number < least:
        raise refusal(key, value, f"is below {least}", expected, f"give {least} or more")
    if number > most:
        raise refusal(key, value, f"is above {most}", expected, f"give {most} or less")
    return number


def time_us(key: str, value_us: float) -> int:
    """Return microseconds as a whole number; ``InputError`` beyond the year 9999, or for no number."""
    if not abs(value_us) <= MOST_TIME_US:
        expected, remedy = f"at most {MOST_TIME_US / 1e6:g} s", "check its unit, and the rates or gaps before it"
        raise refusal(key, value_us / 1e6, "is beyond the year 9999", expected, remedy)
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
    expected = f"a finite number {' and '.join(bounds)}".strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        fix = "write it without quotes, in digits with a decimal point" if isinstance(value, str) else "give a number"
        raise refusal(key, value, "is no number", expected, fix)
    too_low = (least is not None and value < least) or (above is not None and value <= above)
    is_finite = abs(value) <= sys.float_info.max  # whole numbers may be larger than all others
    if not is_finite or too_low or value > most:
        fault = "is out of range" if is_finite or isinstance(value, int) else "is not finite"
        raise refusal(key, value, fault, expected, f"give {expected}")
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
        raise refusal(key, value, f"is of type {type(value).__name__}", expected)


def text(key: str, value: object) -> str:
    """Return text of one line that is not empty; InputError for anything else."""
    if not isinstance(value, str):
        remedy = "put it in quotes" if isinstance(value, int | float) else "give a name, or module:Class, as text"
        raise refusal(key, value, "is no text", "text", remedy)
    if not value.isprintable():
        raise refusal(key, value, "has a line break or another control character", "text of one line", "remove it")
    if not value.strip():
        raise refusal(key, value, "is no text", "text", "write something between the quotes")
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
    fault, remedy = "it has a control character or another that no terminal shows", f"rename the {title}"
    if not isinstance(value, str) or not value:
        fault, remedy = "it is no text, or empty", f"give the {title} a name"
    elif len(value) > LONGEST_NAME:
        fault = f"it has {len(value):,} characters"
    elif value.strip().isprintable():
        fault, remedy = "it has spaces around it", "remove the spaces"
    return InputError(
        f"a {title} name is unusable: {fault}",
        file=file,
        row=row,
        column=column,
        value=value,
        expected=f"printable text of at most {LONGEST_NAME} characters without spaces around it",
        fix=remedy,
    )


def one_of(key: str, value: object, choices: Sequence[str]) -> str:
    """Return one of the words in ``choices``; InputError with the nearest one for anything else."""
    if value not in choices:
        remedy = nearest(str(value), choices, "write one of these words, in quotes")
        raise refusal(key, value, f"is unknown: {value!r}", "one of " + ", ".join(map(repr, choices)), remedy)
    return str(value)


def truth(key: str, value: object) -> bool:
    """Return true or false; InputError for anything else, also for 1, 0 and words."""
    if not isinstance(value, bool):
        remedy = "write true or false without quotes (in Python True or False)"
        raise refusal(key, value, "is neither true nor false", "true or false", remedy)
    return value


def local_path(key: str, value: object) -> str:
    """Return the path of a file, also from the URL ``sqlite:///FILE``; InputError for another URL, without password."""
    path = text(key, value).removeprefix("sqlite:///")
    if "://" in path:
        copy = "to copy a study: optuna.copy_study(from_study_name=..., from_storage=..., to_storage='sqlite:///FILE')"
        raise refusal(key, path.partition("://")[0] + "://...", "is a URL", "a file on this machine", copy)
    return path


def known_keys(given: Iterable[str], known: Sequence[str], owner: str, kind: str = "key") -> None:
    """Raise ``InputError``, with the nearest known key, for a key that ``owner`` lacks; ``kind`` is its word."""
    for key in given:
        if key not in known:
            raise InputError(
                f"{owner} has no {kind} {key!r}",
                column=key if kind == "key" else None,
                value=key,
                expected=", ".join(known) or f"no {kind}s",
                fix=nearest(str(key), known, f"remove the {kind}, or move it to where it belongs"),
            )


def belongs(key: str, value: object, setting: str, *, is_needed: bool) -> None:
    """Raise ``InputError`` for a missing key that ``setting`` needs, or a given key that only ``setting`` reads."""
    if is_needed and value is None:
        raise refusal(key, None, f"is missing: {setting} needs it", "a number", f"add {key} = ...")
    if not is_needed and value is not None:
        remedy = f"remove {key}, or write {setting}"
        raise refusal(key, value, f"has no effect without {setting}", f"{key} with {setting} only", remedy)


def near_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name nearest to a misspelt one, ignoring case and surrounding spaces; ``a-007`` for ``a-7``."""
    if len(name) > LONGEST_NAME:
        return None
    names, target = list(known), name.strip().lower()
    same_names = [name for name in names if _without_leading_zeros(name) == _without_leading_zeros(target)]
    same_names = same_names or [name for name in names if name in target.split("_")]  # with_bound: bound, not without
    nearest_names = same_names or difflib.get_close_matches(target, names, n=1, cutoff=cutoff)
    return nearest_names[0] if nearest_names else None


def nearest(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """Return ``"did you mean 'best'?"``, with the known name nearest to a misspelt one; without one ``otherwise``."""
    nearest_name = near_name(name, known, cutoff)
    return f"did you mean {nearest_name!r}?" if nearest_name else otherwise


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
        raise refusal(column, value, "is no length of time", "a length of time such as 1h, 10min, 30s or 1d")
    return seconds
