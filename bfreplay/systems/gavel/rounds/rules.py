"""What stays the same from round to round."""

from __future__ import annotations

from dataclasses import dataclass, field

from bfreplay.errors import InputError


@dataclass(frozen=True, slots=True)
class Quirks:
    """Which defects of the published program to repeat. None by default; all of them give its schedules to the digit.

    Parameters
    ----------
    few_steps_fail
        A gang that is to do fewer steps than it has nodes fails: its steps do not count, and a job that failed
        ``FAILURES_ALLOWED`` times is dropped although it was nearly done. Otherwise such a job simply ends.
    reset_at_zero_means_never
        A recomputation at time 0 is taken for none at all, so that the next one need not wait; and a job that arrives
        soon after one waits for shares even where no other job has any and all nodes are empty. Otherwise the least
        time between recomputations is kept from the first one on, unless no job has shares.
    shareless_jobs_take_nodes
        A job that arrived after the last recomputation can be chosen when nodes are left over, but is then not started:
        the nodes stay empty. Otherwise it runs on them.
    stale_round_start
        A round that follows an idle gap counts from the end of the last round, not from its own start: the gap inflates
        the time that its jobs ran, and the busy seconds of nodes.
    pairs_end_together
        Of two jobs that share nodes the one that is done first completes when the other ends its part of the round.
        Otherwise each completes when it is done.
    """

    few_steps_fail: bool = False
    reset_at_zero_means_never: bool = False
    shareless_jobs_take_nodes: bool = False
    stale_round_start: bool = False
    pairs_end_together: bool = False

    @classmethod
    def published(cls) -> Quirks:
        """All of them: the program as published."""
        return cls(
            few_steps_fail=True,
            reset_at_zero_means_never=True,
            shareless_jobs_take_nodes=True,
            stale_round_start=True,
            pairs_end_together=True,
        )


@dataclass(frozen=True, slots=True)
class RoundRules:
    """Parameters of the round mechanism (Gavel, OSDI'20, section 5).

    Parameters
    ----------
    type_order
        Positions of the node types in the order in which they are filled, fastest first in the published program (v100,
        p100, k80). A type that is not in it is never used.
    round_s
        Length of a round.
    least_reset_s
        Least time between two recomputations of shares; 0 recomputes at the first round after every arrival and
        completion. 1,920 in the published program.
    shuffles_types
        Types are filled in a random order, drawn anew every round: for policies that do not know them apart.
    runs_only_its_own
        Nothing runs that has no priority, even on nodes that would stay empty: the FIFO policies.
    global_queue
        The highest priority of all types goes first, instead of type after type.
    restart_s
        Time lost at the start of a round by a job that did not run on the same nodes in the round before. Shorter than
        a round. 0 in the published simulator.
    seed
        Of the random order of types.
    quirks
        Defects of the published program to repeat.

    Raises
    ------
    InputError
        A time is out of range.
    """

    type_order: tuple[int, ...]
    round_s: float = 360.0
    least_reset_s: float = 0.0
    shuffles_types: bool = False
    runs_only_its_own: bool = False
    global_queue: bool = False
    restart_s: float = 0.0
    seed: int = 0
    quirks: Quirks = field(default_factory=Quirks)

    def __post_init__(self) -> None:
        for what, value, fits, expected in (
            ("round_s", self.round_s, 0.0 < self.round_s < float("inf"), "seconds above 0"),
            ("least_reset_s", self.least_reset_s, self.least_reset_s >= 0.0, "0 s or more"),
            ("restart_s", self.restart_s, 0.0 <= self.restart_s < self.round_s, "0 s or more, less than round_s"),
        ):
            if not fits:
                raise InputError(f"{what} of Gavel's rounds is out of range", value=value, expected=expected)
