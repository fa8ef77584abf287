"""Cells of tables: counts, spans of time, lists of nodes. Junk raises ``ValueError``, without a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from bfreplay.datasets.ingest.hostlists import MOST_NODES, NODE_NAME, expand_nodes
from bfreplay.datasets.times import US
from bfreplay.documents import Cell

UNIT_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9, "d": 86_400 * 10**9}
"""Nanoseconds by unit."""

TIME_UNITS = ("s", "ms", "us", "ns")
SPAN_UNITS = ("s", "ms", "us", "ns", "min", "h", "d")
UNITS_OF = {"start": TIME_UNITS, "end": TIME_UNITS, "submit": TIME_UNITS, "elapsed": SPAN_UNITS, "limit": SPAN_UNITS}
"""Possible units of numbers by role."""

_UNIT_OF_WORD = {
    word: words.split()[0]
    for words in (
        "ns nsec nsecs nanos nanosecond nanoseconds",
        "us usec usecs micros microsecond microseconds",
        "ms msec msecs millis millisecond milliseconds",
        "s sec secs second seconds",
        "min mins minute minutes",
        "h hr hrs hour hours",
        "d day days",
    )
    for word in words.split()
}
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def unit_in_name(column_name: str) -> str | None:
    """Return the unit in a column's name (``dur_min``, ``runtimeHours``, ``Elapsed [ms]``), ``None`` without one."""
    units = [_UNIT_OF_WORD[part.lower()] for part in _PARTS.findall(column_name) if part.lower() in _UNIT_OF_WORD]
    return units[-1] if units else None


MISSING = frozenset({"", "none", "nat", "nan", "null", "<na>", "na", "n/a", "unknown", "-", "\\n", "undefined"})
"""Texts for no value, in lower case."""

_LONGEST_MISSING = 9
_LONGEST_US = 10**18
_COUNT = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)
_NUMBER = re.compile(r"(\d{1,21})(?:\.(\d{1,9}))?", re.ASCII)
_NS_PARTS_IN_US = 10**12  # of a nanosecond's 10^9 parts
_CLOCK = re.compile(r"(?:(\d{1,5})[- ](?:days? )?)?(\d{1,6}):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?", re.ASCII)
_SLOTS = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.\-]*)/[0-9,*\-]+")
_STATES = frozenset({"pending", "running", "completed", "failed", "timeout", "cancelled", "done"})
_NO_LIMIT = frozenset({"unlimited", "infinite", "partition_limit"})


def is_missing(cell_value: Any) -> bool:
    """Return whether a cell has no value."""
    if isinstance(cell_value, str):
        return len(cell_value) <= _LONGEST_MISSING and cell_value.strip().lower() in MISSING
    if cell_value is None:
        return True
    return isinstance(cell_value, float) and cell_value != cell_value


def count_in(cell_value: Any) -> int:
    """Return a count: ``12``, ``"12"``, ``"12.0000"``.

    Raises
    ------
    ValueError
        Anything else: negative numbers, parts of one, spaces, digits of other scripts.
    """
    if isinstance(cell_value, bool):
        raise ValueError("a truth value is not a count")
    if isinstance(cell_value, int | float):
        if not 0 <= cell_value < 1_000_000_000 or cell_value != int(cell_value):
            raise ValueError("no count")
        return int(cell_value)
    count_match = _COUNT.fullmatch(cell_value) if isinstance(cell_value, str) else None
    if count_match is None:
        raise ValueError("no count")
    return int(count_match[1])


def is_plain_number(cell_value: Any) -> bool:
    """Return whether a cell is a number, as text or as such, which needs a unit."""
    if isinstance(cell_value, str):
        return _NUMBER.fullmatch(cell_value) is not None
    return isinstance(cell_value, int | float) and not isinstance(cell_value, bool)


