"""Decisions that every formulation must answer: hand-made corners, random ones, wide ones, and those of a replay."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution

RANDOM_DECISIONS = 40


def _decision(
    current: list[int],
    min_nodes: list[int],
    max_nodes: list[int],
    gain: list[list[float]],
    capacity: int,
    *,
    up: float = 1.0,
    down: float = 0.5,
    change_limit: int | None = None,
) -> AllocationProblem:
    return AllocationProblem(
        current=np.array(current),
        min_nodes=np.array(min_nodes),
        max_nodes=np.array(max_nodes),
        gain=np.array(gain, dtype=np.float64),
        scale_up_loss=np.full(len(current), up),
        scale_down_loss=np.full(len(current), down),
        capacity=capacity,
        change_limit=change_limit,
    )


def corner_decisions() -> dict[str, AllocationProblem]:
    """Return small decisions with one trap each, by the name of the trap."""
    concave, dent = [0.0, 5.0, 8.0, 9.0, 9.5], [0.0, 1.0, 1.5, 6.0, 6.1]
    return {
        "one job, one node": _decision([0], [1], [1], [[0.0, 3.0]], 1),
        "more nodes than the jobs can take": _decision([1, 0], [1, 1], [4, 4], [concave, dent], 20),
        "a minimum above the idle nodes": _decision([0, 0], [1, 4], [4, 4], [concave, dent], 3),
        "left below the minimum by a reclaim": _decision([1, 2], [3, 1], [4, 4], [dent, concave], 4),
        "a dent in the curve": _decision([0, 2], [1, 1], [4, 4], [dent, dent], 5),
        "rescaling costs more than it brings": _decision([2, 2], [1, 1], [4, 4], [concave, dent], 6, up=50, down=50),
        "rescaling is free": _decision([2, 2], [1, 1], [4, 4], [concave, dent], 6, up=0, down=0),
        "running is worth less than stopping": _decision([2, 1], [1, 1], [2, 2], [[0.0, -3.0, -4.0], [0, 2, 3]], 3),
        "stopping is worth something": _decision([2, 1], [1, 1], [2, 2], [[4.0, 1.0, 2.0], [0, 2, 3]], 3),
        "nothing is worth anything": _decision([0, 1], [1, 1], [2, 2], [[0.0] * 3, [0.0] * 3], 3, up=0, down=0),
        "all jobs alike": _decision([0] * 4, [1] * 4, [4] * 4, [concave] * 4, 7, up=0, down=0),
        "no change allowed": _decision([1, 2], [1, 1], [4, 4], [concave, dent], 6, change_limit=0),
        "changes of one node allowed": _decision([1, 2], [1, 1], [4, 4], [concave, dent], 6, change_limit=1),
        "no answer within the limit": _decision([2, 0], [3, 1], [4, 4], [concave, dent], 6, change_limit=0),
        "large numbers": _decision([0, 2], [1, 1], [4, 4], (1e9 * np.array([concave, dent])).tolist(), 5, up=1e8),
        "small numbers": _decision([0, 2], [1, 1], [4, 4], (1e-6 * np.array([concave, dent])).tolist(), 5, up=1e-7),
        "a table wider than any job": _decision([0], [1], [2], [[0.0, 3.0, 4.0, 99.0, 99.0]], 4),
    }


def by_count_decisions() -> dict[str, AllocationProblem]:
    """Return small decisions whose losses depend on the new count, with one trap each, by the name of the trap."""
    concave, steep, inf = [0.0, 5.0, 8.0, 9.0, 9.5], [0.0, 2.0, 4.0, 6.0, 20.0], np.inf
    free = [0.0] * 5

    def decision(
        current: list[int], gain: list[list[float]], loss: list[list[float]], *limit: int
    ) -> AllocationProblem:
        bounds = np.ones(2, np.int64), np.full(2, 4)
        return AllocationProblem.by_count(np.array(current), *bounds, np.array(gain), np.array(loss), 6, *limit)

    allowed_counts = AllocationProblem.by_count(
        np.array([7, 0]),
        np.array([1, 1]),
        np.array([8, 5]),
        np.array([[0.0, 10.0, 20.0, 20.0, 40.0, 40.0, 40.0, 40.0, 80.0], [0.0, 7.0, 14.0, 21.0, 28.0, 35.0, 0, 0, 0]]),
        np.array([[5.0, 6.0, 6.0, inf, 6.0, inf, inf, 1.0, 50.0], [0.0, 40.0, 40.0, 40.0, 45.0, 45.0, 0, 0, 0]]),
        9,
    )
    return {
        "a loss that jumps above and below what is held": decision(
            [2, 3], [concave, steep], [[3.0, 1.0, 0.0, 0.2, 4.0], [0.0, 2.0, 0.5, 0.0, 15.0]]
        ),
        "left on a count that is else forbidden": allowed_counts,
        "what is held is forbidden": decision([3, 0], [concave, concave], [[1.0, 1.0, 1.0, inf, 0.5], free]),
        "a gap between what is held and more": decision([1, 1], [steep, steep], [[0.0, 0.0, inf, inf, 2.0]] * 2),
        "staying costs more than going": decision([2, 2], [concave, concave], [[0.0, 1.0, 9.0, 1.0, 1.0], free]),
        "nothing but 0 may be": decision([0, 2], [concave, concave], [[0.0, inf, inf, inf, inf], free]),
        "no answer by count within the limit": decision([3, 0], [concave, steep], [[0, 0, inf, inf, inf], free], 1),
    }


def random_by_count_decisions(count: int = RANDOM_DECISIONS, seed: int = 0) -> list[AllocationProblem]:
    """Return ``random_decisions`` with a loss at random for each count; three counts of ten are forbidden by it."""
    draw = np.random.default_rng(seed)
    decisions = []
    for problem in random_decisions(count, seed):
        loss = draw.integers(0, 8, problem.gain.shape).astype(np.float64)
        loss[:, 1:][draw.random(loss[:, 1:].shape) < 0.3] = np.inf
        bounds = problem.min_nodes, problem.max_nodes
        limits = problem.capacity, problem.change_limit
        decisions.append(AllocationProblem.by_count(problem.current, *bounds, problem.gain, loss, *limits))
    return decisions


def random_decisions(count: int = RANDOM_DECISIONS, seed: int = 0) -> list[AllocationProblem]:
    """Return decisions of up to five jobs on twelve nodes: curves with dents, sometimes a change limit."""
    draw = np.random.default_rng(seed)
    decisions = []
    for _ in range(count):
        n_jobs, capacity, width = (int(draw.integers(1, 6)), int(draw.integers(1, 13)), int(draw.integers(2, 10)))
        gain = np.cumsum(draw.integers(-2, 9, (n_jobs, width)), axis=1).astype(np.float64)
        gain[:, 0] = 0.0
        min_nodes = draw.integers(1, width, n_jobs)
        max_nodes = draw.integers(min_nodes, width)
        current, n_free = np.zeros(n_jobs, dtype=np.int64), capacity
        for job_index in range(n_jobs):
            current[job_index] = draw.integers(0, min(n_free, max_nodes[job_index]) + 1)
            n_free -= int(current[job_index])
        limit = int(draw.integers(0, capacity + 1)) if draw.random() < 0.3 else None
        losses = draw.integers(0, 8, (2, n_jobs)).astype(np.float64)
        decisions.append(AllocationProblem(current, min_nodes, max_nodes, gain, losses[0], losses[1], capacity, limit))
    return decisions


def wide_decisions(seed: int = 0) -> list[AllocationProblem]:
    """Return decisions of one and two jobs on 16, 33 and 64 idle nodes: curves with dents that rise to the end.

    They start from no node, from half of the nodes, and for one job also where rescaling costs too much.
    """
    generator = np.random.default_rng(seed)
    decisions = []
    for width in (16, 33, 64):
        for n_jobs in (1, 2):
            gain = np.cumsum(generator.integers(-2, 9, (n_jobs, width + 1)), axis=1).astype(np.float64)
            gain[:, 0] = 0.0
            losses = generator.integers(0, 8, (2, n_jobs)).astype(np.float64)
            current = np.array([width // 2 + 2, 1][:n_jobs])
            cases = ((0 * current, *losses), (current, *losses), (current, *(1e3 + losses)))
            for n_held, up_loss, down_loss in cases if n_jobs == 1 else cases[:2]:
                min_nodes, max_nodes = generator.integers(1, 4, n_jobs), np.full(n_jobs, width)
                decisions.append(AllocationProblem(n_held, min_nodes, max_nodes, gain, up_loss, down_loss, width))
    return decisions


@cache
def decisions_of_replay() -> tuple[AllocationProblem, ...]:
    """Return decisions of a replay of the bundled sample: two jobs of up to 64 nodes at once.

    At most 32 nodes are idle: beyond, a formulation with a column for each job and node may take minutes.
    """
    from bfreplay.datasets import load_events, load_jobs
    from bfreplay.datasets.bundled import sample_events_path, sample_jobs_path
    from bfreplay.policies import BFTrainerPolicy
    from bfreplay.replay import ReplaySettings
    from bfreplay.runs import RunSettings, run_replay

    events = load_events(sample_events_path())
    day = events.between(events.window_start_us, events.window_start_us + 86_400_000_000)
    solver = _Keeping()
    run_replay(
        day,
        load_jobs(sample_jobs_path()),
        BFTrainerPolicy(120.0, solver),
        ReplaySettings(2),
        RunSettings(efficiency=False, bound=False, tables=False),
    )
    return tuple(solver.problems[:: len(solver.problems) // 12])


class _Keeping(ExactSolver):
    """Exact solver that keeps the decisions on at most 32 idle nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[AllocationProblem] = []

    def solve(self, problem: AllocationProblem) -> Solution:
        if problem.capacity <= 32:
            self.problems.append(deepcopy(problem))
        return super().solve(problem)


