"""The form of the Alea simulator: column 19 lists, for each processor, the number of its node: ``{12,12,13}``."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.swf.rows import Rows

ANOTHER_NUMBER = "column 19 lists another number of processors than column 5 has: the nodes listed are believed"


@lru_cache(maxsize=65_536)
def nodes_of_list(text: str) -> tuple[str, ...]:
    """Return the nodes of a list, each once, in order, without leading zeros."""
    return tuple(dict.fromkeys(str(int(node)) for node in text.strip("{}").split(",")))


def n_listed(rows: Rows) -> NDArray[np.int64]:
    """Return how many processors each row lists, ``(R,)``."""
    return np.array([text.count(",") + 1 for text in rows.node_lists], np.int64)


def add_listed(
    record: ScheduleRecord,
    rows: Rows,
    kept: NDArray[np.int64],
    key: NDArray[np.int64],
    start_us: NDArray[np.int64],
    end_us: NDArray[np.int64],
    file: str,
) -> None:
    """Add the rows ``kept`` (indices), whose keys and times these are, with the nodes that they list."""
    listed = n_listed(rows)
    for i, job, start, end in zip(kept.tolist(), key.tolist(), start_us.tolist(), end_us.tolist(), strict=True):
        line, processors = int(rows.line[i]), int(rows.processors[i])
        if processors != listed[i]:
            record.lint.doubt(ANOTHER_NUMBER, file, line, f"{processors} processors, {listed[i]} listed")
        nodes = record.node_ids(nodes_of_list(rows.node_lists[i]))
        record.add_job(job, start, end, nodes, file=file, line=line)
