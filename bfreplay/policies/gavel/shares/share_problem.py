"""One recomputation of Gavel's policies: jobs, node types, and how fast each job is on each type."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ShareProblem:
    """m jobs, n node types, p pairs of jobs that may share nodes (Gavel, OSDI'20, section 3).

    Parameters
    ----------
    job : (m,) int64
        Number of each job, increasing: jobs are in order of arrival.
    type_names
        n names in alphabetical order.
    n_nodes : (n,) int64
        Nodes of each type (``c_j``).
    gang : (m,) int64
        Nodes that a job uses at once (``s_i``).
    rate : (m, n) float64
        Steps/s of a job on ``gang`` nodes of a type (``T_ij``); 0 where it cannot run.
    weight : (m,) float64
        Priority (``w_i``), > 0.
    steps_left : (m,) float64
        ``N_i``.
    age_s : (m,) float64
        Seconds since arrival (``t_i``).
    to_deadline_s : (m,) float64
        Seconds from now to the deadline; negative when it is past, inf for a job without one.
    price_per_hour : (n,) float64
        Of one node of a type.
    pair : (p, 2) int64
        Rows ``a < b`` of jobs with equal gangs that may share nodes; sorted, unique. None for policies without packing.
    pair_rate : (p, n, 2) float64
        Steps/s of ``a`` and of ``b`` when they share nodes of a type; zeros where they cannot.
    """

    job: NDArray[np.int64]
    type_names: tuple[str, ...]
    n_nodes: NDArray[np.int64]
    gang: NDArray[np.int64]
    rate: NDArray[np.float64]
    weight: NDArray[np.float64]
    steps_left: NDArray[np.float64]
    age_s: NDArray[np.float64]
    to_deadline_s: NDArray[np.float64]
    price_per_hour: NDArray[np.float64]
    pair: NDArray[np.int64] = field(default_factory=lambda: NO_PAIRS)
    pair_rate: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 2)))

    @property
    def n_jobs(self) -> int:
        """How many jobs: m."""
        return int(self.job.shape[0])

    @property
    def n_types(self) -> int:
        """How many node types: n."""
        return len(self.type_names)

    @property
    def n_pairs(self) -> int:
        """How many pairs: p."""
        return int(self.pair.shape[0])
