"""ScheduleRecord to NodeEvents, by rules, with a report of their effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy import inventory
from bfreplay.datasets.ingest.occupancy.advance import Outages
from bfreplay.datasets.ingest.occupancy.findings import note_rules_without_effect, report_survey
from bfreplay.datasets.ingest.occupancy.groups import has_partitions, partitions_of, types_of
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport, skip_counts
from bfreplay.datasets.ingest.occupancy.rules import DAY_S, OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import Outage, ScheduleRecord, Window, machine_nodes
from bfreplay.datasets.ingest.occupancy.source import OccupancySource, Survey
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, first_of_each
from bfreplay.datasets.ingest.occupancy.state_changes import Plan
from bfreplay.datasets.ingest.occupancy.window import choose_window, first_time_us, longest_gap_us
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import PARTITIONS_BY_JOBS, EventsMetadata, SourceFile
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import HOUR_US, iso_utc
from bfreplay.errors import InputError, printable
from bfreplay.wording import aligned_lines, percent

_UNIT = "are the times milliseconds or finer? For a table: --time-unit ms (or us, ns)"
FEW_SHARE, MOST = 0.05, 0.5
AMONG_THE_SEEN = (
    "jobs without a list of nodes, or with a short one, got nodes by rule among the nodes in the log: "
    "the size of the machine is not known (--nodes, --inventory)"
)
GAP_DAYS = 30
GAP = (
    "no job starts or ends for most of the window: is a date of a job before or after that wrong? Nodes look idle, or "
    "busy, all the time between (--window takes a part of the log)"
)
MOSTLY_CUT_OFF = "the estimated window leaves out most of the log (--full-window keeps the whole log)"
CUT_OFF = "of jobs outside the window, on which the idle nodes inside do not depend"
TOO_MANY_NODES = "the log lists more nodes than the given size of the machine; all listed nodes count"
RESERVED_IDLE = (
    "reservations other than for maintenance leave their nodes idle: whether such nodes can be used depends on the "
    "reservation (--reservations reserved takes them away)"
)
BEYOND = "the window reaches beyond the log: nodes look idle there"

_QUANTILES = ("p25", "p50", "p75", "p95")


@dataclass(frozen=True, slots=True)
class BuiltLog:
    """Log of node states, its import report, its window, and its computation."""

    events: NodeEvents
    report: ImportReport
    window: Window
    source: OccupancySource

    def write_batch_jobs(self, path: Path | str, overwrite: bool = False) -> None:
        """Write the batch jobs by which the log was built, as ``ingest --batch-jobs`` does, in one pass.

        Raises
        ------
        InputError
            The log was read without the names of jobs, or the file cannot be written.
        OutputExistsError
            The file exists and ``overwrite`` is false.
        """
        from bfreplay.datasets.batch_jobs import write_batch_jobs  # pyarrow
        from bfreplay.datasets.ingest.occupancy.jobs_of_log import batch_jobs
        from bfreplay.datasets.log.event_tables import LogHeader

        record, job_names = self.source.record, self.source.record.job_names
        if job_names is None:
            raise InputError("the log was read without the names of its jobs", fix="read_log(..., job_names=True)")
        pieces = batch_jobs(record, self.source.plan, job_names)
        write_batch_jobs(pieces, LogHeader.of(self.events), Path(path), overwrite)


def build_events(
    record: ScheduleRecord, rules: OccupancyRules | None = None, sources: Sequence[SourceFile] = ()
) -> BuiltLog:
    """Build the log of node states of a schedule.

    Each pass computes the rows anew, in memory of O(nodes + running jobs). ``record`` must not change afterwards.

    Parameters
    ----------
    record
        The schedule, filled by a reader.
    rules
        ``None``: the defaults.
    sources
        The source files, for the metadata.

    Raises
    ------
    InputError
        No interval, no node, a machine of unknown size, or a window outside the log.
    """
    rules = OccupancyRules() if rules is None else rules
    report = record.report.copy()
    report.read(0)
    node_names = machine_nodes(record)
    _check_machine(record, node_names, report)
    log_end_us = _log_end_us(record, rules)
    window = choose_window(record, rules, log_end_us)
    length_us = window.end_us - window.start_us
    if window.share_inside < MOST:
        share_text = f"{percent(window.share_inside)} of the jobs' node-hours are inside"
        hours_outside = (1 - window.share_inside) * record.held_us / HOUR_US
        report.warn(MOSTLY_CUT_OFF, value=share_text, node_hours=hours_outside, aside=CUT_OFF)
    surplus = 0 if record.machine_size is None else len(record.nodes) - record.machine_size
    if surplus > 0:
        value_text = f"{len(record.nodes)} listed, {record.machine_size} given"
        report.warn(TOO_MANY_NODES, value=value_text, node_hours=surplus * length_us / HOUR_US)
    node_uses = inventory.node_use(record, rules, log_end_us)
    inventory.check_given_inventory(record, node_uses)
    inventory.warn_of_unused_nodes(record, node_uses, rules, window, report)
    absent, is_absent, absence = inventory.absences(record, node_uses, len(node_names), rules, window, report)
    inventory.warn_of_spellings(record, absent, is_absent, window, report)
    if is_absent.all():
        raise InputError(
            "no job used any node within the window, or near it",
            column="--window",
            value=f"{iso_utc(window.start_us)} to {iso_utc(window.end_us)}",
            expected=f"jobs within {rules.absent_after_s / DAY_S:g} days of the window (--absent-after)",
            fix="choose another window, or give the names of all nodes with --inventory",
        )
    position = inventory.positions(node_names, is_absent)
    if is_absent.any():  # no job gets such a node
        before_us = min(window.start_us, record.first_start_us) - 1
        absent.append(Outage(NodeState.UNKNOWN, before_us, OPEN_END, np.flatnonzero(is_absent).astype(np.int32)))
    plan = Plan(
        position=position,
        n_kept=int(np.count_nonzero(~is_absent)),
        outages=_outages_by_start([*record.outages, *absent], position),
        rules=rules,
        window_us=(window.start_us, window.end_us),
        log_end_us=max(log_end_us, window.end_us),
        empty_is_down=_empty_is_down(record, rules),
        outages_known=record.outages_known,
        states_seen=record.states_seen,
        last_unit=_last_units(record, position),
    )
    survey = Survey(record, plan)
    report_survey(report, record, plan, survey, absence)
    _warn_of_uncertain_idle_time(record, plan, absent, survey, node_uses, report)
    if (window.start_us, window.end_us) == (first_time_us(record), log_end_us) and not plan.states_seen:
        _warn_of_gap(record, window, report, survey)
    note_rules_without_effect(record, plan, report)
    report.complete(plan.log_end_us, record.mean_node_hours)
    inventory_names = sorted(node_name for node_name, is_out in zip(node_names, is_absent, strict=True) if not is_out)
    partitions = partitions_of(record, node_uses, inventory_names)
    allocator = {"name": rules.assignment, "seed": rules.seed if rules.assignment == "random" else None}
    metadata = EventsMetadata(
        cluster=None if record.cluster is None else printable(record.cluster),
        source_format=record.source_format or "schedule",
        source_files=tuple(sources),
        source_timezone=record.timezone,
        time_origin=record.time_origin,
        node_inventory="metadata" if inventory.has_full_inventory(record) else "seen",
        allocator=allocator if record.n_counted else None,
        skipped=skip_counts(report),
        unit="node" if record.units is None else record.units.kind,
        notes={
            "ingest": {
                **report.to_json(),
                "rules": rules.to_json(),
                "window": window.to_json(),
                **({PARTITIONS_BY_JOBS: True} if partitions and not has_partitions(record) else {}),
            }
        },
        hardware_types=types_of(record, inventory_names),
        partitions=partitions,
    )
    source = OccupancySource(record, plan, start=survey.start)
    events = NodeEvents(inventory_names, source, window.start_us, window.end_us, metadata, tuple(sources))
    return BuiltLog(events, report, window, source)


def _log_end_us(record: ScheduleRecord, rules: OccupancyRules) -> int:
    if rules.log_end_us is not None:
        return rules.log_end_us
    return record.last_stamp_us if record.coverage is None else max(record.last_stamp_us, record.coverage.end_us)


def _warn_of_uncertain_idle_time(
    record: ScheduleRecord,
    plan: Plan,
    absent: Sequence[Outage],
    survey: Survey,
    node_uses: inventory.NodeUse,
    report: ImportReport,
) -> None:
    """Warn of idle time outside the log, on nodes that may be none, and in reservations, each by a pass without it."""

    def idle_hours(less: Sequence[Outage] = (), window_us: tuple[int, int] = plan.window_us) -> float:
        outages = _outages_by_start([*record.outages, *absent, *less], plan.position)
        without = Survey(record, replace(plan, outages=outages, window_us=window_us))
        return float(survey.node_us[NodeState.IDLE] - without.node_us[NodeState.IDLE]) / HOUR_US

    (start_us, end_us), first_us, log_end_us = plan.window_us, first_time_us(record), _log_end_us(record, plan.rules)
    if not isinstance(plan.rules.window, str) and not first_us <= start_us < end_us <= log_end_us:
        inside_us = max(start_us, first_us), min(end_us, log_end_us)
        period_text = f"{iso_utc(first_us)} to {iso_utc(log_end_us)}"
        report.warn(BEYOND, value=period_text, node_hours=idle_hours(window_us=inside_us))
    for sentence, nodes in inventory.rare_names(record, node_uses).items() if not record.inventory_known else ():
        if nodes:
            unknown_outage = Outage(NodeState.UNKNOWN, min(start_us, first_us) - 1, OPEN_END, np.array(nodes, np.int32))
            each_hours = idle_hours([unknown_outage]) / len(nodes)
            for node_index in nodes:
                report.warn(sentence, value=record.nodes[node_index], node_hours=each_hours)
    reservation_outages = [
        outage for outage in record.reservations if outage.start_us < end_us and outage.end_us > start_us
    ]
    if reservation_outages and (hours := idle_hours(reservation_outages)) > 0:
        report.warn(RESERVED_IDLE, value=f"{hours:,.1f} node-hours", count=len(reservation_outages), node_hours=hours)


def _warn_of_gap(record: ScheduleRecord, window: Window, report: ImportReport, survey: Survey) -> None:
    """Warn of a window of the whole log that is mostly without jobs starting or ending."""
    begin_us, end_us = longest_gap_us(record, window)
    length_us = end_us - begin_us
    if length_us > max(GAP_DAYS * DAY_S * 1e6, (window.end_us - window.start_us) / 2):
        node_hours = int(survey.node_us[NodeState.IDLE]) / HOUR_US
        gap_text = f"{iso_utc(begin_us)} to {iso_utc(end_us)}"
        report.warn(GAP, value=gap_text, node_hours=min(node_hours, len(survey.start) * length_us / HOUR_US))


def _check_machine(record: ScheduleRecord, node_names: Sequence[str], report: ImportReport) -> None:
    if not record.jobs.n_rows and not record.states_seen:
        reasons, example = record.report.largest_skips()
        raise InputError(
            f"no job in this log held a node ({reasons or 'no rows at all'})",
            file=example.file if example else None,
            row=example.row if example else None,
            value=example.value if example else None,
            expected="jobs with a start, an end and nodes",
            fix=_UNIT
            if "outside the calendar" in reasons
            else "check the export: it needs start and end times and node lists (or counts) of jobs that ran; records "
            "of outages alone say nothing about idle nodes",
        )
    if record.n_counted and record.machine_size is None and not record.inventory_known:
        if record.nodes and record.n_counted <= FEW_SHARE * record.jobs.n_rows:
            report.warn(AMONG_THE_SEEN, count=record.n_counted, node_hours=record.unlisted_us / HOUR_US)
            return
        raise InputError(
            f"{'the log' if record.n_counted == record.jobs.n_rows else 'the log, for some jobs,'} has only numbers of "
            "nodes, and the number of nodes of the machine is not known",
            expected="the size of the machine, which determines the idle nodes",
            fix="give --nodes N, or --inventory FILE with the names of all nodes",
        )
    if not node_names:
        expected = "node lists, or the size of the machine"
        raise InputError("the log has no nodes", expected=expected, fix="give --nodes N")


def _last_units(record: ScheduleRecord, position: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the place of the last unit of each unit's node, ``(N,)``: units of a node stand together in the sweep."""
    if record.units is None:
        return np.empty(0, np.int32)
    last_unit = np.empty(len(position), np.int32)
    last_unit[position] = np.repeat(position[record.units.first[1:] - 1], record.units.counts)
    return last_unit


