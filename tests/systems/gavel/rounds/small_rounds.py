"""Rounds that a person can follow: few jobs, one or two node types, rounds of 100 s."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.gavel.rounds.next_round import next_round, reset
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, RoundRules, RoundState, first_state
from bfreplay.systems.gavel.shares.share_problem import NO_PAIRS, ShareProblem, TimeShares

PLENTY = 1e9


def rules(**changes: Any) -> RoundRules:
    """Rounds of 100 s on one node type, if nothing else is said."""
    settings: dict[str, Any] = {"type_order": (0,), "round_s": 100.0}
    return RoundRules(**(settings | changes))


def with_jobs(
    how: RoundRules,
    gang: Sequence[int],
    rate: Sequence[Sequence[float]],
    pair: Sequence[tuple[int, int]] = (),
    pair_rate: Sequence[Any] = (),
) -> RoundState:
    """State of jobs 0, 1, ... that have just arrived."""
    n = len(rate[0])
    state = first_state(n, how)
    state.add_jobs(
        how,
        np.arange(len(gang)),
        np.array(gang),
        np.array(rate, float),
        np.array(pair, np.int64).reshape(-1, 2),
        np.array(pair_rate, float).reshape(-1, n, 2),
    )
    return state


def give(
    state: RoundState,
    how: RoundRules,
    now_s: float,
    share: Sequence[Sequence[float]],
    pair: Sequence[tuple[int, int]] = (),
    pair_share: Sequence[Sequence[float]] = (),
) -> None:
    """Reset with these shares for the jobs of ``state``, and for pairs of their rows."""
    m, n = len(share), state.n_types
    none = np.zeros(m)
    problem = ShareProblem(
        job=state.jobs.number,
        type_names=tuple("abc"[:n]),
        n_nodes=np.ones(n, np.int64),
        gang=state.jobs.gang,
        rate=np.ones((m, n)),
        weight=none,
        steps_left=none,
        age_s=none,
        to_deadline_s=none,
        price_per_hour=np.zeros(n),
        pair=np.array(pair, np.int64) if pair else NO_PAIRS,
        pair_rate=np.ones((len(pair), n, 2)),
    )
    answer = TimeShares(np.array(share, float).reshape(m, n), np.array(pair_share, float).reshape(-1, n))
    reset(state, how, now_s, problem, answer)


def run_round(
    state: RoundState,
    how: RoundRules,
    now_s: float,
    nodes: Sequence[int],
    steps_left: Sequence[float] | None = None,
    gone: Sequence[int] = (),
) -> Assignment:
    """A round on nodes of these types, the numbers in ``gone`` excepted."""
    node_type = np.array(nodes, np.int16)
    left = np.full(state.jobs.number.shape[0], PLENTY) if steps_left is None else np.array(steps_left, float)
    return next_round(state, how, now_s, node_type, available(nodes, gone), left)


def available(nodes: Sequence[int], gone: Sequence[int] = ()) -> NDArray[np.bool_]:
    """All nodes but those in ``gone``."""
    there = np.ones(len(nodes), np.bool_)
    there[list(gone)] = False
    return there


def who(assignment: Assignment) -> list[tuple[str, int, list[int]]]:
    """(jobs, type, nodes) of each micro-task."""
    return [
        (
            "+".join(str(job) for job in assignment.member[k] if job != NOBODY),
            int(assignment.node_type[k]),
            assignment.nodes_of(k).tolist(),
        )
        for k in range(assignment.n_tasks)
    ]
