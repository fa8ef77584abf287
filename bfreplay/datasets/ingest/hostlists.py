"""Node lists as schedulers write them: ``cpn-f13-[03-05,07],gpu1`` to names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from bfreplay.checks import LONGEST_NAME

NO_NODES = frozenset({"", "none assigned", "(null)", "none", "n/a", "unknown", "-"})
"""Texts of schedulers for no nodes, in lower case."""

MOST_NODES = 1_000_000
"""Largest list: one that expands to more is a mistake."""

_BLANKS = " "  # for Python these include control characters; a tab in a list is a mistake
_SEPARATOR = "\x01"
_MOST_SHOWN = 80

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
_TOKEN = re.compile(r"[^,\[\]]+|\[[^\[\]]*\]|,|.", re.DOTALL)
_TEXT = re.compile(r"[A-Za-z0-9_.\-]+")
_NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?", re.ASCII)
_ORDINARY = re.compile(
    r"([A-Za-z](?:[\w.\-]{0,99}[A-Za-z_.\-])?)\[((?:\d{1,9}-)?\d{1,9}(?:,(?:\d{1,9}-)?\d{1,9})*)\]", re.ASCII
)


@lru_cache(maxsize=512)  # lists of thousands of names
def expand_nodes(text: str) -> tuple[str, ...]:
    """Return the names of the nodes in a list; empty for texts that mean no nodes.

    Zero padding is kept, several brackets multiply (``r[1-2]i[0-1]``), adjacent ones too (``tux[1-2][3-4]``).

    Raises
    ------
    ValueError
        Not a node list: an open bracket (a list cut by a narrow column), an empty part, a descending range, or a name
        that no node can have.
    """
    text = text.strip(_BLANKS)
    if text.lower() in NO_NODES:
        return ()
    if max(text.count(","), text.count("[")) > MOST_NODES:
        raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    names: dict[str, None] = {}
    for part in _parts(text):
        names.update(dict.fromkeys(_expand(part)))
        if len(names) > MOST_NODES:
            raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    return tuple(names)


def each_a_name(node_names: Collection[str], kind: str = "node") -> tuple[str, ...]:
    """Return names that must be single ones; ``ValueError`` for a list or an invalid name of a ``kind``."""
    for node_name in node_names:
        if expand_nodes(node_name) != (node_name,):
            raise ValueError(f"{node_name!r} is not the name of a {kind}")
    return tuple(node_names)


def numbers_in(parts: Iterable[str]) -> list[int]:
    """Return the numbers in parts such as ``7`` and ``0-3``, in order; ``ValueError`` for others, and for too many."""
    numbers: list[int] = []
    for part in parts:
        match = _NUMBERS.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not a number or range")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_NODES - len(numbers):
            raise ValueError(f"{part!r} is descending or too long")
        numbers.extend(range(first, last + 1))
    return numbers


def _parts(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, part = [], ""
    for token in _TOKEN.findall(text):
        if token == ",":
            parts.append(part)
            part = ""
        elif token in ("[", "]"):
            raise ValueError("a bracket has no partner: the list may have been cut")
        else:
            part += token
    parts.append(part)
    parts = [part.strip(_BLANKS) for part in parts]
    if not all(parts):
        raise ValueError("an empty name between commas")
    return parts


def _expand(part: str) -> list[str]:
    if "[" not in part:
        if len(part) > LONGEST_NAME or not _NAME.fullmatch(part):
            raise ValueError(f"{_excerpt(part)} is not the name of a node")
        return [part]
    if (names := _ordinary(part)) is not None:
        return names
    _check_fields(part)
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    # adjacent brackets multiply, which NodeSet refuses: put a separator between them that no name has
    try:
        names = [str(name).replace(_SEPARATOR, "") for name in NodeSet(part.replace("][", f"]{_SEPARATOR}["))]
    except (NodeSetException, AssertionError) as error:  # the library asserts that a range is not too large
        raise ValueError(f"{_excerpt(part)} is not a list of nodes: {' '.join(str(error).split())}") from None
    if not _NAME.fullmatch(names[0]):
        raise ValueError(f"{names[0]!r} is not the name of a node")
    return names


def _ordinary(part: str) -> list[str] | None:
    """Return the names in a part with one bracket, at its end, and ascending ranges; ``None`` for other parts.

    Most lists are of such parts, for which the library takes longer than all else that is done for a row. It counts
    digits before a bracket as digits of its numbers, so such parts are left to it.
    """
    match = _ORDINARY.fullmatch(part)
    if match is None:
        return None
    prefix, previous = match[1], (0, -1)
    names: list[str] = []
    for field in match[2].split(","):
        first, _, last = field.partition("-")
        last = last or first
        width, numbers = len(first), range(int(first), int(last) + 1)
        # ranges that begin with zeros are as wide at both ends; sorted names come by their length, then by number
        is_one_width = width == len(last) or ((first == "0" or first[0] != "0") and last[0] != "0")
        if not numbers or not is_one_width or (width, numbers[0]) <= previous or len(names) + len(numbers) > MOST_NODES:
            return None
        names += [f"{prefix}{number:0{width}d}" for number in numbers]
        previous = len(last), numbers[-1]
    return names


def _check_fields(part: str) -> None:
    """Refuse parts that the library would read otherwise (groups, set operators) or expand without end."""
    size, length = 1, 0
    for token in _TOKEN.findall(part):
        if not token.startswith("["):
            if not _TEXT.fullmatch(token):
                raise ValueError(f"{_excerpt(part)} is not a list of nodes")
            length += len(token)
            continue
        width = digits = 0
        for field in token[1:-1].split(","):
            match = _RANGE.fullmatch(field)
            if match is None:
                raise ValueError(f"{_excerpt(part)} is not a list of nodes: {_excerpt(field)} is not a range")
            digits = max(digits, len(match[1]), len(match[2] or ""))
            if length + digits > LONGEST_NAME:
                raise ValueError(f"{_excerpt(part)} is a list of names of more than {LONGEST_NAME} characters")
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            width += max(0, last - first) // max(step, 1) + 1
        size *= width
        length += digits
        if size > MOST_NODES:
            raise ValueError(f"{_excerpt(part)} is a list of more than {MOST_NODES:,} nodes")


def _excerpt(part: str) -> str:
    return repr(part if len(part) <= _MOST_SHOWN else part[:_MOST_SHOWN] + "...")
