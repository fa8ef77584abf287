"""Flux: jobs of an instance, and its resource eventlog (events: Flux RFC 44)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.hostlists import expand_nodes, numbers_in
from bfreplay.datasets.ingest.json_stream import records
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import FIRST_TIME_US, LAST_TIME_US, seconds_to_us
from bfreplay.documents import Json, parse_json

EVENTS_UNREADABLE = "events of nodes that cannot be read were skipped: unusable nodes may look idle"
WHICH_IS_UNKNOWN = "which nodes it means is not known"
NO_NAMES = (
    "events give ranks, and no event before them says which nodes those are: they were skipped, and nodes may look "
    "idle that were not usable (the whole journal has the names: flux resource eventlog -f json)"
)

_STATE = {"drain": NodeState.DRAIN, "offline": NodeState.DOWN, "torpid": NodeState.DOWN}
_BACK = {"undrain": "drain", "online": "offline", "lively": "torpid"}
_SNAPSHOTS = ("restart", "resource-init", "truncate")
_OTHERS = ("resource-define", "resource-update")
_LONGEST_EVENT_S = 1e12
_SIGNS = (b'"timestamp"', b'"name"', b'"context"')


def looks_like_events(log_file: LogFile) -> bool:
    """Return whether the first line is an event: an object with a timestamp, a name and a context."""
    head_bytes = log_file.head().lstrip()
    if not head_bytes.startswith(b"{") or not any(sign in head_bytes for sign in _SIGNS):
        return False
    first_line = next(iter(log_file.first_rows()), "")
    event = _parse_event(first_line)
    if event is None:
        return False
    return event.get("name") in (*_STATE, *_BACK, *_SNAPSHOTS, *_OTHERS) and "timestamp" in event


def read_events(log_file: LogFile, record: ScheduleRecord) -> None:
    """Read the events of a file, one a line, into outages.

    An event that begins an outage is kept; all others (the end of one, a restart) are skipped by kind. Nodes
    drained before the first event of a truncated journal count from the time that it gives.
    """
    record.add_format("flux resource eventlog")
    open_outages = _Nodes(record, log_file)
    for line_number, line_text in log_file.lines():
        if not line_text.strip():
            continue
        record.report.read()
        row_place = log_file.name, line_number, line_text
        event = _parse_event(line_text)
        time_us = None if event is None else _event_time_us(event.get("timestamp"))
        event_name, context = ("", {}) if event is None else (event.get("name"), event.get("context", {}))
        skip_reason, warning = "an event that is not a JSON object with timestamp, name and context", EVENTS_UNREADABLE
        if time_us is not None and isinstance(event_name, str) and isinstance(context, dict):
            record.stamp(time_us)
            try:
                open_outages.take(event_name, time_us, context, line_number, line_text)
                continue
            except _NamelessError:
                skip_reason, warning = "an event of ranks without names", NO_NAMES
            except ValueError:
                skip_reason = "an event whose nodes or ranks cannot be read"
        record.report.skip_with_warning(skip_reason, *row_place, warning=warning, why_no_amount=WHICH_IS_UNKNOWN)
    open_outages.finish()


class _NamelessError(ValueError):
    """A rank without a known node."""


class _Nodes:
    """Current outages, by kind and node, with their start."""

    def __init__(self, record: ScheduleRecord, log_file: LogFile) -> None:
        self._record, self._file = record, log_file
        self._out: dict[str, dict[str, tuple[int, int]]] = {outage_kind: {} for outage_kind in _STATE}
        self._names: dict[int, str] = {}

    def take(self, event_name: str, time_us: int, context: dict[str, Json], line_number: int, line_text: str) -> None:
        is_new = False
        if event_name in _SNAPSHOTS:
            skip_reason = "restart of the resource service"
            is_new = self._start_over(time_us, context, line_number)
        elif event_name in _STATE:
            skip_reason = "event of nodes that were out already"
            is_new = self._begin(event_name, self._nodes(context), time_us, line_number)
        elif event_name in _BACK:
            skip_reason = "event of nodes that came back"
            self._end(_BACK[event_name], self._nodes(context), time_us)
        else:
            skip_reason = "event of another kind"
        if not is_new:
            self._record.report.skip(skip_reason, self._file.name, line_number, line_text)

    def finish(self) -> None:
        """Add the outages that last to the end of the log."""
        for outage_kind, open_outages in self._out.items():
            self._close(outage_kind, list(open_outages), None)

    def _nodes(self, context: dict[str, Json]) -> Sequence[str]:
        node_list = context.get("nodelist")
        if isinstance(node_list, str) and node_list:
            return expand_nodes(node_list)
        return self._node_names(ranks_in(context.get("idset")))

    def _node_names(self, ranks: Iterable[int]) -> Sequence[str]:
        try:
            return [self._names[rank] for rank in ranks]
        except KeyError as error:
            raise _NamelessError(str(error)) from None

    def _begin(self, outage_kind: str, node_names: Sequence[str], since_us: int, line_number: int) -> bool:
        """Begin outages of nodes that are not out already; return whether any is new."""
        open_outages = self._out[outage_kind]
        new_nodes = [node_name for node_name in node_names if node_name not in open_outages]
        open_outages.update(dict.fromkeys(new_nodes, (since_us, line_number)))
        return bool(new_nodes)

    def _end(self, outage_kind: str, node_names: Iterable[str], time_us: int) -> None:
        self._close(outage_kind, [node for node in node_names if node in self._out[outage_kind]], time_us)

    def _close(self, outage_kind: str, node_names: Sequence[str], time_us: int | None) -> None:
        together: dict[tuple[int, int], list[str]] = {}
        for node_name in node_names:
            together.setdefault(self._out[outage_kind].pop(node_name), []).append(node_name)
        for (since_us, line_number), names_together in together.items():
            node_ids = self._record.node_ids(names_together)
            self._record.add_outage(_STATE[outage_kind], since_us, time_us, node_ids, self._file.name, line_number)

    def _start_over(self, time_us: int, context: dict[str, Json], line_number: int) -> bool:
        """Process a snapshot: the node of each rank, and the online, torpid and drained nodes."""
        names_before = self._names
        try:
            self._names = _names_of(context) or names_before
            online, online_nodes = context.get("online"), None
            if isinstance(online, str) and self._names:
                online_nodes = frozenset(self._node_names(ranks_in(online)))
            torpid = self._node_names(ranks_in(context.get("torpid", "")))
            drains = self._drained_nodes(context.get("drain"), time_us)
        except ValueError:
            self._names = names_before  # a skipped event changes nothing
            raise
        is_new = False
        if online_nodes is not None:
            self._end("offline", [node for node in self._out["offline"] if node in online_nodes], time_us)
            offline_names = [node for node in self._names.values() if node not in online_nodes]
            is_new |= self._begin("offline", offline_names, time_us, line_number)
        self._end_others("torpid", torpid, time_us)
        is_new |= self._begin("torpid", torpid, time_us, line_number)
        if drains is not None:
            for drained_names, since_us in drains:
                is_new |= self._begin("drain", drained_names, since_us, line_number)
            self._end_others("drain", [node for drained_names, _ in drains for node in drained_names], time_us)
        return is_new

    def _drained_nodes(self, drains: object, time_us: int) -> list[tuple[Sequence[str], int]] | None:
        """Return the drained nodes of a snapshot and their start; ``None`` if it has none listed."""
        if not isinstance(drains, dict):
            return None
        nodes_and_starts = []
        for idset, drain_entry in drains.items():
            since_us = _event_time_us(drain_entry.get("timestamp")) if isinstance(drain_entry, dict) else None
            nodes_and_starts.append((self._node_names(ranks_in(idset)), time_us if since_us is None else since_us))
        return nodes_and_starts

    def _end_others(self, outage_kind: str, node_names: Iterable[str], time_us: int) -> None:
        still = frozenset(node_names)
        self._end(outage_kind, [node_name for node_name in self._out[outage_kind] if node_name not in still], time_us)


def _names_of(context: dict[str, Json]) -> dict[int, str]:
    """Return the node of each rank, if the event lists them."""
    node_list = context.get("nodelist")
    if not isinstance(node_list, str) or not node_list:
        return {}
    ranks, node_names = ranks_in(context.get("ranks")), expand_nodes(node_list)
    if len(ranks) != len(node_names):
        raise ValueError("several ranks on a node, or none")
    return dict(zip(ranks, node_names, strict=True))


def _parse_event(line_text: str) -> dict[str, Json] | None:
    event = or_none(parse_json, line_text)
    return event if isinstance(event, dict) else None


def _event_time_us(seconds: object) -> int | None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not abs(seconds) < _LONGEST_EVENT_S:
        return None
    time_us = seconds_to_us(seconds, exact=False)
    return time_us if FIRST_TIME_US < time_us < LAST_TIME_US else None


def ranks_in(idset_text: object) -> list[int]:
    """Return the numbers of an idset, ``0-3,7`` or ``[0-3,7]``.

    Raises
    ------
    ValueError
        Not an idset.
    """
    if not isinstance(idset_text, str):
        raise ValueError("no idset")
    return numbers_in(idset_text.removeprefix("[").removesuffix("]").split(",") if idset_text else ())


NO_INACTIVE = "jobs are inactive without t_inactive: their nodes count as free from t_cleanup"
OUT_OF_ORDER = "the times of a job are not in their order (submit, depend, run, cleanup, inactive): one is wrong"
OTHER_RANKS = "the ranks of a job are not as many as its nodes, or cannot be read: the nodes are used"
UNKNOWN_STATE = "an unknown state of jobs: such jobs count as running unless they have t_inactive"
PERHAPS_CUT = (
    "there are exactly 1,000 jobs, the default limit of `flux jobs` (-c 0 lifts it): older ones may be "
    "missing, and their nodes look idle"
)
JOBS_COMMAND = "flux jobs -a -A -c 0 --json > jobs.json"
EVENTS_COMMAND = "flux resource eventlog -f json > resource.eventlog"

_DEFAULT_COUNT = 1_000
_LONGEST_S = LAST_TIME_US // 1_000_000
LONG_CLEANUP = "jobs took more than a day from t_cleanup to t_inactive: one of the two may be wrong"
LONGEST_CLEANUP_US = 86_400_000_000
_STATES = ("NEW", "DEPEND", "PRIORITY", "SCHED", "RUN", "CLEANUP", "INACTIVE")
_HELD = ("id", "t_run", "t_cleanup", "t_inactive", "expiration", "duration", "nnodes")


class FluxReader:
    """Jobs hold their nodes from ``t_run`` to ``t_inactive``: the run ends at ``t_cleanup``, the nodes are free later.

    A job without ``t_inactive`` held them when the list was made. Jobs inside a job (``--recursive``) use its nodes and
    are not read. Events of the resource service are outages: drained
    nodes ``DRAIN``, offline and torpid ones ``DOWN``.
    """

    name = "flux"
    title = "Flux: flux jobs --json, flux resource eventlog -f json"
    options = ()
    exports: Sequence[Export] = (
        Export(JOBS_COMMAND, "all jobs that the instance still knows, with their nodes; -c 0 lifts the limit of 1,000"),
        Export(EVENTS_COMMAND, "when nodes were drained, offline or back; give it with the jobs"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Recognise keys of jobs, or of events, in the first bytes; see ``LogReader``."""
        if looks_like_events(file):
            return "its first line is an event of Flux's resource service"
        head_bytes, members = file.head().lstrip(), (b'"jobs"', b'"t_submit"', b'"t_depend"')
        is_list = head_bytes.startswith(b"{") and all(member in head_bytes for member in members)
        return 'it is JSON with "jobs" that have "t_submit" and "t_depend"' if is_list else None

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read jobs and events; see ``LogReader``.

        Raises
        ------
        InputError
            A file is neither, or broken or cut; no usable job in a list of jobs.
        """
        record.report.facts["time zone"] = "seconds since 1970-01-01 UTC: no zone is needed"
        for log_file in files:
            if looks_like_events(log_file):
                read_events(log_file, record)
            elif log_file.head().lstrip().startswith(b"{"):
                _read_jobs(log_file, record)
            else:
                raise log_file.wrong_start(
                    "this is neither a list of jobs nor an eventlog of Flux",
                    expected='{"jobs": [...]}, or a line of JSON for each event',
                    fix=f"run this on the cluster: {JOBS_COMMAND}",
                )


def _read_jobs(log_file: LogFile, record: ScheduleRecord) -> None:
    record.add_format("flux jobs")
    n_before = record.jobs.n_rows
    n_jobs = n_inside = n_that_ran = 0
    for record_number, job_document in records(log_file, "jobs", JOBS_COMMAND):
        record.report.read()
        n_jobs += 1
        if not isinstance(job_document, dict):
            record.report.skip_with_warning("a job is not a JSON object", log_file.name, record_number, job_document)
            continue
        n_inside += len(job_document["jobs"]) if isinstance(job_document.get("jobs"), list) else 0
        n_that_ran += _add(job_document, record_number, log_file, record)
    if n_inside:
        record.report.facts["jobs inside of jobs (their nodes are those of the job around them; not read)"] = n_inside
    record.report.facts["housekeeping"] = "work of Flux on nodes after t_inactive is not in the list of jobs"
    if n_jobs == _DEFAULT_COUNT:
        why_no_amount = "the list does not tell what it lacks"
        record.report.warn(PERHAPS_CUT, log_file.name, None, f"{n_jobs:,} jobs", why_no_amount=why_no_amount)
    if record.jobs.n_rows == n_before:
        raise log_file.error(
            f"no job of this list can be used: {n_that_ran:,} of {n_jobs:,} ever ran",
            value=record.report.counted_skips() or "an empty list",
            expected="jobs that ran, with t_run and a nodelist",
            fix=f"run this on the cluster, so that finished jobs of all users are in it: {JOBS_COMMAND}",
        )


def _add(job: dict[str, Json], record_number: int, log_file: LogFile, record: ScheduleRecord) -> bool:
    """Add a job, and return whether it ran."""
    job_text = ", ".join(f"{key} {job[key]}"[:60] for key in (*_HELD, "nodelist") if key in job)
    row_place = log_file.name, record_number, job_text
    times = {key: _time_us(job.get(key)) for key in ("t_submit", "t_depend", "t_run", "t_cleanup", "t_inactive")}
    start_time, cleanup, inactive = times["t_run"], times["t_cleanup"], times["t_inactive"]
    times_us = [time for time in times.values() if isinstance(time, int)]
    for time_us in times_us:
        record.stamp(time_us)
    if isinstance(start_time, str) or isinstance(cleanup, str) or isinstance(inactive, str):
        record.report.skip_with_warning("a time of a job is not a number of seconds", *row_place)
        return False
    if start_time is None:
        # rejected and cancelled jobs go from waiting to cleanup
        record.report.skip("never ran" if inactive or cleanup else "pending", *row_place)
        return False
    identity = job.get("id")
    if not isinstance(identity, (int, str)) or isinstance(identity, bool) or identity == "":
        record.report.skip_with_warning("a job without an id", *row_place)
        return True
    count = job.get("nnodes")
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count < 1 << 31:
        count = None
    node_ids = _nodes(job.get("nodelist"), record)
    if node_ids is None:
        record.report.skip_with_warning("the nodelist of a job cannot be read", *row_place)
        if count is not None:
            record.report.set_row_amount(count, start_time, inactive if inactive is not None else cleanup)
        return True
    if not len(node_ids) and count is None:
        record.report.skip_with_warning("a job that ran has neither nodelist nor nnodes", *row_place)
        return True
    end = inactive
    if end is None and job.get("state") == "INACTIVE":
        if cleanup is None:
            record.report.skip_with_warning("a job is over and has no end", *row_place)
            return True
        end = cleanup
        record.report.warn(NO_INACTIVE, *row_place)
    if inactive is not None and cleanup is not None and inactive - cleanup > LONGEST_CLEANUP_US:
        record.report.warn(LONG_CLEANUP, *row_place)
    if times_us != sorted(times_us) and (end is None or end > start_time):
        record.report.warn(OUT_OF_ORDER, *row_place)
    if job.get("state", "RUN") not in _STATES:
        record.report.warn(UNKNOWN_STATE, *row_place)
    if len(node_ids) and "ranks" in job and len(or_none(ranks_in, job["ranks"]) or ()) != len(node_ids):
        record.report.warn(OTHER_RANKS, *row_place)
    limit_us = _limit_us(job, start_time)
    eligible, queue = (times["t_depend"] or times["t_submit"]), job.get("queue")
    submission = Submission(eligible if isinstance(eligible, int) else None, queue if isinstance(queue, str) else "")
    nodes = node_ids if len(node_ids) else None
    record.add_job(str(identity), start_time, end, nodes, count, limit_us, *row_place[:2], submission=submission)
    return True


def _nodes(nodelist: object, record: ScheduleRecord) -> NDArray[np.int32] | None:
    """Return the indices of the nodes in a list, empty without a list; ``None`` if it cannot be read."""
    node_names = None
    if nodelist is None or isinstance(nodelist, str):
        node_names = or_none(expand_nodes, nodelist or "")
    return None if node_names is None else record.node_ids(node_names)


def _limit_us(job_document: dict[str, Json], start_us: int) -> int | None:
    """Return the latest end: the expiration, else the start plus the duration; 0 is no limit."""
    expiration, duration = _time_us(job_document.get("expiration")), _time_us(job_document.get("duration"))
    if isinstance(expiration, int) and expiration > start_us:
        return expiration
    if isinstance(duration, int) and start_us + duration < LAST_TIME_US:
        return start_us + duration
    return None


def _time_us(seconds: object) -> int | str | None:
    """Return microseconds of positive seconds; ``None`` for 0, null or nothing; a text for anything else."""
    if seconds is None or seconds == "":
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < _LONGEST_S:
        return "no time"
    return seconds_to_us(seconds, exact=False) or None
