"""Search for the number of dedicated nodes that idle nodes are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

Times = Mapping[int, float | None]
"""Seconds by number of dedicated nodes; ``None`` where the jobs never end."""


def smallest_cluster(
    limit_s: float, known: Times, most: int, times_on: Callable[[Sequence[int]], Times], *, at_once: int = 1
) -> int | None:
    """Return a number of nodes on which all is done within ``limit_s``, while on one node fewer it is not.

    This is the smallest such number if more nodes never take longer. Otherwise it is one of several, and the times on
    it and on one node fewer are the evidence.

    Parameters
    ----------
    limit_s
        Seconds.
    known
        Times known before; they narrow the search.
    most
        Largest number to try.
    times_on
        Returns the times on some numbers of nodes.
    at_once
        Numbers tried in one call, which cut the range in equal parts.

    Returns
    -------
    int or None
        ``None`` if it takes longer on all numbers that were tried.
    """

    def is_enough(seconds: float | None) -> bool:
        return seconds is not None and seconds <= limit_s

    enough = min((n for n, seconds in known.items() if is_enough(seconds)), default=None)
    if enough is None:
        if not is_enough(times_on([most])[most]):
            return None
        enough = most
    too_few = max((n for n, seconds in known.items() if n < enough and not is_enough(seconds)), default=0)
    while enough - too_few > 1:
        between = np.linspace(too_few, enough, min(at_once, enough - too_few - 1) + 2).round().astype(int).tolist()
        tried = times_on(between[1:-1])
        for n in between[1:-1]:
            if is_enough(tried[n]):
                enough = n
                break
            too_few = n
    return enough
