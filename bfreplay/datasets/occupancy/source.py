"""The rows of a log that are computed from a schedule: as a source of events, and surveyed once beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.sources import RowChunk
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.occupancy.holes import ShortHoles, add_state_time
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.rules import microseconds
from bfreplay.datasets.occupancy.sweep import Plan, Rows, Sweep


@dataclass(frozen=True, slots=True)
class OccupancySource:
    """Rows of a log that are computed, pass by pass, from a schedule.

    Parameters
    ----------
    record, plan
        What they are computed from.
    start
        State of each node of the inventory at the start of the window, ``int8``.
    """

    record: ScheduleRecord
    plan: Plan
    start: NDArray[np.int8]
    file: Path | None = None
    alternating: bool = False
    metadata_file: Path | None = None

    def initial_state(self, n_nodes: int) -> NDArray[np.int8]:
        """Return a copy of the states at the start, shape ``(N,)``."""
        return self.start.copy()

    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """One sweep."""
        first_row = 1
        for time_us, node, state in _inside(Sweep(self.record, self.plan), self.plan):
            yield RowChunk(time_us, node, state, first_row)
            first_row += len(time_us)

    def written(self, state: int) -> object:
        """Return the word of the neutral schema."""
        return STATE_WORDS[state]


class Survey:
    """A first pass: the states at the start of the window, node-time in each state, and what the rules did."""

    def __init__(self, record: ScheduleRecord, plan: Plan) -> None:
        self.sweep = Sweep(record, plan)
        self.holes = _short_holes(self.sweep, plan)
        self.start = self.sweep.initial[: plan.n_kept].copy()
        self.n_rows = 0
        self.node_us = np.zeros(len(NodeState))
        since_us = np.full(plan.n_kept, plan.window_us[0], np.int64)
        state: NDArray[np.int8] | None = None
        for time_us, node, new_state in _inside(self.sweep, plan, self.holes, self.start):
            if state is None:
                state = self.start.copy()
            add_state_time(time_us, node, new_state, state, since_us, self.node_us)
            self.n_rows += len(time_us)
        self.sweep.see_the_rest()
        self.n_repeated, self.n_contradicting = record.jobs.n_repeated, record.jobs.n_contradicting
        np.add.at(self.node_us, self.start if state is None else state, plan.window_us[1] - since_us)


def _short_holes(sweep: Sweep, plan: Plan) -> ShortHoles:
    return ShortHoles(sweep.initial, microseconds(plan.rules.min_gap_s), plan.window_us)


def _inside(
    sweep: Sweep, plan: Plan, holes: ShortHoles | None = None, start: NDArray[np.int8] | None = None
) -> Iterator[Rows]:
    """Rows after the start of the window up to its end, of the nodes in the inventory.

    What comes before goes into ``start (N,)``, which is complete when the first rows come.
    """
    holes = _short_holes(sweep, plan) if holes is None else holes
    for rows, is_last in _with_last(sweep.rows()):
        time_us, node, state = holes.passed(*rows, is_last)
        if len(node) and int(node.max()) >= plan.n_kept:
            kept = node < plan.n_kept
            time_us, node, state = time_us[kept], node[kept], state[kept]
        begin = int(np.searchsorted(time_us, plan.window_us[0], side="right"))
        end = int(np.searchsorted(time_us, plan.window_us[1], side="right"))
        if begin and start is not None:
            start[node[:begin]] = state[:begin]  # in order: of several rows of a node the last one stays
        if begin < end:
            yield time_us[begin:end], node[begin:end], state[begin:end]
        if end < len(time_us):
            return


def _with_last(pieces: Iterator[Rows]) -> Iterator[tuple[Rows, bool]]:
    """Each piece, and whether it is the last one."""
    held = None
    for piece in pieces:
        if held is not None:
            yield held, False
        held = piece
    if held is not None:
        yield held, True
