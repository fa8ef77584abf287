"""Formulations over counts with piecewise-linear values: by special ordered sets, or by a binary for each segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.formulation import NodeMap, add_weighted_curves, kinks, start_counts
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


class CountsSos2:
    """Formulation over node counts: the published model without its nodes, and so without its defect.

    With N = capacity, C_j = current_j and k = change_limit (none: infinite), job j's count lies between
    ``L_j = max(0, C_j - k)`` and ``U_j = min(max_nodes_j, N, C_j + k)``.

    Variables: ``count[j]`` integer in [0, U_j]; ``running[j]``, ``up[j]``, ``down[j]`` binary;
    ``weight[j, b] >= 0`` for the breakpoints b of job j's curve (0, and its kinks from the larger of
    min_nodes_j and L_j to U_j: what lies between is forbidden, so the curve may as well be straight there), an SOS2.

    Maximise ``sum gain_j(b) weight[j, b] - scale_up_loss_j up[j] - scale_down_loss_j down[j]`` subject to

    - ``capacity[0]``: ``sum_j count[j] <= N``
    - ``least[j]``, ``most[j]``: ``min_nodes_j running[j] <= count[j] <= U_j running[j]``
    - ``convex[j]``, ``curve[j]``: ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count[j]``
    - ``up[j]``: ``count[j] <= C_j + max(0, U_j - C_j) up[j]``
    - ``down[j]``: ``count[j] >= C_j - (C_j - L_j) down[j]``

    Nothing makes ``up`` and ``down`` 0 where they need not be 1 but the losses, which are never negative.

    Size: 4 J + B columns with B <= J (min(K, N) + 1) breakpoints, 6 J + 1 rows, at most 10 J + 2 B entries.

    Source: BFTrainer, arXiv:2106.12091, equations 1 to 16, over counts; special ordered sets are from Beale and
    Tomlin, "Special facilities in a general mathematical programming system for non-convex problems using ordered
    sets of variables", 1970.
    """

    name = "counts_sos2"
    needs_sos = True
    needs_continuous = True
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; the first J columns are the counts."""
        index = np.arange(problem.n_jobs)
        current, limit = problem.current, problem.change_limit
        upper = np.minimum(problem.max_nodes, problem.capacity)
        lower = np.zeros_like(current)
        if limit is not None:
            upper, lower = np.minimum(upper, current + limit), np.maximum(0, current - limit)

        current_count = current.astype(np.float64)

        columns, rows = Columns(), Rows()
        count = columns.add("count", index, upper=upper.astype(np.float64))
        running = columns.add("running", index)
        scales_up = columns.add("up", index, objective=-problem.scale_up_loss)
        scales_down = columns.add("down", index, objective=-problem.scale_down_loss)

        rows.put(rows.add("capacity", 1, -np.inf, float(problem.capacity)), count, 1.0)
        rows.constrain("least", 0.0, np.inf, (count, 1.0), (running, -problem.min_nodes))
        rows.constrain("most", -np.inf, 0.0, (count, 1.0), (running, -upper))
        points = [_breakpoints(problem.gain[j], int(max(problem.min_nodes[j], lower[j])), int(upper[j])) for j in index]
        curves = add_weighted_curves(columns, rows, problem.gain, points)
        rows.put(curves.curve_row + index, count, -1.0)
        rows.constrain("up", -np.inf, current_count, (count, 1.0), (scales_up, -np.maximum(upper - current, 0)))
        rows.constrain("down", current_count, np.inf, (count, 1.0), (scales_down, current - lower))

        start, counts = None, start_counts(problem)
        if counts is not None:
            start = np.zeros(len(columns.names))
            start[count] = counts
            start[running] = counts > 0
            start[scales_down] = counts < current
            start[curves.column] = curves.weights_at(counts)
        return rows.model_of(columns, sets=curves.sets, start=start)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the counts, rounded."""
        return np.rint(x[: problem.n_jobs]).astype(np.int64), None


def _breakpoints(gain: NDArray[np.float64], least: int, most: int) -> NDArray[np.int64]:
    """0, and the kinks of ``gain`` from ``least`` to ``most``, where there is any count between them."""
    if most < least:
        return np.zeros(1, dtype=np.int64)
    return np.concatenate((np.zeros(1, dtype=np.int64), least + kinks(gain[least : most + 1])))


class CountsSegments:
    """The multiple-choice model of piecewise-linear functions, rescale losses included in the pieces.

    What job j's counts are worth, f_j, is cut into straight segments that share no count: 0; the pieces of its curve
    below what it holds now, each less the scale-down loss; what it holds now; and the pieces above, each less the
    scale-up loss. Segment s goes from a_s to b_s nodes; only counts that bounds, capacity and change limit allow are
    in any.

    Variables: ``segment[j, a]`` binary, job j's count is in its segment that begins at a; ``beyond[j, a]`` integer
    in 0..b_s - a_s for the segments of more than one count: how far above a.

    Maximise ``sum f_j(a_s) segment_s + slope_s beyond_s`` subject to

    - ``one[j]``: ``sum_s segment_s = 1`` over the segments of job j
    - ``inside[j, a]``: ``beyond_s <= (b_s - a_s) segment_s``
    - ``capacity[0]``: ``sum_s a_s segment_s + beyond_s <= N``

    This is the multiple-choice model with its count in segment s written as ``a_s segment_s + beyond_s``. It is
    sharp and locally ideal: the relaxation of each job is the concave hull of its f_j, jumps included, so the
    relaxed model's bound is the Lagrangian one, and rescaling needs neither a binary of its own nor a big M.

    Size: S + D columns and J + D + 1 rows for S segments, D <= S of them of more than one count; S is at most
    J (min(K, N) / 2 + 3), because any two neighbouring counts are on a line, and about 8 a job for published
    curves; at most 2 S + 3 D entries. A job without any allowed count (a change limit can do that) has the one
    segment 0, with an upper bound of 0: the model is infeasible, as it should be.

    Source: Vielma, Ahmed and Nemhauser, "Mixed-integer models for nonseparable piecewise-linear optimization:
    unifying framework and extensions", Operations Research 58, 2010 (multiple-choice model; sharp; locally ideal).
    """

    name = "counts_segments"
    needs_sos = False
    needs_continuous = False
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; columns ordered by kind, job, then count."""
        parts = segments(problem)
        width = (parts.last - parts.first).astype(np.float64)
        is_feasible = problem.value[parts.job, parts.first] > -np.inf
        worth = np.where(is_feasible, problem.value[parts.job, parts.first], 0.0)
        wide = np.flatnonzero(width > 0)
        slope = (problem.value[parts.job, parts.last] - worth)[wide] / width[wide]

        columns, rows = Columns(), Rows()
        segment = columns.add("segment", parts.job, parts.first, objective=worth, upper=is_feasible.astype(np.float64))
        beyond = columns.add("beyond", parts.job[wide], parts.first[wide], objective=slope, upper=width[wide])
        rows.put(rows.add("one", problem.n_jobs, 1.0, 1.0) + parts.job, segment, 1.0)
        index = parts.job[wide], parts.first[wide]
        rows.constrain("inside", -np.inf, 0.0, (beyond, 1.0), (segment[wide], -width[wide]), index=index)
        capacity = rows.add("capacity", 1, -np.inf, float(problem.capacity))
        rows.put(capacity, segment, parts.first.astype(np.float64))
        rows.put(capacity, beyond, 1.0)

        start, counts = None, start_counts(problem)
        if counts is not None:
            count = counts[parts.job]
            within = (parts.first <= count) & (count <= parts.last)
            start = np.zeros(len(columns.names))
            start[segment] = within
            start[beyond] = (within * (count - parts.first))[wide]
        return rows.model_of(columns, start=start)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the counts. A job with two segments gets the sum: re-verification judges it."""
        parts = segments(problem)
        values = np.rint(x).astype(np.int64)
        is_chosen, beyond = values[: parts.job.shape[0]], values[parts.job.shape[0] :]
        counts = np.zeros(problem.n_jobs, dtype=np.int64)
        np.add.at(counts, parts.job, parts.first * is_chosen)
        np.add.at(counts, parts.job[parts.last > parts.first], beyond)
        return counts, None


@dataclass(frozen=True, slots=True)
class Segments:
    """Job, first and last count of each segment, ordered by job, then count: three ``(S,)`` int64 arrays."""

    job: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def segments(problem: AllocationProblem) -> Segments:
    """Cut every job's allowed counts into stretches on which f_j is straight; a job without any has the stretch 0."""
    bounds: list[tuple[int, int, int]] = []
    for job_index in range(problem.n_jobs):
        feasible = np.flatnonzero(problem.value[job_index] > -np.inf)
        if feasible.shape[0] == 0:
            bounds.append((job_index, 0, 0))
        current = int(problem.current[job_index])
        running = feasible[feasible > 0]
        for counts in (
            feasible[feasible == 0],
            running[running < current],
            running[running == current],
            running[running > current],
        ):
            if counts.shape[0] > 0:
                lowest_count, highest_count = int(counts[0]), int(counts[-1])
                bounds.extend(
                    (job_index, lowest_count + first, lowest_count + last)
                    for first, last in _straight(kinks(problem.value[job_index, lowest_count : highest_count + 1]))
                )
    table = np.array(bounds, dtype=np.int64).reshape(-1, 3)
    return Segments(table[:, 0], table[:, 1], table[:, 2])


def _straight(points: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Disjoint stretches that cover 0 to the last kink, each within two neighbouring kinks, as long as they can be."""
    bends = points.tolist()
    stretches: list[tuple[int, int]] = []
    first = 0
    for right in bends[1:]:
        if first < right:  # if equal, it begins the next stretch
            stretches.append((first, right))
            first = right + 1
    if first == bends[-1]:
        stretches.append((first, first))
    return stretches
