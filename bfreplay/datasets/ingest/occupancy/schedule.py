"""ScheduleRecord: job intervals, outages and nodes of a log, as filled by readers; and the names of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets.ingest.occupancy.import_report import WHICH_NODES, ImportReport
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobIntervals, JobSpool
from bfreplay.datasets.ingest.occupancy.submissions import (
    NO_SUBMISSION,
    NO_WIDTH,
    JobNames,
    Kinds,
    Submission,
    WaitedJob,
    job_key,
)
from bfreplay.datasets.ingest.occupancy.units import Held, Units
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import FIRST_TIME_US, HOUR_US, LAST_TIME_US, NOT_KNOWN_US, iso_utc
from bfreplay.errors import InputError

OUTAGE_STATES = (NodeState.DOWN, NodeState.DRAIN, NodeState.RESERVED, NodeState.OFF, NodeState.UNKNOWN)
MISMATCH = "the log gives another number of nodes than it lists; the listed nodes and the greater number are used"
CUT = "lists of nodes are cut: the listed nodes are known, the others are assigned by rule"
NO_LIST = "a job without a list of nodes, so that its units are not known"
NOT_IN_INVENTORY = "jobs name nodes that are not in the inventory that was given; they count as nodes of the machine"
TOO_WIDE = "a job on more nodes than any machine has"
MOST_NODES = 10_000_000
MOST_REMEMBERED = 16_000_000  # characters and nodes of lists: on a large machine they are long and hardly repeat
NODE_NAMES = ("as-is", "short", "lower", "short-lower")
"""Forms of node names: unchanged, without the domain, in lower case, or both."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Nodes (indices; ``None``: the whole machine) that are unusable from start to end, with their state."""

    state: NodeState
    start_us: int
    end_us: int
    nodes: NDArray[np.int32] | None


@dataclass(frozen=True, slots=True)
class Window:
    """Start and end in microseconds UTC, the reason, and if estimated, the share of the jobs' node time inside."""

    start_us: int
    end_us: int
    why: str
    share_inside: float = 1.0

    def to_json(self) -> dict[str, str]:
        """Return the times as ISO-8601."""
        return {"start": iso_utc(self.start_us), "end": iso_utc(self.end_us), "why": self.why}


