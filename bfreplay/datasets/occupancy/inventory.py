"""Which nodes there are, in which order, and which of them were not there all the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.lint import MOST_EXAMPLES, Lint
from bfreplay.datasets.occupancy.record import Outage, ScheduleRecord
from bfreplay.datasets.occupancy.rules import DAY_S, OccupancyRules, microseconds
from bfreplay.datasets.occupancy.spool import OPEN_END
from bfreplay.datasets.occupancy.window import Window

FEW_NODES, OFTEN, SHORT_SHARE = 10, 24, 0.05
NAMED_ONCE = (
    "one short job only names this node, where others are named by dozens: it may be misspelt, and then looks idle"
)
HOUR_US = 3_600 * 1_000_000


def inventory_known(record: ScheduleRecord) -> bool:
    """Whether all nodes of the machine are known, used or not."""
    return record.inventory_known or record.machine_size is not None


def doubt_rare_names(record: ScheduleRecord, lint: Lint) -> None:
    """Doubt nodes that one job names where others are named by dozens: a misspelt name looks idle all the time."""
    jobs_on = record.jobs_on_nodes()
    named = jobs_on[jobs_on > 0]
    if len(named) < FEW_NODES or float(np.median(named)) < OFTEN:
        return
    first_us, last_us = record.seen()
    span_us = record.last_stamp_us - record.first_start_us
    is_short = np.minimum(last_us, record.last_stamp_us) - first_us < SHORT_SHARE * span_us
    once = np.flatnonzero((jobs_on == 1) & is_short)
    names = record.nodes
    for node in once[:MOST_EXAMPLES].tolist():
        lint.doubt(NAMED_ONCE, value=names[node])
    lint.doubt(NAMED_ONCE, n=max(0, len(once) - MOST_EXAMPLES))


def absences(
    record: ScheduleRecord, names: Sequence[str], rules: OccupancyRules, window: Window, facts: dict[str, Any]
) -> tuple[list[Outage], NDArray[np.bool_]]:
    """Outages of nodes that were not there yet, or not any more; and which nodes were not there at all."""
    left_out = np.zeros(len(names), np.bool_)
    if inventory_known(record) or not record.nodes:
        return [], left_out
    first_us, last_us = record.seen()
    after_us = microseconds(rules.absent_after_s)
    never_used = first_us == OPEN_END
    gone = (last_us < window.start_us - after_us) & ~never_used
    to_come = (first_us > window.end_us + after_us) & ~never_used
    left_out[: len(first_us)] = gone | to_come
    if left_out.any():
        facts["nodes left out"] = (
            f"{int(left_out.sum()):,} nodes that no job used within {rules.absent_after_s / DAY_S:g} days of the window"
        )
    outages = []
    edge = min(window.start_us, record.first_start_us) - 1
    late = ~left_out[: len(first_us)] & ~never_used & (first_us - window.start_us > after_us)
    early = ~left_out[: len(first_us)] & ~never_used & (window.end_us - last_us > after_us) & (last_us < window.end_us)
    for node in np.flatnonzero(late):
        outages.append(Outage(NodeState.UNKNOWN, edge, int(first_us[node]), np.array([node], np.int32)))
    release_us = microseconds(rules.release_delay_s)
    for node in np.flatnonzero(early):
        outages.append(Outage(NodeState.UNKNOWN, int(last_us[node]) + release_us, OPEN_END, np.array([node], np.int32)))
    if outages:
        absent_us = int(np.minimum(first_us[late], window.end_us).sum()) - window.start_us * int(late.sum())
        absent_us += window.end_us * int(early.sum()) - int(np.maximum(last_us[early], window.start_us).sum())
        facts["nodes assumed absent"] = {
            "before their first job": int(late.sum()),
            "after their last job": int(early.sum()),
            "node_hours": absent_us / HOUR_US,
        }
    return outages, left_out


def positions(names: Sequence[str], left_out: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Number of each node in the sweep: those of the inventory sorted by name, then those left out."""
    order = sorted(range(len(names)), key=lambda i: (left_out[i], names[i]))
    position = np.empty(len(names), np.int32)
    position[order] = np.arange(len(names), dtype=np.int32)
    return position
