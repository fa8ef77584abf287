"""Inventory of nodes: names, order, and times of absence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.import_report import MOST_EXAMPLES, ImportReport
from bfreplay.datasets.ingest.occupancy.rules import DAY_S, OccupancyRules, microseconds
from bfreplay.datasets.ingest.occupancy.schedule import Outage, ScheduleRecord, Window, one_name
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobIntervals, first_of_each
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import HOUR_US
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
TWO_SPELLINGS = (
    "names of nodes differ in their domain or in upper and lower case only: is it one node? It counts as several, idle "
    "while jobs name it otherwise (--node-names makes one of them)"
)
MERGED = "names of nodes in different domains became one (--node-names): are they one node?"
_DIGITS = re.compile(r"\d+")
SKIPPED_NODES = "nodes skipped"
ABSENT = "nodes assumed absent"
ABSENT_WARNING = (
    "no job used this node for long at an edge of the window (--absent-after): it is assumed absent then, and would be "
    "idle if it was there (--inventory says which nodes there are)"
)


class Absence(NamedTuple):
    """Nodes assumed absent in the window: count, node-hours, and some names."""

    nodes: int
    node_hours: float
    examples: str


def has_full_inventory(record: ScheduleRecord) -> bool:
    """Return whether all nodes of the machine are known, used or not."""
    return record.inventory_known or record.machine_size is not None


def rare_names(record: ScheduleRecord, node_uses: NodeUse) -> dict[str, list[int]]:
    """Return nodes named by one job only, if others are named by dozens or in another way, by warning.

    A misspelt name, or a cell of another column, would be a node that looks idle nearly all the time.
    """
    jobs_on = node_uses.jobs_on
    job_counts = jobs_on[node_uses.is_used]
    strange = _strange_names(record, node_uses)
    if len(job_counts) < FEW_NODES or float(np.median(job_counts)) < OFTEN:
        return {NAMED_OTHERWISE: strange}
    span_us = record.last_stamp_us - record.first_start_us
    until_us = np.clip(node_uses.last_us, record.first_start_us, record.last_stamp_us)
    is_short = until_us - np.minimum(node_uses.first_us, until_us) < SHORT_SHARE * span_us
    once = np.flatnonzero((jobs_on == 1) & is_short).tolist()
    return {NAMED_ONCE: once, NAMED_OTHERWISE: [node_index for node_index in strange if node_index not in once]}


def _strange_names(record: ScheduleRecord, node_uses: NodeUse) -> list[int]:
    node_names, nodes = record.nodes, np.flatnonzero(node_uses.is_used).tolist()
    forms = {node_index: _DIGITS.sub("0", node_names[node_index]) for node_index in nodes}
    many = Counter(forms.values())
    if not many or many.most_common(1)[0][1] < FEW_ALIKE:
        return []
    return [node_index for node_index in nodes if many[forms[node_index]] == 1 and node_uses.jobs_on[node_index] == 1]


def warn_of_spellings(
    record: ScheduleRecord, absent: Sequence[Outage], is_absent: NDArray[np.bool_], window: Window, report: ImportReport
) -> None:
    """Warn of nodes that have several names, and names in several domains that ``--node-names`` made one node.

    Of the names of one node all but one are superfluous: their presence gives the node-hours.
    """
    if record.units is not None:
        return  # a name that the table does not have is refused
    node_names = record.nodes
    alike: dict[str, list[int]] = {}
    for node in np.flatnonzero(~is_absent[: len(node_names)]).tolist():
        alike.setdefault(one_name(node_names[node], "short-lower"), []).append(node)
    there_us = dict.fromkeys(range(len(node_names)), window.end_us - window.start_us)
    for outage in absent:
        for node in [] if outage.nodes is None else outage.nodes.tolist():
            there_us[node] -= max(min(outage.end_us, window.end_us) - max(outage.start_us, window.start_us), 0)
    for short_name, node_indices in alike.items():
        lower_names = {node_names[node].lower() for node in node_indices}
        # a difference in the domain alone may mean two nodes
        if len(node_indices) > 1 and (short_name in lower_names or len(lower_names) < len(node_indices)):
            names_text = ", ".join(node_names[node] for node in node_indices)
            surplus_us = sum(sorted(there_us[node] for node in node_indices)[:-1])
            report.warn(TWO_SPELLINGS, value=names_text, node_hours=surplus_us / HOUR_US)
    domains: dict[int, dict[str, str]] = {}
    for spelling, node in record.spellings.items() if record.node_names.startswith("short") else ():
        domain = spelling.lower().removeprefix(node_names[node].lower())
        domains.setdefault(node, {}).setdefault(domain, spelling)
    for node, domain_nodes in domains.items():
        n_surplus = len(domain_nodes.keys() - {""}) - 1
        if n_surplus > 0:
            report.warn(MERGED, value=", ".join(domain_nodes.values()), node_hours=n_surplus * there_us[node] / HOUR_US)
    if len(record.spellings) > len(node_names):
        report.facts["node names"] = f"{len(record.spellings):,} spellings of {len(node_names):,} ({record.node_names})"


def check_given_inventory(record: ScheduleRecord, node_uses: NodeUse) -> None:
    """Refuse an inventory that has no name in common with the jobs, and units that no job ever holds.

    Raises
    ------
    InputError
        No common name: other names of the same nodes, or another machine. Or no job with a unit.
    """
    if record.units is not None and not node_uses.is_used.any():
        raise InputError(
            f"no job of the log holds a {UNITS[record.units.kind]}: all of them would be idle all the time",
            column="--unit",
            value=record.units.kind,
            expected="jobs with units",
            fix="Slurm: AllocTRES has GPUs if AccountingStorageTRES lists gres/gpu; or omit --unit",
        )
    n_inventory, jobs_on = record.n_given, node_uses.jobs_on
    if not n_inventory or not jobs_on[n_inventory:].any() or jobs_on[:n_inventory].any():
        return
    names = record.nodes
    raise InputError(
        "no job ran on a node of the given inventory",
        column="--inventory",
        value=f"{', '.join(names[:3])}, ...; jobs name {', '.join(names[n_inventory : n_inventory + 3])}, ...",
        expected="the names that the log uses",
        fix="if these are full host names, shorten them: cut -d. -f1 nodes.txt > short.txt",
    )


def warn_of_unused_nodes(
    record: ScheduleRecord, node_uses: NodeUse, rules: OccupancyRules, window: Window, report: ImportReport
) -> None:
    """Warn of nodes of the inventory that no job used for long, or ever: they may be down."""
    if not record.inventory_known or record.n_counted or record.outages_known or record.states_seen:
        return
    node_names, n_nodes = record.nodes, len(node_uses.jobs_on)
    after_us, length_us = microseconds(rules.absent_after_s), window.end_us - window.start_us
    is_due = np.arange(n_nodes) < (record.n_given if record.is_restricted else n_nodes)
    until_us = np.where(node_uses.is_used, np.minimum(node_uses.first_us, window.end_us), window.end_us)
    behind_us = np.where(node_uses.is_used, np.clip(node_uses.last_us, window.start_us, window.end_us), window.end_us)
    before_us = _without_outages(record, np.full(n_nodes, window.start_us), until_us)
    last_us = _without_outages(record, behind_us, np.full(n_nodes, window.end_us))
    never = ~node_uses.is_used & (before_us > min(after_us, length_us // 2))
    last_us = np.where(node_uses.is_used, last_us, 0)
    unused_us = np.where(before_us > after_us, before_us, 0) + np.where(last_us > after_us, last_us, 0)
    for sentence, which, idle_us in (
        (NEVER_USED, never & is_due, before_us),
        (LONG_UNUSED, node_uses.is_used & (unused_us > 0) & is_due, unused_us),
    ):
        nodes_to_warn = np.flatnonzero(which)
        for node_index in nodes_to_warn[:MOST_EXAMPLES].tolist():
            report.warn(sentence, value=node_names[node_index], node_hours=int(idle_us[node_index]) / HOUR_US)
        remainder = nodes_to_warn[MOST_EXAMPLES:]
        report.warn(sentence, count=len(remainder), node_hours=idle_us[remainder].sum(dtype=float) / HOUR_US)


def _without_outages(
    record: ScheduleRecord, start_us: NDArray[np.int64], end_us: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how much of an interval per node, ``(N,)``, is free of its outages (less where outages overlap)."""
    remaining_us: NDArray[np.int64] = np.maximum(end_us - start_us, 0)
    for outage in record.outages:
        nodes = slice(None) if outage.nodes is None else outage.nodes
        overlap_us = np.minimum(end_us[nodes], outage.end_us) - np.maximum(start_us[nodes], outage.start_us)
        remaining_us[nodes] -= np.maximum(overlap_us, 0)
    return np.maximum(remaining_us, 0)