def span_us(cell_value: Any, time_unit: str = "s") -> int:
    """Return the microseconds of a span of time: a number of ``time_unit``, or ``[D-]HH:MM:SS``.

    Raises
    ------
    ValueError
        Neither of these.
    """
    if isinstance(cell_value, bool):
        raise ValueError("a truth value is not a span of time")
    if isinstance(cell_value, timedelta) and cell_value >= timedelta():
        return cell_value // timedelta(microseconds=1)
    if isinstance(cell_value, int | float):
        if not 0 <= cell_value < 1e21:
            raise ValueError("no span of time")
        whole_units, unit_ns = int(cell_value), UNIT_NS[time_unit]
        return _check_span(whole_units * unit_ns // 1_000 + round((cell_value - whole_units) * unit_ns / 1_000))
    cell_text = cell_value if isinstance(cell_value, str) else ""
    match = _NUMBER.fullmatch(cell_text)
    if match is not None:
        decimal_digits = match[2] or ""
        return _check_span(int(match[1] + decimal_digits.ljust(9, "0")) * UNIT_NS[time_unit] // _NS_PARTS_IN_US)
    match = _CLOCK.fullmatch(cell_text)
    if match is None:
        raise ValueError("no span of time")
    whole_hours = 24 * int(match[1] or 0) + int(match[2])
    return ((whole_hours * 60 + int(match[3])) * 60 + int(match[4])) * US + int((match[5] or "")[:6].ljust(6, "0"))


def span_slack_us(cell_value: Any, time_unit: str) -> int:
    """Return the rounding error of a span: one unit of its last digit, and at least a second."""
    if UNIT_NS[time_unit] <= UNIT_NS["s"] or not is_plain_number(cell_value):
        return US
    digits = str(cell_value).partition(".")[2]
    n_digits = len(digits) if digits.strip("0") else 0
    return US + int(UNIT_NS[time_unit] // (1_000 * 10**n_digits))


def _check_span(span: int) -> int:
    if span >= _LONGEST_US:
        raise ValueError("longer than any job")
    return span


def limit_us(cell_value: Any, time_unit: str = "s") -> int | None:
    """Return a time limit in microseconds; ``None`` if absent or unreadable, as it only bounds open ends."""
    if is_missing(cell_value) or (isinstance(cell_value, str) and cell_value.strip().lower() in _NO_LIMIT):
        return None
    try:
        return span_us(cell_value, time_unit) or None
    except (ValueError, OverflowError):
        return None


_CONDOR_SLOT = re.compile(r"\b(?:slot|vm)\w*@(?:[\w.-]+@)?", re.ASCII)


def nodes_in(cell_value: Any) -> tuple[str, ...]:
    """Return the names in a list of nodes, each once.

    Slots of HTCondor (``slot1_2@host``) are their hosts.

    Hostlists (``n[1-3],gpu1``), names separated by commas, spaces or plus signs, ``n1/0*4+n2/0`` as PBS writes it,
    lists as Python and JSON print them (``['a', 'b']``, ``[1, 2]``), and sequences of names or numbers.

    Raises
    ------
    ValueError
        Not a list of nodes.
    """
    if isinstance(cell_value, str):
        return _nodes_in_text(cell_value.strip(" \t\r\n"))
    if isinstance(cell_value, int) and not isinstance(cell_value, bool):
        return (str(cell_value),)
    if not isinstance(cell_value, list | tuple):
        raise ValueError("no list of nodes")
    node_names = []
    for node_name in cell_value:
        cell_text = str(node_name) if isinstance(node_name, int) and not isinstance(node_name, bool) else node_name
        if not isinstance(cell_text, str) or not NODE_NAME.fullmatch(cell_text):
            raise ValueError(f"{node_name!r} is not the name of a node")
        node_names.append(cell_text)
    return _each_once(node_names)


def _nodes_in_text(list_text: str) -> tuple[str, ...]:
    list_text = _CONDOR_SLOT.sub("", list_text)
    if list_text.lower() in _STATES:
        raise ValueError("a state of jobs is not a list of nodes")
    if list_text[:1] + list_text[-1:] in ("[]", "{}"):
        return _list_in_print(list_text[1:-1])
    if "/" in list_text:
        matches = [_SLOTS.fullmatch(list_part) for list_part in list_text.split("+")]
        node_names = [slot_match[1] for slot_match in matches if slot_match is not None]
        if len(node_names) < len(matches):
            raise ValueError("no list of nodes")
        return _each_once(node_names)
    if "+" in list_text:
        return _each_once([node_name for list_part in list_text.split("+") for node_name in _part(list_part)])
    if " " in list_text and list_text.lower() != "none assigned":
        if "," in list_text:
            return expand_nodes(re.sub(r"\s*,\s*", ",", list_text))
        return _each_once([node_name for list_part in list_text.split() for node_name in _part(list_part)])
    return expand_nodes(list_text)


def _part(cell_text: str) -> tuple[str, ...]:
    node_names = expand_nodes(cell_text)
    if not node_names:
        raise ValueError("an empty name in the list")
    return node_names


def _list_in_print(cell_text: str) -> tuple[str, ...]:
    if not cell_text.strip():
        return ()
    list_parts = cell_text.split(",") if "," in cell_text else cell_text.split()
    node_names = []
    for list_part in list_parts:
        node_name = list_part.strip()
        if len(node_name) > 1 and node_name[0] == node_name[-1] and node_name[0] in "'\"":
            node_name = node_name[1:-1]
        node_names.append(node_name)
    return nodes_in(node_names)


def _each_once(node_names: list[str]) -> tuple[str, ...]:
    if len(node_names) > MOST_NODES:
        raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    return tuple(dict.fromkeys(node_names))


def first_word(cell_value: Any) -> str:
    """Return the first word of a state in lower case, without marks of width (``CANCELLED+``); empty if missing."""
    if is_missing(cell_value):
        return ""
    state_words = str(cell_value).split()
    return state_words[0].lower().rstrip("+") if state_words else ""


def cell_texts(cells: Mapping[str, Cell], *roles: str) -> str:
    """Return the texts of the cells of ``roles`` that exist, for the report."""
    cell_values = [getattr(cells[role], "us", cells[role]) for role in roles if role in cells]
    return " / ".join(map(str, cell_values))
