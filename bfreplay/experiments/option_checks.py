"""Checks of options of a run that are more than a number, a word or a switch."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath

from bfreplay import checks
from bfreplay.errors import InputError

AUTO = "auto"
"""Value for a forward-looking time estimated from past events."""

_PRICES_FORM = "TYPE=DOLLARS,TYPE=DOLLARS, such as v100=0.74,p100=0.43"


def path(name: str, value: object) -> str:
    """Check a path, and return it as text."""
    return checks.text(name, fspath(value) if isinstance(value, PathLike) else value)


def window(name: str, value: object) -> tuple[str, str]:
    """Check two times, and return them as text; TOML also has dates, and numbers for epoch seconds."""
    pair = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    times = [edge.isoformat() if isinstance(edge, datetime.date) else edge for edge in pair]
    times = [str(time) if isinstance(time, int | float) and not isinstance(time, bool) else time for time in times]
    if len(times) != 2 or not all(isinstance(time, str) for time in times):
        raise InputError(
            f"{name} is no pair of times",
            column=name,
            value=value,
            expected='["START", "END"], such as ["2021-02-12", "2021-02-14T06:00"]',
            fix="give the start and the end of the part of the log",
        )
    return str(times[0]), str(times[1])


def amount(text: str, unit_s: float = 1.0) -> float:
    """Parse a number of a unit of time, or a length of time with its own, such as ``"2min"``; ``ValueError`` else."""
    if re.fullmatch(r"[\d.]+\s*(s|m|min|h|d)", text.strip(), re.ASCII):
        return parse_seconds(text) / unit_s
    return checks.decimal(text)


def seconds_or_auto(text: str) -> float | str:
    """Parse a forward-looking time; ``ValueError`` for anything else."""
    try:
        return AUTO if text == AUTO else amount(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number of seconds nor {AUTO!r}.") from None


def t_fwd(name: str, value: object) -> float | str:
    """Check a forward-looking time: seconds above 0, or ``"auto"``."""
    if value == AUTO:
        return AUTO
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            f"{name} is neither a number nor {AUTO!r}",
            column=name,
            value=value,
            expected=f"seconds > 0, or {AUTO!r}",
            fix="write it without quotes, in digits with a decimal point" if isinstance(value, str) else None,
        )
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            "the forward-looking time is not a positive number",
            column=name,
            value=value,
            expected=f"seconds > 0, or {AUTO!r}",
            fix="120 s is a good start; the best value depends on how often nodes are reclaimed",
        )
    return float(value)


def seconds(name: str, value: object) -> float:
    """Check a length of time, 0 or more, and return it in seconds: a number, ``"30s"``, ``"5min"``."""
    return checks.length_of_time(name, value, 0.0)


def parse_seconds(text: str) -> float:
    """Parse a length of time; ``ValueError`` for anything else."""
    try:
        return seconds("it", text)
    except InputError as error:
        raise ValueError(f"{text!r} is no length of time such as 30s, 5min or 1h.") from error


def cluster(name: str, value: object) -> str:
    """Check a cluster, and return it in normal form."""
    from bfreplay.datasets.fixed_cluster import ClusterSpec

    return ClusterSpec.parse(checks.text(name, value)).text


def node_type(name: str, value: object) -> str:
    """Check the name of one node type."""
    from bfreplay.datasets.fixed_cluster import ClusterSpec

    return ClusterSpec(((checks.text(name, value), 1),)).types[0][0]


def measure(name: str, value: object) -> tuple[int, int]:
    """Check a range of jobs: two whole numbers, or ``"4000:5000"``."""
    range_parts: object = value.split(":") if isinstance(value, str) else value
    pair = list(range_parts) if isinstance(range_parts, Sequence) else []
    numbers = [int(part.strip()[:18]) if isinstance(part, str) and part.strip().isdecimal() else part for part in pair]
    is_pair = len(numbers) == 2 and all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    if not is_pair or not 0 <= numbers[0] < numbers[1]:
        raise InputError(
            f"{name} is no range of jobs" if not is_pair else f"{name} is an empty range of jobs",
            column=name,
            value=value,
            expected='"FIRST:END", numbers of jobs in order of submission from 0, FIRST below END',
            fix="for example 4000:5000, the thousand jobs after the first 4,000",
        )
    return numbers[0], numbers[1]


def prices(name: str, value: object) -> str:
    """Check prices, and return them as text with the types in alphabetical order."""
    price_of_type = parse_prices(value, name)
    return ",".join(
        f"{node_type}={repr(price).removesuffix('.0')}" for node_type, price in sorted(price_of_type.items())
    )


def parse_prices(value: object, name: str = "prices") -> dict[str, float]:
    """Return dollars per node-hour by node type, from ``"v100=0.74,p100=0.43"`` or a mapping.

    Raises
    ------
    InputError
        It is neither, a type appears twice, or a price is not above 0.
    """
    if isinstance(value, Mapping):
        pairs = [(checks.text(name, node_type), price) for node_type, price in value.items()]
    else:
        parts = [part.partition("=") for part in checks.text(name, value).split(",")]
        pairs = [(node_type.strip(), _price_of(price)) for node_type, _, price in parts]
    price_of_type: dict[str, float] = {}
    for node_type, price in pairs:
        if not node_type or price is None or node_type in price_of_type:
            problem = f"{node_type} has two" if node_type in price_of_type else f"{node_type or name} has no"
            raise InputError(f"{problem} price", column=name, value=value, expected=_PRICES_FORM)
        price_of_type[node_type] = checks.number(f"price of {node_type}", price, above=0)
    if not price_of_type:
        raise InputError(f"{name} has no price", column=name, value=value, expected=_PRICES_FORM)
    return price_of_type


def _price_of(text: str) -> float | None:
    try:
        return checks.decimal(text)
    except ValueError:
        return None