TOLERANCE = 1e-9


def point_fault(model: LinearModel, x: NDArray[np.float64], tolerance: float = TOLERANCE) -> str:
    """Return the first constraint of ``model`` that ``x (C,)`` violates, in one sentence; empty if feasible.

    Bounds and whole columns may be off by ``tolerance``, rows by ``tolerance`` times the larger of 1 and their sum.
    """
    for column in np.flatnonzero((x < model.column_lower - tolerance) | (x > model.column_upper + tolerance)):
        lower, upper = model.column_lower[column], model.column_upper[column]
        return f"{model.column_names[column]} = {x[column]} is outside {lower} to {upper}"
    for column in np.flatnonzero(model.is_integer & (np.abs(x - np.rint(x)) > tolerance)):
        return f"{model.column_names[column]} = {x[column]} is not whole"
    sides = np.zeros(model.n_rows)
    np.add.at(sides, model.entry_row, model.entry_value * x[model.entry_column])
    slack = tolerance * np.maximum(1.0, np.abs(sides))
    for row in np.flatnonzero((sides < model.row_lower - slack) | (sides > model.row_upper + slack)):
        return f"row {model.row_names[row]} is {sides[row]}, outside {model.row_lower[row]} to {model.row_upper[row]}"
    for number, group in enumerate(model.sets):
        nonzero = np.flatnonzero(np.abs(x[group.columns[np.argsort(group.weights)]]) > tolerance)
        if nonzero.size > group.kind or (nonzero.size == 2 and nonzero[1] - nonzero[0] != 1):
            return f"set {number} has {nonzero.size} members that are not zero, or two that are not neighbours"
    return ""
