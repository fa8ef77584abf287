"""Which nodes there are, in which order, and which of them were not there all the time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.lint import MOST_EXAMPLES, Lint
from bfreplay.datasets.occupancy.node_use import NodeUse
from bfreplay.datasets.occupancy.record import Outage, ScheduleRecord
from bfreplay.datasets.occupancy.rules import DAY_S, OccupancyRules, microseconds
from bfreplay.datasets.occupancy.spool import OPEN_END
from bfreplay.datasets.occupancy.window import Window
from bfreplay.errors import InputError
from bfreplay.wording import count

NEVER_USED = (
    "no job ever used this node of the inventory, and no recorded outage explains it: it counts as idle all the time"
)
LONG_UNUSED = (
    "no job used this node for long at an edge of the window (--absent-after), and no recorded outage explains it: it "
    "counts as idle, and may be down"
)
FEW_NODES, OFTEN, SHORT_SHARE = 10, 24, 0.05
NAMED_ONCE = (
    "one short job only names this node, where others are named by dozens: it may be misspelt, and then looks idle"
)
NAMED_OTHERWISE = (
    "one job only names this node, and no other name is like it but for its numbers: it may be misspelt, or no node"
)
FEW_ALIKE = 3
_DIGITS = re.compile(r"\d+")
ABSENT = "nodes assumed absent"
HOUR_US = 3_600 * 1_000_000


def inventory_known(record: ScheduleRecord) -> bool:
    """Whether all nodes of the machine are known, used or not."""
    return record.inventory_known or record.machine_size is not None


def doubt_rare_names(record: ScheduleRecord, use: NodeUse, lint: Lint) -> None:
    """Doubt nodes that one job names, where others are named by dozens or in another way.

    A misspelt name, or a cell of another column, would be a node that looks idle nearly all the time.
    """
    jobs_on = use.jobs_on
    named = jobs_on[use.is_used]
    _doubt_strange_names(record, use, lint)
    if len(named) < FEW_NODES or float(np.median(named)) < OFTEN:
        return
    span_us = record.last_stamp_us - record.first_start_us
    until_us = np.clip(use.last_us, record.first_start_us, record.last_stamp_us)
    is_short = until_us - np.minimum(use.first_us, until_us) < SHORT_SHARE * span_us
    once = np.flatnonzero((jobs_on == 1) & is_short)
    names = record.nodes
    for node in once[:MOST_EXAMPLES].tolist():
        lint.doubt(NAMED_ONCE, value=names[node])
    lint.doubt(NAMED_ONCE, n=max(0, len(once) - MOST_EXAMPLES))


def _doubt_strange_names(record: ScheduleRecord, use: NodeUse, lint: Lint) -> None:
    all_names = record.nodes
    names = [all_names[node] for node in np.flatnonzero(use.is_used)]
    forms = [_DIGITS.sub("0", name) for name in names]
    many = Counter(forms)
    if not many or many.most_common(1)[0][1] < FEW_ALIKE:
        return
    for name, form, n_jobs in zip(names, forms, use.jobs_on[use.is_used].tolist(), strict=True):
        if many[form] == 1 and n_jobs == 1:
            lint.doubt(NAMED_OTHERWISE, value=name)


def check_given_inventory(record: ScheduleRecord, use: NodeUse) -> None:
    """Refuse an inventory that has no name in common with the jobs.

    Raises
    ------
    InputError
        It has none: other names of the same nodes, or of another machine.
    """
    n_given, jobs_on = record.n_given, use.jobs_on
    if not n_given or not jobs_on[n_given:].any() or jobs_on[:n_given].any():
        return
    names = record.nodes
    raise InputError(
        "no job ran on a node of the inventory that was given",
        column="--inventory",
        value=f"{', '.join(names[:3])}, ...; jobs name {', '.join(names[n_given : n_given + 3])}, ...",
        expected="the names that the log uses",
        fix="are these full host names? Cut them: cut -d. -f1 nodes.txt > short.txt",
    )


def doubt_unused_nodes(record: ScheduleRecord, use: NodeUse, rules: OccupancyRules, window: Window, lint: Lint) -> None:
    """Doubt nodes that are said to be there and that no job used for long, or ever: they may be down."""
    states_known = record.outages_known or any(outage.state == NodeState.BUSY for outage in record.outages)
    if not record.inventory_known or record.n_counted or states_known:
        return
    n_nodes, after_us = len(use.jobs_on), microseconds(rules.absent_after_s)
    length_us = window.end_us - window.start_us
    until_us = np.where(use.is_used, np.minimum(use.first_us, window.end_us), window.end_us)
    behind_us = np.where(use.is_used, np.clip(use.last_us, window.start_us, window.end_us), window.end_us)
    before = _without_outages(record, np.full(n_nodes, window.start_us), until_us)
    after = _without_outages(record, behind_us, np.full(n_nodes, window.end_us))
    never = ~use.is_used & (before > min(after_us, length_us // 2))
    for sentence, which in ((NEVER_USED, never), (LONG_UNUSED, use.is_used & (np.maximum(before, after) > after_us))):
        found = np.flatnonzero(which)
        names = record.nodes
        for node in found[:MOST_EXAMPLES].tolist():
            lint.doubt(sentence, value=names[node])
        lint.doubt(sentence, n=max(0, len(found) - MOST_EXAMPLES))


def _without_outages(
    record: ScheduleRecord, start_us: NDArray[np.int64], end_us: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How much of a time of its own of each node, ``(N,)``, no outage of it covers (where outages overlap: less)."""
    left_us: NDArray[np.int64] = np.maximum(end_us - start_us, 0)
    for outage in record.outages:
        nodes = slice(None) if outage.nodes is None else outage.nodes
        covered = np.minimum(end_us[nodes], outage.end_us) - np.maximum(start_us[nodes], outage.start_us)
        left_us[nodes] -= np.maximum(covered, 0)
    return left_us


