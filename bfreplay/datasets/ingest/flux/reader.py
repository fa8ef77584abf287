"""FluxReader: jobs of a Flux instance, and its resource eventlog."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.flux.resource_events import looks_like_events, ranks_in, read_events
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.json_stream import records
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.times import LAST_TIME_US, seconds_to_us
from bfreplay.documents import Json

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
        return 'it is JSON with "jobs" that have "t_submit" and "t_depend"' if _looks_like_jobs(file) else None

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read jobs and events; see ``LogReader``.

        Raises
        ------
        InputError
            A file is neither, or broken or cut; no usable job in a list of jobs.
        """
        record.report.facts["time zone"] = "seconds since 1970-01-01 UTC: no zone is needed"
        for file in files:
            if looks_like_events(file):
                read_events(file, record)
            elif file.head().lstrip().startswith(b"{"):
                _read_jobs(file, record)
            else:
                raise file.wrong_start(
                    "this is neither a list of jobs nor an eventlog of Flux",
                    expected='{"jobs": [...]}, or a line of JSON for each event',
                    fix=f"run this on the cluster: {JOBS_COMMAND}",
                )


def _looks_like_jobs(file: LogFile) -> bool:
    head = file.head().lstrip()
    return head.startswith(b"{") and b'"jobs"' in head and b'"t_submit"' in head and b'"t_depend"' in head


def _read_jobs(file: LogFile, record: ScheduleRecord) -> None:
    record.add_format("flux jobs")
    before = record.jobs.n_rows
    n_jobs = n_inside = n_started = 0
    for number, job in records(file, "jobs", JOBS_COMMAND):
        record.report.read()
        n_jobs += 1
        if not isinstance(job, dict):
            record.report.skip_with_warning("a job is not a JSON object", file.name, number, job)
            continue
        n_inside += len(job["jobs"]) if isinstance(job.get("jobs"), list) else 0
        n_started += _add(job, number, file, record)
    if n_inside:
        record.report.facts["jobs inside of jobs (their nodes are those of the job around them; not read)"] = n_inside
    record.report.facts["housekeeping"] = "work of Flux on nodes after t_inactive is not in the list of jobs"
    if n_jobs == _DEFAULT_COUNT:
        record.report.warn(PERHAPS_CUT, file.name, None, f"{n_jobs:,} jobs", why="the list does not tell what it lacks")
    if record.jobs.n_rows == before:
        reasons = ", ".join(f"{tally.count:,} x {reason}" for reason, tally in record.report.skipped.items())
        raise file.error(
            f"no job of this list can be used: {n_started:,} of {n_jobs:,} ever ran",
            value=reasons or "an empty list",
            expected="jobs that ran, with t_run and a nodelist",
            fix=f"run this on the cluster, so that finished jobs of all users are in it: {JOBS_COMMAND}",
        )


def _add(job: dict[str, Json], number: int, file: LogFile, record: ScheduleRecord) -> bool:
    """Add a job, and return whether it ran."""
    shown = ", ".join(f"{key} {job[key]}"[:60] for key in (*_HELD, "nodelist") if key in job)
    at = file.name, number, shown
    times = {key: _time_us(job.get(key)) for key in ("t_submit", "t_depend", "t_run", "t_cleanup", "t_inactive")}
    start, cleanup, inactive = times["t_run"], times["t_cleanup"], times["t_inactive"]
    for time in times.values():
        if isinstance(time, int):
            record.stamp(time)
    if isinstance(start, str) or isinstance(cleanup, str) or isinstance(inactive, str):
        record.report.skip_with_warning("a time of a job is not a number of seconds", *at)
        return False
    if start is None:
        # rejected and cancelled jobs go from waiting to cleanup
        record.report.skip("never ran" if inactive or cleanup else "pending", *at)
        return False
    identity = job.get("id")
    if not isinstance(identity, (int, str)) or isinstance(identity, bool) or identity == "":
        record.report.skip_with_warning("a job without an id", *at)
        return True
    count = job.get("nnodes")
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count < 1 << 31:
        count = None
    held = _nodes(job.get("nodelist"), record)
    if held is None:
        record.report.skip_with_warning("the nodelist of a job cannot be read", *at)
        if count is not None:
            record.report.hold(count, start, inactive if inactive is not None else cleanup)
        return True
    if not len(held) and count is None:
        record.report.skip_with_warning("a job that ran has neither nodelist nor nnodes", *at)
        return True
    end = inactive
    if end is None and cleanup is not None and job.get("state") == "INACTIVE":
        end = cleanup
        record.report.warn(NO_INACTIVE, *at)
    if end is None and job.get("state") == "INACTIVE":
        record.report.skip_with_warning("a job is over and has no end", *at)
        return True
    if inactive is not None and cleanup is not None and inactive - cleanup > LONGEST_CLEANUP_US:
        record.report.warn(LONG_CLEANUP, *at)
    known = [time for time in times.values() if isinstance(time, int)]
    if known != sorted(known) and (end is None or end > start):
        record.report.warn(OUT_OF_ORDER, *at)
    if job.get("state", "RUN") not in _STATES:
        record.report.warn(UNKNOWN_STATE, *at)
    if len(held) and "ranks" in job and not _are_ranks(job["ranks"], len(held)):
        record.report.warn(OTHER_RANKS, *at)
    limit = _limit_us(job, start)
    record.add_job(str(identity), start, end, held if len(held) else None, count, limit, *at[:2])
    return True


def _nodes(nodelist: object, record: ScheduleRecord) -> NDArray[np.int32] | None:
    """Return the indices of the nodes in a list, empty without a list; ``None`` if it cannot be read."""
    if nodelist is None:
        return np.empty(0, np.int32)
    if not isinstance(nodelist, str):
        return None
    try:
        return record.node_ids(expand_nodes(nodelist))
    except ValueError:
        return None


def _are_ranks(value: object, n_nodes: int) -> bool:
    try:
        return len(ranks_in(value)) == n_nodes
    except ValueError:
        return False


def _limit_us(job: dict[str, Json], start_us: int) -> int | None:
    """Return the latest end: the expiration, else the start plus the duration; 0 is no limit."""
    expiration, duration = _time_us(job.get("expiration")), _time_us(job.get("duration"))
    if isinstance(expiration, int) and expiration > start_us:
        return expiration
    if isinstance(duration, int) and start_us + duration < LAST_TIME_US:
        return start_us + duration
    return None


def _time_us(value: object) -> int | str | None:
    """Return microseconds of positive seconds; ``None`` for 0, null or nothing; a text for anything else."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _LONGEST_S:
        return "no time"
    return seconds_to_us(value, exact=False) or None
