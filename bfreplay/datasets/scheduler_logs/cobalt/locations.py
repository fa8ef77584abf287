"""Where a job ran, as the ALCF tables say it: lists of nodes, sometimes cut short, or the name of a block."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bfreplay.datasets.scheduler_logs.hostlists import MOST_NODES

_BLOCK = re.compile(r"[A-Z]{2,5}-[0-9A-F]{5}-[0-9A-F]{5}(?:-\d+)*-(\d{1,6})", re.ASCII)
_XNAME = re.compile(r"x\d+c\d+s\d+b\d+n\d+", re.ASCII)
_XNAMES = re.compile(r"x\d+c\d+s\d+b\d+n\d+(?:,x\d+c\d+s\d+b\d+n\d+)*", re.ASCII)
_XNAME_BEGUN = re.compile(r"x(?:\d+(?:c(?:\d+(?:s(?:\d+(?:b(?:\d+n?)?)?)?)?)?)?)?", re.ASCII)
_NUMBERS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*\d", re.ASCII)
_NOWHERE = frozenset({"", "none", "null", "nan", "unknown", "n/a", "-"})


@dataclass(frozen=True, slots=True)
class Location:
    """Names of the nodes that are listed; whether the list was cut short; nodes in the block, if it names one."""

    nodes: tuple[str, ...]
    is_cut: bool
    block_size: int | None


def location_of(text: str, count: int | None) -> Location:
    """Read a location.

    Parameters
    ----------
    text
        Names separated by commas or colons (``x3005c0s19b1n0,...``, ``cc001:cc002``), numbers of nodes and ranges of
        them (``0-3,17``; they become ``nid00000``, ...), blocks (``MIR-00C00-33F71-1-1024``), or nothing.
    count
        Nodes that the job used: a list with fewer was cut at the width of the column, and the name at the cut is a part
        of one, left out unless it is whole.

    Raises
    ------
    ValueError
        It is none of these.
    """
    if _XNAMES.fullmatch(text):
        nodes = dict.fromkeys(text.split(","))
        return Location(tuple(nodes), count is not None and len(nodes) < count, None)
    if text.strip().lower() in _NOWHERE:
        return Location((), False, None)
    tokens = re.split(r"[,:]", text)
    blocks = [_BLOCK.fullmatch(token) for token in tokens]
    if any(blocks):
        sizes = [int(match[1]) for match in blocks if match is not None]
        if len(sizes) < len(tokens):
            raise ValueError("a part of the list is no block")
        return Location((), False, sum(sizes))
    nodes = {}
    last = len(tokens) - 1
    for i, token in enumerate(tokens):
        names = _names(token)
        if names is None:
            if i == last and last > 0 and count is not None and len(nodes) < count and _is_begun(token):
                return Location(tuple(nodes), True, None)
            raise ValueError(f"{token!r} is no node")
        if i == last and last > 0 and count is not None and len(nodes) + len(names) < count and not _is_whole(tokens):
            return Location(tuple(nodes), True, None)
        nodes.update(dict.fromkeys(names))
        if len(nodes) > MOST_NODES:
            raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    return Location(tuple(nodes), count is not None and len(nodes) < count, None)


def _names(token: str) -> list[str] | None:
    if _XNAME.fullmatch(token):
        return [token]
    numbers = _NUMBERS.fullmatch(token)
    if numbers is not None:
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        return [f"nid{i:05d}" for i in range(first, last + 1)] if first <= last else None
    return [token] if _NAME.fullmatch(token) and not _XNAME_BEGUN.fullmatch(token) else None


def _is_begun(token: str) -> bool:
    """Whether it can be the first letters of a node's name."""
    return token == "" or re.fullmatch(r"[A-Za-z0-9_.\-]+", token) is not None


def _is_whole(tokens: list[str]) -> bool:
    """Whether the name at the cut is whole: a complete xname, or as long as every other name."""
    last = tokens[-1]
    if _XNAME.fullmatch(last):
        return True
    return not _NUMBERS.fullmatch(last) and {len(token) for token in tokens[:-1]} == {len(last)}