class ScheduleRecord:
    """Job intervals, outages and the inventory of nodes; invalid intervals are counted in ``report``.

    Times are integer microseconds since 1970-01-01 UTC (or since the log's start, for logs without a calendar).
    Intervals are half-open, [start, end).

    Attributes
    ----------
    report
        Report in which readers and this record count skipped rows.
    source_format
        Format of the log, e.g. ``"slurm sacct"``; a reader appends to it with ``add_format``.
    timezone
        Zone in which the source wrote its times.
    time_origin
        ``"epoch"`` or ``"relative"``.
    cluster
        Name of the machine, if the log has it.
    n_open, n_counted
        Jobs without an end, and jobs that hold more nodes than the log lists.
    held_us, unlisted_us
        Node-microseconds of the jobs that ended: of all nodes, and of nodes that the log does not list.
    n_given, is_restricted
        Nodes of the given inventory, the first in the order of indices; 0 without one. And whether the machine has no
        others: nodes that only jobs and outages name are skipped.
    job_names
        Names of jobs, for ``write_batch_jobs``; ``None``: not kept.
    kinds
        Partitions and QOS of jobs.
    node_table
        Type and partitions of nodes, by name, if a table of nodes was given.
    waited
        Jobs that never started; only noted while ``job_names`` are kept.
    outages_known
        True if ``outages`` are complete: an empty machine is then idle, not assumed down.
    units
        Units that are the nodes of the log, so that ``nodes``, jobs and outages are of these; ``None``: whole nodes.
        Readers give nodes all the same.
    strange_nodes
        Nodes of jobs that the table of ``units`` does not have: such a log is refused.
    """

    def __init__(
        self, report: ImportReport | None = None, spool: JobSpool | None = None, node_names: str = NODE_NAMES[0]
    ) -> None:
        self.report = ImportReport() if report is None else report
        self.jobs = JobSpool() if spool is None else spool
        self.outages: list[Outage] = []
        self.source_format = ""
        self.timezone = "UTC"
        self.time_origin = "epoch"
        self.cluster: str | None = None
        self.coverage: Window | None = None  # time that the log claims to cover
        self.machine_size: int | None = None
        self.inventory_known = self.outages_known = self.states_seen = False
        self.first_start_us = self.first_end_us = OPEN_END
        self.last_start_us = self.last_end_us = self.last_stamp_us = -OPEN_END
        self.longest_us = 0
        self.n_open = self.n_counted = 0
        self.held_us = self.unlisted_us = 0.0
        self._reservations: list[tuple[int, int, Sequence[str] | None]] = []
        self.node_names = node_names
        self._index: dict[str, int] = {}
        self.spellings: dict[str, int] = {}  # name as spelt in the log -> index of the node (see ``one_name``)
        self.n_given = 0
        self.is_restricted = False
        self.job_names: JobNames | None = None
        self.units: Units | None = None
        self.strange_nodes: dict[str, None] = {}
        self.kinds = Kinds(self.report)
        self.node_table: Mapping[str, tuple[str, Sequence[str]]] = {}
        self.waited: list[WaitedJob] = []

    # ---- nodes -------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes so far; the position is the index."""
        return tuple(self._index) if self.units is None else self.units.names

    def node_ids(self, node_names: Iterable[str]) -> NDArray[np.int32]:
        """Return indices of nodes, each once, in order; new names join the inventory.

        Raises
        ------
        InputError
            An invalid name (empty, unprintable, spaces around it).
        """
        index_of_spelling = self.spellings
        node_set: dict[int, None] = {}
        for node_name in node_names:
            position = index_of_spelling.get(node_name)
            if position is None:
                checks.name("node", node_name, "node")
                own_name = one_name(node_name, self.node_names)
                position = index_of_spelling[node_name] = self._index.setdefault(own_name, len(self._index))
            node_set[position] = None
        return np.fromiter(node_set, dtype=np.int32, count=len(node_set))

    def add_inventory(self, node_names: Iterable[str]) -> None:
        """Add the known nodes, used or not: the list of nodes is then complete."""
        self.node_ids(node_names)
        self.inventory_known = True

    def give_inventory(self, node_names: Iterable[str], is_restricted: bool = False) -> None:
        """Set all nodes of the machine, before anything is read.

        A job on another one is a warning; with ``is_restricted`` other nodes are skipped, and jobs hold them unseen.
        """
        self.add_inventory(node_names)
        self.n_given, self.is_restricted = len(self._index), is_restricted

    def give_units(self, units: Units) -> None:
        """Set the units of the nodes of the inventory, which is given before."""
        self.units, self.n_given = units, len(units.names)

    def set_machine_size(self, n_nodes: int) -> None:
        """Set the number of nodes of the machine, if the log does not list all of them.

        Raises
        ------
        InputError
            The number is out of range.
        """
        if not 0 < n_nodes <= MOST_NODES:
            raise InputError(
                "the machine cannot have so many nodes",
                column="--nodes",
                value=n_nodes,
                expected=f"1 to {MOST_NODES:,}",
                fix="give the number of nodes of the machine",
            )
        self.machine_size = int(n_nodes)

    # ---- intervals ---------------------------------------------------------------------------------------------

    def add_job(
        self,
        job: str | int,
        start_us: int,
        end_us: int | None,
        nodes: NDArray[np.int32] | None = None,
        node_count: int | None = None,
        limit_end_us: int | None = None,
        file: str = "",
        line: int | None = None,
        is_cut: bool = False,
        submission: Submission = NO_SUBMISSION,
    ) -> None:
        """Add the interval of a job on its nodes.

        Parameters
        ----------
        job
            Identity of the job: rows of the same job and start are one interval read twice. Parts of a heterogeneous
            job need different identities.
        start_us, end_us
            Times of this run of the job; ``None``: it was running when the log was written.
        nodes
            Indices from ``node_ids``; ``None`` if the log lists none.
        node_count
            Nodes held, if in the log; more than listed: the rest is assigned by rule.
        limit_end_us
            Start plus time limit, for jobs without an end in the log.
        file, line
            Place for the report.
        is_cut
            True if it is known that the list of nodes is cut, so that the number is right.
        submission
            Since when it waited, for which nodes, and the GPUs and cores that it holds, for a log of ``units``.
        """
        n_names = 0 if nodes is None else len(nodes)
        n_nodes = n_names if node_count is None else max(node_count, n_names)
        if nodes is not None and n_names and node_count is not None and node_count != n_names:
            sentence, aside = (CUT, WHICH_NODES) if is_cut else (MISMATCH, "")
            self.report.warn(sentence, file, line, f"{node_count} nodes, {n_names} listed", aside=aside)
        if not self._is_interval("job", start_us, end_us, file, line):
            return
        if not 0 < n_nodes <= MOST_NODES:
            skip_reason = "a job without nodes" if n_nodes <= 0 else TOO_WIDE
            return self.report.skip(skip_reason, file, line, f"{job}: {n_nodes} nodes")
        if self.units is not None:
            if nodes is None:
                return self.report.skip_with_warning(NO_LIST, file, line, job)
            nodes = self._units_of(nodes, submission.units, (start_us, end_us), (file, line, str(job)))
            n_nodes = n_names = len(nodes)
        limit_us, key = OPEN_END, job_key(job)
        if limit_end_us is not None and start_us < limit_end_us < LAST_TIME_US:
            limit_us = limit_end_us
        eligible_us = NOT_KNOWN_US if submission.eligible_us is None else submission.eligible_us
        kind = self.kinds.of(submission.partition, submission.qos)
        ends_us = OPEN_END if end_us is None else end_us
        self.jobs.add(start_us, ends_us, limit_us, key, n_nodes, nodes, eligible_us, kind)
        if self.job_names is not None:
            self.job_names.add(key, str(job).replace(f"{file} line ", f"{Path(file).name} line "))  # one without an id
        self._note_start(start_us, start_us)
        if end_us is None:
            self.n_open += 1
        else:
            self._note_end(end_us, end_us, end_us - start_us)
            self.held_us += n_nodes * (end_us - start_us)
            self.unlisted_us += (n_nodes - n_names) * (end_us - start_us)
        self.n_counted += n_nodes > n_names
        self.report.keep("job intervals")
        if nodes is not None and self.n_given and not self.is_restricted:
            strange = nodes[nodes >= self.n_given][:5].tolist()
            if strange:
                names = self.nodes
                self.report.warn(NOT_IN_INVENTORY, file, line, f"{job}: {', '.join(names[node] for node in strange)}")
        self.report.set_row_amount(n_nodes, start_us, end_us)

    def add_counted_jobs(
        self,
        job: NDArray[np.int64],
        start_us: NDArray[np.int64],
        end_us: NDArray[np.int64],
        count: NDArray[np.int64],
        eligible_us: NDArray[np.int64] | None = None,
    ) -> None:
        """Add J jobs with numbers of nodes and without time limits, ``(J,)`` each.

        The caller ensures counts of 1 to ``MOST_NODES`` and ``end > start``.
        """
        if not len(job):
            return
        self.jobs.add_counts(start_us, end_us, np.full(len(job), OPEN_END, np.int64), job, count, eligible_us)
        self.n_counted += len(job)
        self.unlisted_us += self._note_jobs(start_us, end_us, count)

    def add_listed_jobs(self, jobs: JobIntervals) -> None:
        """Add jobs that list all their nodes; the caller ensures nodes of the given inventory, and ``end > start``."""
        self.jobs.add_with_nodes(jobs)
        self._note_jobs(jobs.start_us, jobs.end_us, jobs.count)

    def add_waited(
        self,
        job: str | int,
        submission: Submission,
        until_us: int | None,
        count: int | None,
    ) -> None:
        """Note a job that waited and never started, if since when and for how much is known.

        Parameters
        ----------
        job, submission
            As for ``add_job``.
        until_us
            Time at which it gave up; ``None``: it waits to the end of the log.
        count
            Nodes that it wanted; ``None``: not known. In a log of units those of the submission count instead.
        """
        eligible_us, until_us = submission.eligible_us, OPEN_END if until_us is None else until_us
        if self.units is not None:
            count = submission.units.total(self.units.kind)
            if count == 0:
                return
        if self.job_names is None or eligible_us is None or not FIRST_TIME_US < eligible_us < until_us:
            return
        key, kind = job_key(job), self.kinds.of(submission.partition, submission.qos)
        self.job_names.add(key, str(job))
        self.waited.append(WaitedJob(key, eligible_us, until_us, min(count or NO_WIDTH, MOST_NODES), kind))

    def add_outage(
        self,
        state: NodeState,
        start_us: int,
        end_us: int | None,
        nodes: NDArray[np.int32] | None = None,
        file: str = "",
        line: int | None = None,
    ) -> None:
        """Add an outage: nodes (``None``: all) in ``state`` from start to end (``None``: to the end of the log).

        ``NodeState.BUSY`` is allowed too: nodes allocated to unknown jobs in samples of node states.
        """
        if not self._is_interval("outage", start_us, end_us, file, line):
            return
        if self.units is not None and nodes is not None:
            nodes = self.units.of_nodes(nodes)
        self.outages.append(Outage(state, start_us, OPEN_END if end_us is None else end_us, nodes))
        if state == NodeState.BUSY:  # from samples; the end of an outage may be planned
            self.states_seen = True
            self.stamp(start_us if end_us is None else end_us)
        self.report.set_row_amount(self._n_nodes if nodes is None else len(nodes), start_us, end_us)
        self.report.keep("outage intervals")

    def add_reservation(self, start_us: int, end_us: int | None, node_names: Sequence[str] | None) -> None:
        """Add a reservation that leaves its nodes idle (``None``: all); one of no length is ignored."""
        end_us = OPEN_END if end_us is None else end_us
        if FIRST_TIME_US < start_us < min(end_us, LAST_TIME_US):
            self._reservations.append((start_us, end_us, node_names))

    @property
    def reservations(self) -> list[Outage]:
        """Reservations that leave their nodes idle, as outages of the nodes that the log has."""
        return [
            Outage(NodeState.RESERVED, start_us, end_us, None if node_names is None else self._known_nodes(node_names))
            for start_us, end_us, node_names in self._reservations
        ]

    def _known_nodes(self, node_names: Iterable[str]) -> NDArray[np.int32]:
        indices = (self._index.get(one_name(node_name, self.node_names)) for node_name in node_names)
        nodes = np.array([node_index for node_index in indices if node_index is not None], np.int32)
        return nodes if self.units is None else self.units.of_nodes(nodes)

    def _units_of(
        self,
        nodes: NDArray[np.int32],
        held: Held,
        span_us: tuple[int, int | None],
        place: tuple[str, int | None, str],
    ) -> NDArray[np.int32]:
        """Return the units that a job holds; warn of what is doubtful. Without any it still shows a machine in use."""
        units = self.units
        assert units is not None
        if (strange := nodes[nodes >= len(units.counts)]).size:
            names = tuple(self._index)
            self.strange_nodes.update((names[node], None) for node in strange.tolist())
            return strange[:0]
        job_units, finding = units.of_job(nodes, held)
        if finding is not None:
            self.report.warn(finding.sentence, *place, why_no_amount=finding.why_no_amount, aside=finding.aside)
            if finding.n_units is not None:
                self.report.set_row_amount(finding.n_units, *span_us)
        return job_units

    @property
    def mean_node_hours(self) -> float | None:
        """Mean node-hours of the jobs that ended; ``None`` without any."""
        n_ended = self.jobs.n_rows - self.n_open
        return self.held_us / HOUR_US / n_ended if n_ended else None

    @property
    def _n_nodes(self) -> int:
        return max(self.machine_size or 0, len(self.nodes))

    # ---- what the log covers -----------------------------------------------------------------------------------

    def stamp(self, time_us: int) -> None:
        """Note that the log was still being written at this time; the latest is its end."""
        self.last_stamp_us = max(self.last_stamp_us, time_us)

    def covers(self, start_us: int, end_us: int, why_complete: str) -> None:
        """Note the time for which the log claims to be complete."""
        if self.coverage is not None:
            start_us, end_us = min(start_us, self.coverage.start_us), max(end_us, self.coverage.end_us)
        self.coverage = Window(start_us, end_us, why_complete)

    def add_format(self, format_name: str) -> None:
        """Add a kind of input to ``source_format``."""
        if format_name not in self.source_format.split(" + "):
            self.source_format = " + ".join(filter(None, (self.source_format, format_name)))

    def _is_interval(self, kind: str, start_us: int, end_us: int | None, file_name: str, line: int | None) -> bool:
        if not FIRST_TIME_US < start_us < LAST_TIME_US or (end_us is not None and not end_us < LAST_TIME_US):
            self.report.skip(f"{kind}: a time outside the calendar", file_name, line, f"{start_us} to {end_us} us")
            return False
        if end_us is None or end_us > start_us:
            return True
        skip_reason = f"{kind} of no length" if end_us == start_us else f"{kind} that ends before it starts"
        self.report.skip(skip_reason, file_name, line, f"{iso_utc(start_us)} to {iso_utc(end_us)}")
        return False

    def _note_jobs(self, start_us: NDArray[np.int64], end_us: NDArray[np.int64], count: NDArray[np.int64]) -> float:
        """Note jobs of a batch, and return the node-microseconds of those that ended."""
        has_end = end_us != OPEN_END
        ends_us = end_us[has_end]
        node_time_us = float((ends_us - start_us[has_end]).astype(np.float64) @ count[has_end])
        self.held_us += node_time_us
        self.n_open += len(end_us) - len(ends_us)
        self._note_start(int(start_us.min()), int(start_us.max()))
        if len(ends_us):
            self._note_end(int(ends_us.min()), int(ends_us.max()), int((ends_us - start_us[has_end]).max()))
        self.report.keep("job intervals", len(start_us))
        return node_time_us

    def _note_start(self, first_us: int, last_us: int) -> None:
        self.first_start_us = min(self.first_start_us, first_us)
        self.last_start_us = max(self.last_start_us, last_us)
        self.stamp(last_us)

    def _note_end(self, first_us: int, last_us: int, longest_us: int) -> None:
        self.first_end_us = min(self.first_end_us, first_us)
        self.last_end_us = max(self.last_end_us, last_us)
        self.longest_us = max(self.longest_us, longest_us)
        self.stamp(last_us)


