"""Jobs of many rows at once, with nothing to report about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class OrdinaryJobs:
    """Jobs (J) that ended, on known nodes, in the order of their rows, with nothing to report about them.

    ``row``, ``job``, ``start_us``, ``end_us``, ``limit_end_us`` (``OPEN_END`` without a limit) are ``(J,) int64``,
    ``is_completed`` is ``(J,)``; the nodes of job j are ``nodes[first_node[j]:first_node[j + 1]]``. ``submitted``
    returns when a row was submitted, as in the log; ``has_restarts``: the log says that no job was restarted.
    """

    row: NDArray[np.int64]
    job: NDArray[np.int64]
    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    limit_end_us: NDArray[np.int64]
    is_completed: NDArray[np.bool_]
    first_node: NDArray[np.int64]
    nodes: NDArray[np.int32]
    submitted: Callable[[int], object]
    has_restarts: bool

    def part(self, begin: int, end: int) -> OrdinaryJobs:
        """Return the jobs from position ``begin`` up to ``end``."""
        first, after = self.first_node[begin], self.first_node[end]
        return OrdinaryJobs(
            row=self.row[begin:end],
            job=self.job[begin:end],
            start_us=self.start_us[begin:end],
            end_us=self.end_us[begin:end],
            limit_end_us=self.limit_end_us[begin:end],
            is_completed=self.is_completed[begin:end],
            first_node=self.first_node[begin : end + 1] - first,
            nodes=self.nodes[first:after],
            submitted=self.submitted,
            has_restarts=self.has_restarts,
        )
