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

NODE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
_TOKEN = re.compile(r"[^,\[\]]+|\[[^\[\]]*\]|,|.", re.DOTALL)
_TEXT = re.compile(r"[A-Za-z0-9_.\-]+")
_NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?", re.ASCII)
_ORDINARY = re.compile(
    r"([A-Za-z](?:[\w.\-]{0,99}[A-Za-z_.\-])?)\[((?:\d{1,9}-)?\d{1,9}(?:,(?:\d{1,9}-)?\d{1,9})*)\]", re.ASCII
)


@lru_cache(maxsize=512)  # lists of thousands of names
def expand_nodes(list_text: str) -> tuple[str, ...]:
    """Return the names of the nodes in a list; empty for texts that mean no nodes.

    Zero padding is kept, several brackets multiply (``r[1-2]i[0-1]``), adjacent ones too (``tux[1-2][3-4]``).

    Raises
    ------
    ValueError
        Not a node list: an open bracket (a list cut by a narrow column), an empty part, a descending range, or a name
        that no node can have.
    """
    list_text = list_text.strip(_BLANKS)
    if list_text.lower() in NO_NODES:
        return ()
    if max(list_text.count(","), list_text.count("[")) > MOST_NODES:
        raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    node_names: dict[str, None] = {}
    for list_part in _parts(list_text):
        node_names.update(dict.fromkeys(_expand(list_part)))
        if len(node_names) > MOST_NODES:
            raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    return tuple(node_names)


def fold_nodes(node_names: Collection[str]) -> str:
    """Return a list of nodes, shortened with ranges in brackets where the names allow it."""
    if not all(map(NODE_NAME.fullmatch, node_names)):  # the library reads ! & ^ * @ as operators, patterns and groups
        return ",".join(node_names)
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(list(node_names), resolver=RESOLVER_NOGROUP))


def each_a_name(node_names: Collection[str], kind: str = "node") -> tuple[str, ...]:
    """Return names that must be single ones; ``ValueError`` for a list or an invalid name of a ``kind``."""
    for node_name in node_names:
        if expand_nodes(node_name) != (node_name,):
            raise ValueError(f"{node_name!r} is not the name of a {kind}")
    return tuple(node_names)


def numbers_in(range_texts: Iterable[str]) -> list[int]:
    """Return the numbers in parts such as ``7`` and ``0-3``, in order; ``ValueError`` for others, and for too many."""
    numbers: list[int] = []
    for range_text in range_texts:
        range_match = _NUMBERS.fullmatch(range_text)
        if range_match is None:
            raise ValueError(f"{range_text!r} is not a number or range")
        first_number, last_number = int(range_match[1]), int(range_match[2] or range_match[1])
        if last_number < first_number or last_number - first_number >= MOST_NODES - len(numbers):
            raise ValueError(f"{range_text!r} is descending or too long")
        numbers.extend(range(first_number, last_number + 1))
    return numbers


def _parts(list_text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    list_parts, list_part = [], ""
    for list_token in _TOKEN.findall(list_text):
        if list_token == ",":
            list_parts.append(list_part)
            list_part = ""
        elif list_token in ("[", "]"):
            raise ValueError("a bracket has no partner: the list may have been cut")
        else:
            list_part += list_token
    list_parts.append(list_part)
    list_parts = [list_part.strip(_BLANKS) for list_part in list_parts]
    if not all(list_parts):
        raise ValueError("an empty name between commas")
    return list_parts


def _expand(list_part: str) -> list[str]:
    if "[" not in list_part:
        if len(list_part) > LONGEST_NAME or not NODE_NAME.fullmatch(list_part):
            raise ValueError(f"{_excerpt(list_part)} is not the name of a node")
        return [list_part]
    if (node_names := _ordinary(list_part)) is not None:
        return node_names
    _check_fields(list_part)
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    # adjacent brackets multiply, which NodeSet refuses: put a separator between them that no name has
    try:
        node_names = [str(name).replace(_SEPARATOR, "") for name in NodeSet(list_part.replace("][", f"]{_SEPARATOR}["))]
    except (NodeSetException, AssertionError) as error:  # the library asserts that a range is not too large
        raise ValueError(f"{_excerpt(list_part)} is not a list of nodes: {' '.join(str(error).split())}") from None
    if not NODE_NAME.fullmatch(node_names[0]):
        raise ValueError(f"{node_names[0]!r} is not the name of a node")
    return node_names


def _ordinary(list_part: str) -> list[str] | None:
    """Return the names in a part with one bracket, at its end, and ascending ranges; ``None`` for other parts.

    Most lists are of such parts, for which the library takes longer than all else that is done for a row. It counts
    digits before a bracket as digits of its numbers, so such parts are left to it.
    """
    list_match = _ORDINARY.fullmatch(list_part)
    if list_match is None:
        return None
    prefix, previous = list_match[1], (0, -1)
    names: list[str] = []
    for range_text in list_match[2].split(","):
        first_text, _, last_text = range_text.partition("-")
        last_text = last_text or first_text
        width, numbers = len(first_text), range(int(first_text), int(last_text) + 1)
        # ranges that begin with zeros are as wide at both ends; sorted names come by their length, then by number
        is_one_width = width == len(last_text) or ((first_text == "0" or first_text[0] != "0") and last_text[0] != "0")
        if not numbers or not is_one_width or (width, numbers[0]) <= previous or len(names) + len(numbers) > MOST_NODES:
            return None
        names += [f"{prefix}{number:0{width}d}" for number in numbers]
        previous = len(last_text), numbers[-1]
    return names


def _check_fields(list_part: str) -> None:
    """Refuse parts that the library would read otherwise (groups, set operators) or expand without end."""
    n_names, name_length = 1, 0
    for list_token in _TOKEN.findall(list_part):
        if not list_token.startswith("["):
            if not _TEXT.fullmatch(list_token):
                raise ValueError(f"{_excerpt(list_part)} is not a list of nodes")
            name_length += len(list_token)
            continue
        n_numbers = most_digits = 0
        for range_text in list_token[1:-1].split(","):
            match = _RANGE.fullmatch(range_text)
            if match is None:
                raise ValueError(f"{_excerpt(list_part)} is not a list of nodes: {_excerpt(range_text)} is not a range")
            most_digits = max(most_digits, len(match[1]), len(match[2] or ""))
            if name_length + most_digits > LONGEST_NAME:
                raise ValueError(f"{_excerpt(list_part)} is a list of names of more than {LONGEST_NAME} characters")
            first_number, last_number, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            n_numbers += max(0, last_number - first_number) // max(step, 1) + 1
        n_names *= n_numbers
        name_length += most_digits
        if n_names > MOST_NODES:
            raise ValueError(f"{_excerpt(list_part)} is a list of more than {MOST_NODES:,} nodes")


def _excerpt(list_part: str) -> str:
    return repr(list_part if len(list_part) <= _MOST_SHOWN else list_part[:_MOST_SHOWN] + "...")
