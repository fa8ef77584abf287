"""Counts with piecewise-linear values as one binary for each straight stretch; no nodes, no special ordered sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.curves import kinks, start_counts
from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


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
        allowed = problem.value[parts.job, parts.first] > -np.inf
        worth = np.where(allowed, problem.value[parts.job, parts.first], 0.0)
        wide = np.flatnonzero(width > 0)
        slope = (problem.value[parts.job, parts.last] - worth)[wide] / width[wide]

        columns, rows = Columns(), Rows()
        segment = columns.add("segment", parts.job, parts.first, objective=worth, upper=allowed.astype(np.float64))
        beyond = columns.add("beyond", parts.job[wide], parts.first[wide], objective=slope, upper=width[wide])
        rows.put(rows.add("one", problem.n_jobs, 1.0, 1.0) + parts.job, segment, 1.0)
        index = parts.job[wide], parts.first[wide]
        rows.relate("inside", -np.inf, 0.0, (beyond, 1.0), (segment[wide], -width[wide]), index=index)
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
        whole = np.rint(x).astype(np.int64)
        chosen, beyond = whole[: parts.job.shape[0]], whole[parts.job.shape[0] :]
        counts = np.zeros(problem.n_jobs, dtype=np.int64)
        np.add.at(counts, parts.job, parts.first * chosen)
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
    found: list[tuple[int, int, int]] = []
    for j in range(problem.n_jobs):
        allowed = np.flatnonzero(problem.value[j] > -np.inf)
        if allowed.shape[0] == 0:
            found.append((j, 0, 0))
        now = int(problem.current[j])
        running = allowed[allowed > 0]
        for counts in (allowed[allowed == 0], running[running < now], running[running == now], running[running > now]):
            if counts.shape[0] > 0:
                a, b = int(counts[0]), int(counts[-1])
                found.extend((j, a + s, a + e) for s, e in _straight(kinks(problem.value[j, a : b + 1])))
    table = np.array(found, dtype=np.int64).reshape(-1, 3)
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