class NodeLists:
    """Bounded cache of node lists in a log and the indices of their nodes."""

    def __init__(self, record: ScheduleRecord) -> None:
        self._record = record
        self._known: dict[str, NDArray[np.int32]] = {}
        self._size = 0

    def ids(self, list_text: str, node_names: Callable[[], Iterable[str]]) -> NDArray[np.int32]:
        """Return the node indices of a list; ``node_names`` parses one that is not cached, and may refuse it."""
        node_ids = self._known.get(list_text)
        if node_ids is None:
            node_ids = self._record.node_ids(node_names())
            entry_size = len(list_text) + len(node_ids)
            if self._size + entry_size > MOST_REMEMBERED:
                self._known.clear()
                self._size = 0
            self._known[list_text] = node_ids
            self._size += entry_size
        return node_ids


def one_name(node_name: str, name_rule: str) -> str:
    """Return the name of a node by a rule of ``NODE_NAMES``: without its domain, in lower case, or as it is."""
    if name_rule in ("short", "short-lower") and not node_name.replace(".", "").isdigit():  # an address has no domain
        node_name = node_name.split(".", 1)[0] or node_name
    return node_name.lower() if name_rule in ("lower", "short-lower") else node_name


def machine_nodes(record: ScheduleRecord) -> Sequence[str]:
    """Return the names of the machine's nodes in index order, with made-up names for unlisted ones.

    Made-up names are ``n0001``, ``n0002``, ... (``unlisted0001``, ... beside listed ones), in as many digits as needed.
    """
    node_names = list(record.nodes)
    missing = (record.machine_size or 0) - len(node_names)
    if missing <= 0:
        return node_names
    prefix = "unlisted" if node_names else "n"
    while any(node_name.startswith(prefix) for node_name in node_names):
        prefix += "_"
    digits = max(4, len(str(missing)))
    return node_names + [f"{prefix}{node_number:0{digits}d}" for node_number in range(1, missing + 1)]
