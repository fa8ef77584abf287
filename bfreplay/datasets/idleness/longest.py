"""Nodes that are idle suspiciously long: one that is dead, or whose name is misspelt, looks idle for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bfreplay.datasets.idleness.observe import Observed
from bfreplay.datasets.times import iso_utc
from bfreplay.documents import Json

LONGEST = 3
"""Nodes whose longest hole is named."""

_US = 1_000_000

Cut = Literal["start", "end", "both"]


@dataclass(frozen=True, slots=True)
class LongestHole:
    """The longest hole of one node, the first of equals.

    Parameters
    ----------
    node
        Its name.
    start_us, end_us
        From when to when, as far as the window shows.
    cut
        The edge of the window that cuts it; ``None`` for a complete hole.
    """

    node: str
    start_us: int
    end_us: int
    cut: Cut | None

    @property
    def length_s(self) -> float:
        """Its length, a lower bound where it is cut."""
        return (self.end_us - self.start_us) / _US

    def to_dict(self) -> dict[str, Json]:
        """JSON-ready."""
        start, end = iso_utc(self.start_us), iso_utc(self.end_us)
        return {"node": self.node, "start": start, "end": end, "length_s": self.length_s, "cut": self.cut}


def longest_holes(nodes: Sequence[str], seen: Observed) -> tuple[LongestHole, ...]:
    """First all nodes that are idle from edge to edge of the window, then the `LONGEST` nodes with the longest holes.

    The longest first; of equal ones the earliest, then the first in the order of ``nodes``.
    """
    window_start_us = seen.pool.start_us
    throughout = seen.longest_is_open & (seen.longest_since_us == window_start_us)
    order = np.lexsort((seen.longest_since_us, -seen.longest_us))
    others = order[(seen.longest_us[order] > 0) & ~throughout[order]][:LONGEST]
    found = []
    for node in [*np.flatnonzero(throughout).tolist(), *others.tolist()]:
        start_us, is_open = int(seen.longest_since_us[node]), bool(seen.longest_is_open[node])
        cut: Cut | None = "end" if is_open else None
        if start_us == window_start_us:
            cut = "both" if is_open else "start"
        found.append(LongestHole(nodes[node], start_us, start_us + int(seen.longest_us[node]), cut))
    return tuple(found)
