"""What Gavel's policies answer, and what they all can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import ShareProblem


@dataclass(frozen=True, slots=True, eq=False)
class TimeShares:
    """Shares of wall-clock time (``X``) until the next recomputation.

    Parameters
    ----------
    share : (m, n) float64
        Of each job alone on each node type, within [0, 1].
    pair_share : (p, n) float64
        Of each pair of the problem.
    objective
        What the policy optimised, at this answer; NaN for one that follows a rule.
    deadlines_dropped
        Deadlines were to count and could not all be met, so none did.
    """

    share: NDArray[np.float64]
    pair_share: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    objective: float = float("nan")
    deadlines_dropped: bool = False

    def throughput(self, problem: ShareProblem) -> NDArray[np.float64]:
        """(m,) steps/s of each job under these shares, alone and in pairs together (``th_i``)."""
        total: NDArray[np.float64] = (problem.rate * self.share).sum(axis=1)
        for member in (0, 1):
            if problem.n_pairs:
                gained = (problem.pair_rate[:, :, member] * self.pair_share).sum(axis=1)
                np.add.at(total, problem.pair[:, member], gained)
        return total


class SharePolicy(Protocol):
    """Gives shares of time; one object lives through a replay and may remember what it answered before."""

    uses_pairs: bool
    """Jobs may share nodes: it wants ``pair`` and ``pair_rate`` in its problems."""

    runs_only_its_own: bool
    """Nothing runs that has no share, even on nodes that would stay empty (the FIFO policies)."""

    looks_at_work: bool
    """It depends on the steps that are left: there must be no jobs without end."""

    shuffles_types: bool
    """It does not know node types apart: rounds walk through them in random order."""

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares for the jobs of ``problem``, of which there is at least one."""
        ...

    def forget(self) -> None:
        """A new replay begins."""
        ...
