"""Schedules of small machines, and what Slurm, PBS and the extended SWF would have logged of them.

Written with nothing of what reads them, so that both are right or the round trip fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from bfreplay.datasets.log.states import NodeState

NODES = tuple(f"cn{i:02d}" for i in range(1, 7))
SUMMER_ENDS = int(datetime(2024, 10, 27, 1, tzinfo=UTC).timestamp())  # in Europe: 03:00 becomes 02:00 again
SUMMER_BEGINS = int(datetime(2024, 3, 31, 1, tzinfo=UTC).timestamp())
US_SUMMER_ENDS = int(datetime(2024, 11, 3, 7, tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Run:
    """One run of a job: whole seconds since 1970 UTC; ``end`` None while it runs; a run may end by a requeue."""

    job: int
    index: int | None  # of an array task
    component: int | None  # of a heterogeneous job
    start: int
    end: int | None
    nodes: tuple[str, ...]
    requeued: bool = False

    @property
    def raw_id(self) -> int:
        """A number of its own for each array task and component, as Slurm gives them."""
        return self.job + (self.index or 0) + (self.component or 0)


@dataclass(frozen=True)
class Outage:
    """Nodes out of use; ``end`` None: still."""

    state: NodeState
    start: int
    end: int | None
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Schedule:
    """Events on a machine until ``now``."""

    runs: tuple[Run, ...]
    outages: tuple[Outage, ...]
    reservations: tuple[Outage, ...]
    now: int


some_nodes = st.lists(st.sampled_from(NODES), min_size=1, max_size=4, unique=True).map(lambda n: tuple(sorted(n)))
steps = st.sampled_from([1, 59, 600, 1_800, 3_600, 5_000, 9_000])


@st.composite
def schedules(draw, with_open=True, with_outages=True):
    """Jobs around a change of clocks: arrays, heterogeneous jobs, requeues, running jobs, outages, reservations."""
    middle = draw(st.sampled_from([SUMMER_ENDS, SUMMER_BEGINS, US_SUMMER_ENDS]))
    origin = middle - 4 * 3_600
    now = origin + 9 * 3_600
    runs: list[Run] = []
    for number in range(draw(st.integers(1, 8))):
        job = 1_000 * (number + 1)
        kind = draw(st.sampled_from(["plain", "array", "het", "requeued"]))
        start = origin + draw(st.integers(0, 25_000))
        end = start + draw(steps)
        if kind == "requeued":
            again = end + draw(steps)
            runs.append(Run(job, None, None, start, end, draw(some_nodes), requeued=True))
            runs.append(Run(job, None, None, again, again + draw(steps), draw(some_nodes)))
        elif kind == "array":
            for index in range(draw(st.integers(1, 3))):
                begin = start + draw(steps)
                runs.append(Run(job, index, None, begin, begin + draw(steps), draw(some_nodes)))
        elif kind == "het":
            for component in range(2):
                runs.append(Run(job, None, component, start, end, draw(some_nodes)))
        else:
            runs.append(Run(job, None, None, start, end, draw(some_nodes)))
    cut = []
    for run in runs:
        if run.start >= now:
            continue
        is_open = with_open and not run.requeued and (run.end >= now or draw(st.integers(0, 9)) == 0)
        cut.append(
            Run(run.job, run.index, run.component, run.start, None if is_open else run.end, run.nodes, run.requeued)
        )
    known = [run for run in cut if not (run.requeued and [r.job for r in cut].count(run.job) < 2)]
    outages, reservations = [], []
    if with_outages:
        for _ in range(draw(st.integers(0, 3))):
            start = origin + draw(st.integers(0, 25_000))
            end = draw(st.sampled_from([None, start + 1_800, start + 7_000]))
            state = draw(st.sampled_from([NodeState.DOWN, NodeState.DRAIN, NodeState.OFF]))
            outages.append(Outage(state, start, end, draw(some_nodes)))
        for _ in range(draw(st.integers(0, 1))):
            start = origin + draw(st.integers(0, 20_000))
            reservations.append(Outage(NodeState.DOWN, start, start + 5_000, draw(some_nodes)))
    return Schedule(tuple(known), tuple(outages), tuple(reservations), max(now, *(r.end or 0 for r in known), now))


def shown(seconds: int | None, zone: ZoneInfo, form: str = "%Y-%m-%dT%H:%M:%S", none: str = "Unknown") -> str:
    """A time as a wall clock of the zone shows it."""
    return none if seconds is None else datetime.fromtimestamp(seconds, zone).strftime(form)


def elapsed(run: Run, now: int) -> str:
    """``[days-]hours:minutes:seconds``."""
    seconds = (run.end if run.end is not None else now) - run.start
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def folded(nodes: tuple[str, ...]) -> str:
    """``cn[01,03-04]``: as Slurm folds names."""
    if len(nodes) == 1:
        return nodes[0]
    return "cn[" + ",".join(name[2:] for name in nodes) + "]"


def sacct_text(schedule: Schedule, zone: ZoneInfo) -> str:
    """``sacct -X -D -P``, with rows of jobs that never ran among them."""
    lines = ["JobIDRaw|JobID|State|Start|End|Elapsed|NNodes|NodeList|Restarts"]
    for run in schedule.runs:
        name = str(run.job)
        if run.index is not None:
            name += f"_{run.index}"
        if run.component is not None:
            name += f"+{run.component}"
        state = "REQUEUED" if run.requeued else "RUNNING" if run.end is None else "COMPLETED"
        lines.append(
            f"{run.raw_id}|{name}|{state}|{shown(run.start, zone)}|{shown(run.end, zone)}|{elapsed(run, schedule.now)}"
            f"|{len(run.nodes)}|{folded(run.nodes)}|0"
        )
    quiet = shown(SUMMER_BEGINS - 86_400, zone)
    lines.insert(1, f"1|1|CANCELLED by 1000|{quiet}|{quiet}|00:00:00|1|None assigned|0")
    lines.append("2|2_[3-9%2]|PENDING|Unknown|Unknown|00:00:00|1|None assigned|0")
    lines.append("3|3|CANCELLED|None|Unknown|00:00:00|2|None assigned|0")
    return "\n".join(lines) + "\n"


def sacct_json(schedule: Schedule, style: str) -> str:
    """``sacct --json``: epoch seconds; ``style`` "old": plain values, "new": wrapped numbers and lists of states."""
    jobs = []
    for run in schedule.runs:
        state = "REQUEUED" if run.requeued else "RUNNING" if run.end is None else "COMPLETED"
        wrapped = [{"set": True, "infinite": False, "number": 90_000}, [state]] if style == "new" else [90_000, state]
        jobs.append(
            {
                "job_id": run.raw_id,
                "array": {"job_id": run.job if run.index is not None else 0, "task_id": run.index},
                "het": {"job_id": run.job if run.component is not None else 0, "job_offset": run.component},
                "nodes": folded(run.nodes),
                "allocation_nodes": len(run.nodes),
                "state": {"current": wrapped[1], "reason": "None"},
                "time": {"start": run.start, "end": run.end or 0, "limit": wrapped[0], "elapsed": 7, "suspended": 0},
                "steps": [{"nodes": {"list": list(run.nodes)}}],
            }
        )
    return json.dumps({"meta": {"plugin": {}}, "jobs": jobs, "errors": []}, indent=1)


def event_text(schedule: Schedule, zone: ZoneInfo) -> str:
    """``sacctmgr -P show event``: a row for each node."""
    words = {NodeState.DOWN: "DOWN*", NodeState.DRAIN: "DRAIN", NodeState.OFF: "POWERED_DOWN"}
    lines = ["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"]
    for outage in schedule.outages:
        for node in outage.nodes:
            times = f"{shown(outage.start, zone)}|{shown(outage.end, zone)}"
            lines.append(f"made-up|{node}|{times}|{words[outage.state]}|broken|root(0)")
    return "\n".join(lines) + "\n"


def reservation_text(schedule: Schedule, zone: ZoneInfo) -> str:
    """``sacctmgr -P show reservation``, all for maintenance."""
    lines = ["Cluster|Name|Start|End|NodeNames|Flags"]
    for i, outage in enumerate(schedule.reservations):
        times = f"{shown(outage.start, zone)}|{shown(outage.end, zone)}"
        lines.append(f"made-up|maint_{i}|{times}|{folded(outage.nodes)}|MAINT,IGNORE_JOBS")
    return "\n".join(lines) + "\n"


def pbs_days(schedule: Schedule, zone: ZoneInfo, torque: bool) -> dict[str, str]:
    """Accounting files by day: text stamps are local, ``start`` and ``end`` are epoch seconds."""
    records: list[tuple[int, int, str]] = []
    for i, run in enumerate(schedule.runs):
        name = f"{run.job}[{run.index}].srv" if run.index is not None else f"{run.job + (run.component or 0)}.srv"
        # not by the node, but by processor, and some twice
        host = "+".join(f"{node}/0-3" if torque else f"{node}/0*4" for node in run.nodes)
        vnode = "" if torque else " exec_vnode=" + "+".join(f"({node}:ncpus=4:mem=1gb)" for node in run.nodes)
        common = f'user=u account="A B; C" queue=q ctime={run.start} qtime={run.start} etime={run.start}'
        held = f"{common} start={run.start} exec_host={host}{vnode} Resource_List.walltime=24:00:00"
        records.append((run.start, 3 * i, f"S;{name};{held}"))
        if run.requeued:
            rerun = "" if torque else f"{held} end={run.end} Exit_status=-3"
            records.append((run.end, 3 * i + 1, f"R;{name};{rerun}"))
        elif run.end is not None:
            records.append((run.end, 3 * i + 1, f"E;{name};{held} end={run.end} Exit_status=0"))
    days: dict[str, list[str]] = {}
    for time, _, text in sorted(records):
        day = shown(time, zone, "%Y%m%d")
        days.setdefault(day, []).append(f"{shown(time, zone, '%m/%d/%Y %H:%M:%S')};{text}")
    return {day: "\n".join(lines) + "\n" for day, lines in days.items()}


def swf_text(schedule: Schedule) -> str:
    """Extended SWF: a processor a node, column 19 its number."""
    origin = min(run.start for run in schedule.runs)
    lines = [f"; UnixStartTime: {origin}", f"; MaxNodes: {len(NODES)}", f"; MaxProcs: {len(NODES)}"]
    for number, run in enumerate(_by_start(schedule.runs), 1):
        nodes = ",".join(str(int(name[2:])) for name in run.nodes)
        before = f"{number} {run.start - origin} 0 {run.end - run.start} {len(run.nodes)}"
        lines.append(f"{before} -1 -1 {len(run.nodes)} -1 -1 1 1 1 -1 1 1 -1 -1 {{{nodes}}} q x")
    return "\n".join(lines) + "\n"


def _by_start(runs: tuple[Run, ...]) -> Iterator[Run]:
    yield from sorted(runs, key=lambda run: (run.start, run.raw_id))