def _empty_is_down(record: ScheduleRecord, rules: OccupancyRules) -> bool:
    if record.states_seen or rules.empty_machine != "auto":  # node states need not be assumed
        return rules.empty_machine == "down" and not record.states_seen
    # a list of reservations is no record of outages
    return not record.outages_known and all(outage.state == NodeState.RESERVED for outage in record.outages)


def _outages_by_start(outages: Sequence[Outage], position: NDArray[np.int32]) -> Outages:
    everything = np.arange(len(position), dtype=np.int32)
    by_start = sorted(outages, key=lambda outage: outage.start_us)
    node_lists = [everything if outage.nodes is None else position[outage.nodes] for outage in by_start]
    return Outages(
        np.array([outage.start_us for outage in by_start], dtype=np.int64),
        np.array([outage.end_us for outage in by_start], dtype=np.int64),
        np.array([int(outage.state) for outage in by_start], dtype=np.int8),
        first_of_each(list(map(len, node_lists))),
        np.concatenate([np.empty(0, np.int32), *node_lists]),
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Figures of a log under one rule: mean idle nodes and transitions do not depend on the rule, idle intervals do.

    ``idle_interval_length_s`` has the quantiles of ``_QUANTILES`` by name, ``None`` without idle intervals.
    """

    assignment: str | None
    mean_idle_nodes: float
    transitions: int
    idle_intervals: int
    idle_interval_length_s: Mapping[str, float | None]


def measure(build: BuiltLog) -> Spread:
    """Measure the log built under a rule."""
    from bfreplay.datasets.idleness import characterise
    from bfreplay.datasets.idleness.quantiles import by_percentile

    figures = characterise(build.events)
    length_s = by_percentile(figures.idle_interval_length_s)
    return Spread(
        build.events.metadata.assignment,
        figures.mean_idle_nodes,
        figures.transitions,
        figures.idle_intervals,
        {quantile_name: length_s.get(quantile_name) for quantile_name in _QUANTILES},
    )


def spread_text(rule_spreads: Sequence[Spread]) -> str:
    """Lay out the figures under each rule as a table."""
    head = ("assignment", "mean idle", "idle_intervals", *(f"{quantile_name[1:]} % s" for quantile_name in _QUANTILES))
    cells = [head]
    for row in rule_spreads:
        lengths = ("-" if length_s is None else f"{length_s:,.0f}" for length_s in row.idle_interval_length_s.values())
        cells.append((str(row.assignment), f"{row.mean_idle_nodes:,.2f}", f"{row.idle_intervals:,}", *lengths))
    title = "the same log under each rule: idle node-hours are the same, lengths of idle intervals differ"
    return "\n".join([title, *aligned_lines(cells)]) + "\n"