def absences(
    record: ScheduleRecord, use: NodeUse, n_nodes: int, rules: OccupancyRules, window: Window, facts: dict[str, Any]
) -> tuple[list[Outage], NDArray[np.bool_]]:
    """Outages of nodes that were not there yet, or not any more; and which of ``n_nodes`` were not there at all.

    Nodes that only records of outages name belong to the second: nobody says that they were in use.
    """
    left_out = np.zeros(n_nodes, np.bool_)
    if inventory_known(record) or not record.nodes:
        return [], left_out
    after_us = microseconds(rules.absent_after_s)
    gone = use.is_used & (use.last_us < window.start_us - after_us)
    to_come = use.is_used & (use.first_us > window.end_us + after_us)
    left_out[:] = ~use.is_used | gone | to_come
    if left_out.any():
        such = ", ".join(record.nodes[node] for node in np.flatnonzero(left_out)[:MOST_EXAMPLES])
        facts["nodes left out"] = (
            f"{count(int(left_out.sum()), 'node')} that no job used within {rules.absent_after_s / DAY_S:g} days "
            f"of the window, such as {such}"
        )
    late, early = _unused_at_edges(use, rules, window)
    late, early = late & ~left_out, early & ~left_out
    edge_us = min(window.start_us, record.first_start_us) - 1
    free_us = use.last_us + np.where(early, microseconds(rules.release_delay_s), 0)
    outages = [
        Outage(NodeState.UNKNOWN, edge_us, int(use.first_us[node]), np.array([node], np.int32))
        for node in np.flatnonzero(late)
    ] + [
        Outage(NodeState.UNKNOWN, int(free_us[node]), OPEN_END, np.array([node], np.int32))
        for node in np.flatnonzero(early)
    ]
    if outages:
        before_us = np.minimum(use.first_us[late], window.end_us) - window.start_us
        behind_us = window.end_us - np.clip(free_us[early], window.start_us, window.end_us)
        names = record.nodes
        facts[ABSENT] = {
            "before their first job": int(late.sum()),
            "after their last job": int(early.sum()),
            "node_hours": (before_us.sum(dtype=float) + behind_us.sum(dtype=float)) / HOUR_US,
            "such as": [names[node] for node in np.flatnonzero(late | early)[:MOST_EXAMPLES]],
        }
    return outages, left_out


def _unused_at_edges(
    use: NodeUse, rules: OccupancyRules, window: Window
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Nodes that no job used for long after the start of the window, and for long before its end, ``(N,)`` each."""
    after_us = microseconds(rules.absent_after_s)
    late = use.is_used & (np.minimum(use.first_us, window.end_us) - window.start_us > after_us)
    early = use.is_used & (window.end_us - np.maximum(use.last_us, window.start_us) > after_us)
    return late, early


def positions(names: Sequence[str], left_out: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Number of each node in the sweep: those of the inventory sorted by name, then those left out."""
    order = sorted(range(len(names)), key=lambda i: (left_out[i], names[i]))
    position = np.empty(len(names), np.int32)
    position[order] = np.arange(len(names), dtype=np.int32)
    return position
