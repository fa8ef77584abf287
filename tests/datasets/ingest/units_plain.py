"""Idle time of units of shared nodes by a plain computation: a list of changes for each node, clipped at its units."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

Held = tuple[int, int, Mapping[str, int]]
"""Start, end, and how many units a job holds of each node."""


def idle_unit_us(jobs: Iterable[Held], units: Mapping[str, int], start_us: int, end_us: int) -> int:
    """Return the idle time of all units from start to end."""
    changes = defaultdict(list)
    for begin, finish, per_node in jobs:
        for node, n_held in per_node.items():
            if begin < end_us and finish > start_us:
                changes[node] += [(max(begin, start_us), n_held), (min(finish, end_us), -n_held)]
    total = 0
    for node, n_units in units.items():
        n_held, since = 0, start_us
        for time, change in sorted(changes[node]):
            total += (time - since) * max(n_units - n_held, 0)
            n_held, since = n_held + change, time
        total += (end_us - since) * max(n_units - n_held, 0)
    return total


def most_held(jobs: Iterable[Held]) -> dict[str, int]:
    """Return the most units of each node that its jobs hold at a time."""
    changes = defaultdict(list)
    for begin, finish, per_node in jobs:
        for node, n_held in per_node.items():
            changes[node] += [(begin, n_held), (finish, -n_held)]
    most = {}
    for node, of_node in changes.items():
        n_held, most[node] = 0, 0
        for _, change in sorted(of_node):  # of one time the ends first
            n_held += change
            most[node] = max(most[node], n_held)
    return most


def shares(total: int, nodes: list[str]) -> dict[str, int]:
    """Return how many of a job's units each of its nodes has, one more on the first ones if they do not divide."""
    each, rest = divmod(total, len(nodes))
    return {node: each + (number < rest) for number, node in enumerate(nodes)}