def absences(
    record: ScheduleRecord,
    node_uses: NodeUse,
    n_nodes: int,
    rules: OccupancyRules,
    window: Window,
    report: ImportReport,
) -> tuple[list[Outage], NDArray[np.bool_], Absence | None]:
    """Return outages for times of absence, a mask of the ``n_nodes`` nodes absent throughout, and the absence.

    The third part is the time that the outages take from the window, ``None`` for nothing. Nodes named only by outages
    are absent throughout: nothing shows that they were in use.
    """
    is_absent = np.zeros(n_nodes, np.bool_)
    if record.is_restricted:
        is_absent[record.n_given :] = True
        other_names = record.nodes[record.n_given :]
        if other_names:
            uses = count(int(node_uses.jobs_on[record.n_given :].sum()), "use")
            report.facts[SKIPPED_NODES] = (
                f"{count(len(other_names), 'node')} that the inventory does not have (--inventory-only), such as "
                f"{', '.join(other_names[:MOST_EXAMPLES])}: {uses} by jobs not counted"
            )
        return [], is_absent, None
    if has_full_inventory(record) or not record.nodes:
        return [], is_absent, None
    after_us = microseconds(rules.absent_after_s)
    is_gone = node_uses.is_used & (node_uses.last_us < window.start_us - after_us)
    upcoming = node_uses.is_used & (node_uses.first_us > window.end_us + after_us)
    is_absent[:] = ~node_uses.is_used | is_gone | upcoming
    if is_absent.any():
        such = ", ".join(record.nodes[node_index] for node_index in np.flatnonzero(is_absent)[:MOST_EXAMPLES])
        report.facts[SKIPPED_NODES] = (
            f"{count(int(is_absent.sum()), 'node')} that no job used within {rules.absent_after_s / DAY_S:g} days "
            f"of the window, such as {such}"
        )
    # unused nodes are absent throughout
    late = ~is_absent & (np.minimum(node_uses.first_us, window.end_us) - window.start_us > after_us)
    early = ~is_absent & (window.end_us - np.maximum(node_uses.last_us, window.start_us) > after_us)
    edge_us = min(window.start_us, record.first_start_us) - 1
    free_us = node_uses.last_us + np.where(early, microseconds(rules.release_delay_s), 0)
    outages = [_absence_of(node_index, edge_us, node_uses.first_us[node_index]) for node_index in np.flatnonzero(late)]
    outages += [_absence_of(node_index, free_us[node_index], OPEN_END) for node_index in np.flatnonzero(early)]
    if not outages:
        return outages, is_absent, None
    first_us = np.where(late, np.minimum(node_uses.first_us, window.end_us), window.start_us)
    last_us = np.where(early, np.clip(free_us, window.start_us, window.end_us), window.end_us)
    before_us = _without_outages(record, np.full(n_nodes, window.start_us), first_us)
    behind_us = _without_outages(record, last_us, np.full(n_nodes, window.end_us))
    absent_us = before_us + behind_us
    absent_nodes = np.flatnonzero(absent_us)
    if not len(absent_nodes):
        return outages, is_absent, None
    node_names, node_hours = record.nodes, absent_us.sum(dtype=float) / HOUR_US
    such_as = [node_names[node_index] for node_index in absent_nodes[:MOST_EXAMPLES]]
    report.facts[ABSENT] = {
        "nodes": len(absent_nodes),
        "before their first job": int(np.count_nonzero(before_us)),
        "after their last job": int(np.count_nonzero(behind_us)),
        "node_hours": node_hours,
        "such as": such_as,
    }
    return outages, is_absent, Absence(len(absent_nodes), node_hours, ", ".join(such_as))


