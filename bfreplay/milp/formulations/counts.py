"""Formulations over counts with piecewise-linear values: by special ordered sets, or by a binary for each segment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.curves import Stretches, add_value_curves, kinks, neighbours
from bfreplay.milp.formulations.formulation import NodeMap, start_counts
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


class CountsSos2:
    """Formulation over node counts, with what they are worth as weights at breakpoints: no nodes, no big M.

    With N = capacity, f_j is a curve over job j's allowed counts, losses included. Counts between which others are
    forbidden (by ``min_nodes``, a change limit or an infinite loss) are on different stretches of it.

    Variables: ``count[j]`` integer; ``weight[j, b] >= 0`` for the breakpoints b of job j (the kinks of f_j in each
    stretch, and current_j), an SOS2; ``stretch[j, a]`` binary, job j's count is in its stretch that begins at a.

    Maximise ``sum f_j(b) weight[j, b]`` subject to

    - ``capacity[0]``: ``sum_j count[j] <= N``
    - ``convex[j]``, ``curve[j]``: ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count[j]``
    - ``stretch[j, a]``: ``sum_b weight[j, b] = stretch[j, a]`` over the breakpoints in that stretch

    Where the value jumps from one count to the next the piece between them is steep, and no count is inside. The
    relaxation of each job is the concave hull of its f_j, as that of ``choices``.

    Size: J + B + T columns with T stretches (2 a job where ``min_nodes`` is above 1, else 1, if no count is forbidden)
    and B <= J (min(K, N) + 1) breakpoints, 2 J + T + 1 rows, at most 2 J + 3 B + T entries. A job without any allowed
    count (a change limit can do that) has the one stretch 0, with an upper bound of 0: the model is infeasible, as it
    should be.

    Source: BFTrainer, arXiv:2106.12091, equations 1 to 16, over counts; special ordered sets are from Beale and
    Tomlin, "Special facilities in a general mathematical programming system for non-convex problems using ordered
    sets of variables", 1970; a binary for each stretch of a function with gaps is from Vielma, Ahmed and Nemhauser (see
    ``CountsSegments``).
    """

    name = "counts_sos2"
    needs_sos = True
    needs_continuous = True
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; the first J columns are the counts."""
        job_index = np.arange(problem.n_jobs)
        most = np.minimum(problem.max_nodes, problem.capacity)
        columns, rows = Columns(), Rows()
        count = columns.add("count", job_index, upper=most)
        rows.put(rows.add("capacity", 1, -np.inf, float(problem.capacity)), count, 1.0)
        values = add_value_curves(columns, rows, problem)
        rows.put(values.curves.curve_row + job_index, count, -1.0)

        start, counts = None, start_counts(problem)
        if counts is not None:
            start = np.zeros(len(columns.names))
            start[count] = counts
            start[values.curves.column] = values.curves.weights_at(counts)
            start[values.column] = values.stretches.holds(counts)
        return rows.model_of(columns, sets=values.curves.sets, start=start)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the counts."""
        return np.rint(x[: problem.n_jobs]).astype(np.int64), None


class CountsSegments:
    """The multiple-choice model of piecewise-linear functions, rescale losses included in the pieces.

    What job j's counts are worth, f_j, is cut into straight segments that share no count: 0; the pieces of its curve
    below what it holds now, less the losses; what it holds now; and the pieces above, less the losses. Between
    segments the value may jump, and counts may be forbidden: segment s goes from a_s to b_s nodes, and only counts that
    bounds, capacity, change limit and finite losses allow are in any.

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
            within = parts.holds(counts)
            start = np.zeros(len(columns.names))
            start[segment] = within
            start[beyond] = (within * (counts[parts.job] - parts.first))[wide]
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


def segments(problem: AllocationProblem) -> Stretches:
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
            for lowest_count, highest_count in neighbours(counts):
                bounds.extend(
                    (job_index, lowest_count + first, lowest_count + last)
                    for first, last in _straight(kinks(problem.value[job_index, lowest_count : highest_count + 1]))
                )
    return Stretches.of(bounds)


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
