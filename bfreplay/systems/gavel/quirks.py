"""Differences of Gavel's published program from its paper, or from a user's expectation."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay.saved_state import restorable

PUBLISHED_RESET_S = 1920.0
"""Least time between two recomputations of shares in the published program."""

PUBLISHED_TYPES = ("v100", "p100", "k80")
"""Order in which the rounds of the published program fill node types."""


def published_order(type_names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types of the published program in its order, then others as listed."""
    published_types = tuple(type_name for type_name in PUBLISHED_TYPES if type_name in type_names)
    return published_types + tuple(type_name for type_name in type_names if type_name not in published_types)


@restorable
@dataclass(frozen=True, slots=True)
class Quirks:
    """Defects of the published program to repeat. None by default; all of them give its schedules to the digit.

    Parameters
    ----------
    few_steps_fail
        A gang that is to do fewer steps than it has nodes fails: its steps do not count, and a job that failed
        ``FAILURES_ALLOWED`` times is given up although it was nearly done. Otherwise such a job simply ends.
    reset_at_zero_means_never
        A recomputation at time 0 counts as none, so that the next one need not wait; and a job that arrives soon after
        one waits for shares even where no other job has any and all nodes are empty. Otherwise the least
        time between recomputations is kept from the first one on, unless no job has shares.
    shareless_jobs_take_nodes
        A job that arrived after the last recomputation can be chosen when nodes are left over, but is then not started:
        the nodes stay empty. Otherwise it runs on them.
    stale_round_start
        A round that follows an idle gap counts from the end of the last round, not from its own start: the gap inflates
        the time that its jobs ran, and the busy seconds of nodes.
    pairs_end_together
        The first of two jobs that share nodes to be done completes when the other ends its part of the round.
        Otherwise each completes when it is done.
    profiles_wrong_columns
        The measurement of a profiled job beside one reference job type is read from that beside another job type,
        unless all job types are references.
    """

    few_steps_fail: bool = False
    reset_at_zero_means_never: bool = False
    shareless_jobs_take_nodes: bool = False
    stale_round_start: bool = False
    pairs_end_together: bool = False
    profiles_wrong_columns: bool = False

    @classmethod
    def published(cls) -> Quirks:
        """Return all of them: the program as published."""
        return cls(**dict.fromkeys(cls.__slots__, True))