def _absence_of(node_index: np.intp, start_us: int, end_us: int) -> Outage:
    return Outage(NodeState.UNKNOWN, int(start_us), int(end_us), np.array([node_index], np.int32))


def positions(node_names: Sequence[str], is_absent: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the number of each node in the sweep: the inventory sorted by name, then absent nodes."""
    order = sorted(range(len(node_names)), key=lambda index: (is_absent[index], node_names[index]))
    position = np.empty(len(node_names), np.int32)
    position[order] = np.arange(len(node_names), dtype=np.int32)
    return position


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Use of the N nodes of a record, in index order.

    ``first_us (N,) int64`` (``OPEN_END`` for a node without jobs), ``last_us (N,)`` (``OPEN_END`` for a job without an
    end, ``-OPEN_END`` for no job), ``jobs_on (N,)`` runs of jobs that name the node, ``partitions`` the nodes of the
    jobs of each partition, ``(N,) bool``, by name.
    """

    first_us: NDArray[np.int64]
    last_us: NDArray[np.int64]
    jobs_on: NDArray[np.int64]
    partitions: Mapping[str, NDArray[np.bool_]]

    @property
    def is_used(self) -> NDArray[np.bool_]:
        """True for nodes that a job names, ``(N,)``."""
        return self.jobs_on > 0


def node_use(record: ScheduleRecord, rules: OccupancyRules, log_end_us: int) -> NodeUse:
    """Compute the use from all job intervals; runaway jobs end at their time limit and grace."""
    n_nodes = len(record.nodes)
    first_us, last_us = np.full(n_nodes, OPEN_END, np.int64), np.full(n_nodes, -OPEN_END, np.int64)
    jobs_on = np.zeros(n_nodes, np.int64)
    names = sorted({partition for partition, _ in record.kinds.pairs if partition})
    of_kind = np.array([names.index(partition) if partition else len(names) for partition, _ in record.kinds.pairs])
    is_used_by = np.zeros((len(names) + 1, n_nodes), np.bool_)
    for jobs, _ in record.jobs.slices():
        list_lengths = np.diff(jobs.first_node)
        np.minimum.at(first_us, jobs.nodes, np.repeat(jobs.start_us, list_lengths))
        np.maximum.at(last_us, jobs.nodes, np.repeat(ends(jobs, rules, log_end_us), list_lengths))
        jobs_on += np.bincount(jobs.nodes, minlength=n_nodes)
        is_used_by[np.repeat(of_kind[jobs.kind], list_lengths), jobs.nodes] = True
    if record.units is not None and n_nodes:  # which units of a node it used is not known yet
        n_units = record.units.counts[record.units.counts > 0]
        begins = first_of_each(n_units)[:-1]
        first_us = np.repeat(np.minimum.reduceat(first_us, begins), n_units)
        last_us = np.repeat(np.maximum.reduceat(last_us, begins), n_units)
        jobs_on = np.repeat(np.add.reduceat(jobs_on, begins), n_units)
        is_used_by = np.repeat(np.logical_or.reduceat(is_used_by, begins, axis=1), n_units, axis=1)
    return NodeUse(first_us, last_us, jobs_on, dict(zip(names, is_used_by, strict=False)))


def ends(jobs: JobIntervals, rules: OccupancyRules, log_end_us: int) -> NDArray[np.int64]:
    """Return the end of each job, ``(J,)``: its own; else its limit and grace, if inside the log; else ``OPEN_END``."""
    grace_us = microseconds(rules.limit_grace_s)
    limit_us = np.minimum(jobs.limit_end_us, OPEN_END - grace_us) + grace_us
    is_runaway = (jobs.end_us == OPEN_END) & (limit_us < log_end_us)
    return np.where(is_runaway, limit_us, jobs.end_us)


def free_again_us(jobs: JobIntervals, rules: OccupancyRules, log_end_us: int) -> NDArray[np.int64]:
    """Return when the nodes of each job are free: after its end and the release delay, or its limit and grace."""
    # a job without an end and a limit outlasts the log, and its nodes are never free
    delay_us = np.where(jobs.end_us == OPEN_END, 0, microseconds(rules.release_delay_s))
    return ends(jobs, rules, log_end_us) + delay_us
