"""Node lists as schedulers write them: ``cpn-f13-[03-05,07],gpu1`` to names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from bfreplay.checks import LONGEST_NAME

NO_NODES = frozenset({"", "none assigned", "(null)", "none", "n/a", "unknown", "-"})
"""What schedulers write where there are no nodes, in lower case."""

MOST_NODES = 1_000_000
"""A list that expands to more is a mistake, not a machine."""

_BLANKS = " "  # Python counts control characters among them; a tab in a list is a mistake
_SEPARATOR = "\x01"
_MOST_SHOWN = 80

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
_TOKEN = re.compile(r"[^,\[\]]+|\[[^\[\]]*\]|,|.", re.DOTALL)
_TEXT = re.compile(r"[A-Za-z0-9_.\-]+")
_NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:/(\d+))?)?", re.ASCII)


@lru_cache(maxsize=512)  # lists of thousands of names: no more
def expand_nodes(text: str) -> tuple[str, ...]:
    """Names of the nodes in a list; empty for what means no nodes.

    Zero padding is kept, several brackets multiply (``r[1-2]i[0-1]``), adjacent ones too (``tux[1-2][3-4]``).

    Raises
    ------
    ValueError
        It is no node list: a bracket left open (a list cut by a narrow column), an empty part, a range that runs
        backwards, a name that no node has.
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


def each_a_name(names: Collection[str], what: str = "node") -> tuple[str, ...]:
    """Return names that are to be single ones; ``ValueError`` for a list, or for what is no name of a ``what``."""
    for name in names:
        if expand_nodes(name) != (name,):
            raise ValueError(f"{name!r} is no name of a {what}")
    return tuple(names)


def numbers_in(parts: Iterable[str]) -> list[int]:
    """Numbers in parts such as ``7`` and ``0-3``, in order; ``ValueError`` for others, and for more than a machine."""
    found: list[int] = []
    for part in parts:
        match = _NUMBERS.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no number or range")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_NODES - len(found):
            raise ValueError(f"{part!r} runs backwards or is too long")
        found.extend(range(first, last + 1))
    return found


def _parts(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, part = [], ""
    for token in _TOKEN.findall(text):
        if token == ",":
            parts.append(part)
            part = ""
        elif token in ("[", "]"):
            raise ValueError("a bracket is open or closed without its other half: the list may have been cut")
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
            raise ValueError(f"{_excerpt(part)} is no name of a node")
        return [part]
    _check_fields(part)
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    # fields of adjacent brackets multiply, which NodeSet refuses: a separator that no name has stands between them
    try:
        names = [str(name).replace(_SEPARATOR, "") for name in NodeSet(part.replace("][", f"]{_SEPARATOR}["))]
    except NodeSetException as error:
        raise ValueError(f"{_excerpt(part)} is no list of nodes: {' '.join(str(error).split())}") from None
    if not _NAME.fullmatch(names[0]):
        raise ValueError(f"{names[0]!r} is no name of a node")
    return names


def _check_fields(part: str) -> None:
    """Refuse what the library would read as something else (groups, set operators) or expand without end."""
    size, length = 1, 0
    for token in _TOKEN.findall(part):
        if not token.startswith("["):
            if not _TEXT.fullmatch(token):
                raise ValueError(f"{_excerpt(part)} is no list of nodes")
            length += len(token)
            continue
        width = digits = 0
        for field in token[1:-1].split(","):
            match = _RANGE.fullmatch(field)
            if match is None:
                raise ValueError(f"{_excerpt(part)} is no list of nodes: {_excerpt(field)} is no range")
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
