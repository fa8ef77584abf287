"""What jobs make on the nodes where they are: by the type of these, and by who shares them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bfreplay.replay.active import ActiveJobs
from bfreplay.workload import Colocation


def locate(active: ActiveJobs, model_names: Sequence[str], colocation: Colocation | None) -> None:
    """Write into ``active.throughput`` what each job makes at each count on nodes of the type that it holds.

    Of a job that shares its nodes only the count that it has can be looked up: it makes what it makes there.
    """
    records = active.records[: active.n]
    active.throughput[: active.n] = active.by_type[np.arange(active.n), records["node_type"]]
    if colocation is None:
        return
    type_names = active.type_names
    for row in np.flatnonzero(records["sharing"]).tolist():
        record = records[row]
        other = records[active.row_of_job[record["partner"]]]
        count = int(record["count"])
        names = [None if each["model"] < 0 else model_names[each["model"]] for each in (record, other)]
        rate = 0.0
        if names[0] is not None and names[1] is not None:
            rate = colocation.rates(names[0], names[1], count, type_names[record["node_type"]])[0]
        active.throughput[row] = 0.0
        active.throughput[row, count] = rate
