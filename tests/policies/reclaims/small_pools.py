"""Small states with nodes and costs of changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bfreplay.policies import PolicyState
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, ChangeCosts
from tests.policies.small_states import NOW_US, SECOND, state_of


class Nodes:
    """Nodes of one type."""

    type_names = ("any",)

    def __init__(self, is_idle: list[bool], held: list[list[int]]) -> None:
        self.is_idle = np.array(is_idle, np.bool_)
        self.node_type = np.zeros(len(is_idle), np.int16)
        self._held = held

    def held(self, j: int) -> np.ndarray:
        """Return the nodes of a job, last gained first."""
        return np.array(self._held[j][::-1], np.int32)


def costs_by(
    n_jobs: int,
    *,
    start: object = 60.0,
    up: object = 60.0,
    down: object = 60.0,
    reclaim: object = None,
    pauses: bool = True,
    **changes: object,
) -> ChangeCosts:
    """Return costs of jobs that all pay the same; each a number, or seconds at 0, 1, ... nodes."""
    kinds = [
        np.atleast_1d(np.array(cost, np.float64)) for cost in (start, up, down, down if reclaim is None else reclaim)
    ]
    width = max(kind.size for kind in kinds)
    table = np.stack([np.broadcast_to(kind, (width,)) for kind in kinds])
    costs = ChangeCosts(
        seconds=np.ascontiguousarray(np.broadcast_to(table, (n_jobs, *table.shape))),
        pauses=np.full(n_jobs, int(pauses)),
        pause_left_s=np.zeros(n_jobs),
        unsaved_samples=np.zeros(n_jobs),
        allowed=np.ones((n_jobs, 1), np.bool_),
        save_every_s=np.zeros(n_jobs),
        longest_s=float(table.max() if pauses else table[0].max()),
    )
    kinds_of = {"allowed": np.bool_}
    arrays = {name: np.array(value, kinds_of.get(name, np.float64)) for name, value in changes.items()}
    return costs._replace(**arrays)


def pool_of(
    rates: list[list[float]],
    held: list[list[int]],
    is_idle: list[bool],
    costs: ChangeCosts | None,
    *,
    at_risk: list[float] | None = None,
    next_save_s: list[float] | None = None,
    lost: list[int] | None = None,
    **changes: object,
) -> PolicyState:
    """Return a state whose jobs hold these nodes."""
    n_jobs = len(rates)
    state = state_of(rates, sum(is_idle), current=[len(nodes) for nodes in held], **changes)
    next_us = [
        NO_DEADLINE_US if seconds is None else NOW_US + round(seconds * SECOND)
        for seconds in next_save_s or [None] * n_jobs
    ]
    return replace(
        state,
        nodes=Nodes(is_idle, held),
        costs=costs,
        lost_nodes=np.array(lost or [0] * n_jobs),
        started_us=np.full(n_jobs, LONG_AGO_US),
        at_risk_samples=None if costs is None else np.array(at_risk or [0.0] * n_jobs),
        next_save_us=None if costs is None else np.array(next_us, np.int64),
    )
