"""The same few jobs on six nodes as every format has them: small valid logs to be spoilt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.reader import ReadOptions

T = 1_717_200_000  # 2024-06-01 00:00 UTC
NOW = 21_600
US = 1_000_000
RUNS = (  # job, start and end in seconds after T (None: running), numbers of its nodes
    (101, 0, 3_600, (1, 2)),
    (102, 600, 5_400, (3,)),
    (103, 3_600, 7_200, (1, 2, 4)),
    (104, 5_400, 9_000, (3, 5)),
    (105, 7_300, 14_400, (1,)),
    (106, 9_000, 10_800, (2, 3)),
    (107, 10_000, 12_000, (4, 5, 6)),
    (108, 13_000, 17_500, (2,)),
    (109, 15_000, None, (1, 3)),
    (110, 16_000, None, (4,)),
    (111, 18_000, None, (5, 6)),
)
ENDED = tuple((job, start, end or NOW - 600, nodes) for job, start, end, nodes in RUNS)
SERVER_ZONE = timezone(timedelta(hours=-5))


PLAIN = ReadOptions()


@dataclass(frozen=True)
class SmallLog:
    """A log, of which ``text`` is to be spoilt; ``beside`` are files that stay whole: name -> text."""

    reader: str
    text: str
    options: ReadOptions = PLAIN
    beside: tuple[tuple[str, str], ...] = ()
    origin_s: int = T

    @property
    def rules(self) -> OccupancyRules:
        """A window and an end that no line of the log decides."""
        window = self.origin_s * US, (self.origin_s + NOW) * US
        return OccupancyRules(window=window, log_end_us=window[1], min_gap_s=0, empty_machine="idle")

    def write(self, folder: Path, content: bytes | None = None) -> list[Path]:
        """Write the files, with ``content`` in place of ``text``; the first path is its."""
        paths = [folder / "log", *(folder / name for name, _ in self.beside)]
        paths[0].write_bytes(self.text.encode() if content is None else content)
        for path, (_, text) in zip(paths[1:], self.beside, strict=True):
            if not path.exists():
                path.write_text(text)
        return paths


def iso(seconds: int | None, none: str = "Unknown", form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    """A time so many seconds after T, in UTC."""
    return none if seconds is None else datetime.fromtimestamp(T + seconds, UTC).strftime(form)


def folded(nodes: tuple[int, ...]) -> str:
    """``cn[1-3]``, ``cn[1,3]``, ``cn4``."""
    if len(nodes) == 1:
        return f"cn{nodes[0]}"
    is_range = len(nodes) > 2 and nodes == tuple(range(nodes[0], nodes[-1] + 1))
    return f"cn[{nodes[0]}-{nodes[-1]}]" if is_range else f"cn[{','.join(map(str, nodes))}]"


def lines(*parts: str) -> str:
    """Text of lines."""
    return "".join(f"{part}\n" for part in parts)


# ---- Slurm -----------------------------------------------------------------------------------------------------------

SACCT_HEADER = (
    "JobIDRaw|JobID|Cluster|State|Submit|Start|End|ElapsedRaw|Suspended|TimelimitRaw|NNodes|NodeList|Restarts"
)


def _sacct() -> str:
    rows = []
    for job, start, end, nodes in RUNS:
        state = "RUNNING" if end is None else "CANCELLED by 7" if job == 104 else "COMPLETED"
        name = f"{job}_3" if job == 105 else f"{job}+0" if job == 106 else str(job)
        elapsed = (NOW if end is None else end) - start
        rows.append(
            f"{job}|{name}|hill|{state}|{iso(start - 300)}|{iso(start)}|{iso(end)}|{elapsed}|00:00:00|300|{len(nodes)}"
            f"|{folded(nodes)}|0"
        )
    rows.insert(4, f"120|120|hill|CANCELLED by 7|{iso(0)}|None|{iso(900)}|0|00:00:00|300|2|None assigned|0")
    rows.append(f"121|121|hill|PENDING|{iso(900)}|Unknown|Unknown|0|00:00:00|300|2|None assigned|0")
    return lines(SACCT_HEADER, *rows)


def _wrapped(number: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": number}


def _listed(document: dict[str, object], key: str, records: list[dict[str, object]]) -> str:
    """A document with a record a line."""
    head = json.dumps(document)[:-1]
    return (
        f'{head}{", " if document else ""}"{key}": [\n'
        + ",\n".join(json.dumps(record) for record in records)
        + "\n]}\n"
    )


def _sacct_json() -> str:
    records: list[dict[str, object]] = []
    for job, start, end, nodes in RUNS:
        times = {
            "submission": T + start - 300,
            "start": T + start,
            "end": 0 if end is None else T + end,
            "elapsed": (NOW if end is None else end) - start,
            "suspended": 0,
            "limit": _wrapped(300),
        }
        state = {"current": ["RUNNING" if end is None else "COMPLETED"], "reason": "None"}
        het = {"job_id": 0, "job_offset": _wrapped(0)}
        records.append(
            {
                "job_id": job,
                "cluster": "hill",
                "allocation_nodes": len(nodes),
                "nodes": folded(nodes),
                "restart_cnt": 0,
                "het": het,
                "state": state,
                "time": times,
            }
        )
    return _listed({"meta": {"slurm": {"release": "24.05"}}}, "jobs", records)


NODE_EVENTS_HEADER = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"


def _node_events() -> str:
    rows = [
        f"hill|cn{node}|{iso(start)}|{iso(end)}|{state}|{reason}|root(0)"
        for node, start, end, state, reason in (
            (5, 0, 4_000, "DOWN*", "disk"),
            (6, 600, 9_600, "DRAIN", "fan"),
            (4, 12_500, 15_500, "IDLE+DRAIN", "check"),
            (2, 17_500, None, "DOWN", "power"),
            (6, 12_000, 17_000, "POWERED_DOWN", "quiet"),
        )
    ]
    return lines(NODE_EVENTS_HEADER, *rows)


def _sinfo() -> str:
    rows = []
    for second in range(0, NOW + 1, 1_200):
        for node in range(1, 7):
            is_used = any(s <= second < (e or NOW + 1) and node in nodes for _, s, e, nodes in RUNS)
            is_down = node == 6 and second < 7_000
            rows.append(f"{T + second}|cn{node}|{'down*' if is_down else 'allocated' if is_used else 'idle'}")
    return lines(*rows)


def _snapshots() -> str:
    """The states of ``_sinfo`` as lines of node and state, below the time of each poll."""
    rows = []
    for row in _sinfo().splitlines():
        second, node, state = row.split("|")
        rows += [f"# {second}"] if node == "cn1" else []
        rows.append(f"{node} {state}")
    return lines(*rows)


# ---- PBS -------------------------------------------------------------------------------------------------------------


def _stamp(seconds: int) -> str:
    return datetime.fromtimestamp(T + seconds, SERVER_ZONE).strftime("%m/%d/%Y %H:%M:%S")


def _pbs(is_torque: bool) -> str:
    records = []
    for job, start, end, nodes in RUNS:
        name = f"{job}[3].hill" if job == 105 else f"{job}.hill"
        queued = T + start - 300
        if is_torque:
            hosts = "+".join(f"cn{node}/0-3" for node in nodes)
            placed = f"exec_host={hosts} unique_node_count={len(nodes)} total_execution_slots={4 * len(nodes)}"
        else:
            hosts = "+".join(f"cn{node}/0*4" for node in nodes)
            placed = f"exec_host={hosts} exec_vnode=" + "+".join(f"(cn{node}:ncpus=4:mem=9gb)" for node in nodes)
        common = f"user=ann group=g queue=q ctime={queued} qtime={queued} etime={queued} start={T + start} {placed}"
        limit = "Resource_List.walltime=05:00:00"
        records.append((start - 300, f"Q;{name};queue=q"))
        if job != 101:  # the log begins while it runs
            records.append((start, f"S;{name};{common} {limit}"))
        if job == 103:  # run again
            gone = "" if is_torque else f"{common} {limit} end={T + end} Exit_status=-3"
            records.append((end, f"R;{name};{gone}"))
        elif end is not None:
            records.append((end, f"E;{name};{common} {limit} session=9 end={T + end} Exit_status=0"))
        if job == 108:
            records.append((end - 60, f"D;{name};requestor=ann@hill"))
    return lines(*(f"{_stamp(second)};{text}" for second, text in sorted(records, key=lambda record: record[0])))


# ---- LSF -------------------------------------------------------------------------------------------------------------


def _lsf() -> str:
    records = []
    for job, start, end, nodes in ENDED:
        hosts = [f'"cn{node}"' for node in nodes for _ in range(2)]
        fields = [
            '"JOB_FINISH"',
            '"10.1"',
            T + end,
            job,
            500,
            33_554_434,
            len(hosts),
            T + start - 300,
            0,
            0,
            T + start,
            '"ann"',
            '"normal"',
            '"span[ptile=2]"',
            '""',
            '""',
            '"login1"',
            '"/home/ann"',
            '""',
            '"%J.out"',
            '""',
            '"17.7"',
            0,
            len(hosts),
            *hosts,
            64,
            "60.0",
            '"run ""it"""',
            '"a.out"',
            "0.25",
            "0.50",
            *[-1] * 17,
            '""',
            '"default"',
            0,
            len(hosts),
            '""',
            '""',
            3 if job == 105 else 0,
            2_048,
            0,
            '""',
            '""',
            '""',
            '""',
            0,
        ]
        records.append((end, " ".join(map(str, fields))))
    for second, code, host in ((600, 2, "cn6"), (9_600, 1, "cn6"), (12_500, 2, "cn4")):
        records.append((second, f'"HOST_CTRL" "10.1" {T + second} {code} "{host}" 0 "root" "fan"'))
    return lines(*(text for _, text in sorted(records)))


# ---- Grid Engine -----------------------------------------------------------------------------------------------------


def _grid_engine(is_json: bool) -> str:
    records: list[tuple[int, str]] = []
    for job, start, end, nodes in ENDED:
        for node in nodes:
            is_task = node != nodes[0]  # tasks start a second later, and end a second earlier
            times = (T + start - 300, T + start + is_task, T + end - is_task)
            pe, slots, array = "mpi" if len(nodes) > 1 else "NONE", 4 * len(nodes) - 3, 3 if job == 105 else 0
            if is_json:
                keys = ("job_number", "task_number", "qname", "hostname", "slots", "job_name")
                fields = dict(zip(keys, (job, array, "all.q", f"cn{node}", slots, "run it"), strict=True))
                names = ("submission_time", "start_time", "end_time")
                fields |= {name: time * US for name, time in zip(names, times, strict=True)}
                fields |= {"pe_taskid": f"1.cn{node}"} if is_task else {}
                records.append((times[-1], json.dumps(fields | {"usage": {"usage": {"wallclock": end - start}}})))
                continue
            usage = f"{times[2] - times[1]}:1.0:0.1:100.0:0:0:0:0:10:0:0:0.0:24:0:0:0:41:549:NONE:defaultdepartment"
            before = f"all.q:cn{node}:g:ann:run {'a:b' if job == 104 else 'it'}:{job}:sge:0:{':'.join(map(str, times))}"
            task = f"1.cn{node}" if is_task else "NONE"
            after = f"{pe}:{slots}:{array}:1.1:0.2:0.0:-l h_rt=5:00:00:0.0:{task}:1000.0:0:0"
            records.append((times[-1], f"{before}:0:0:{usage}:{after}"))
    head = () if is_json else ("# Version: 8.1.9",)
    return lines(*head, *(text for _, text in sorted(records, key=lambda record: record[0])))


# ---- SWF -------------------------------------------------------------------------------------------------------------

SWF_HEADER = (f"; UnixStartTime: {T}", "; MaxNodes: 6", "; MaxProcs: 24", "; Computer: made up")


def _swf() -> str:
    rows = [
        f"{job} {max(0, start - 300)} {min(start, 300)} {end - start} {4 * len(nodes)} -1 -1 {4 * len(nodes)} 18000 -1 "
        f"1 7 7 -1 1 1 -1 -1"
        for job, start, end, nodes in ENDED
    ]
    return lines(*SWF_HEADER, *rows)


def _swf_extended() -> str:
    rows = []
    for row, (_, _, _, nodes) in zip(_swf().splitlines()[len(SWF_HEADER) :], ENDED, strict=True):
        listed = ",".join(str(node) for node in nodes for _ in range(4))
        rows.append(f"{row} {{{listed}}} q 1:ppn=4")
    return lines(*SWF_HEADER, *rows)


# ---- tables ----------------------------------------------------------------------------------------------------------

ALCF_HEADER = (
    "JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,WALLTIME_SECONDS,"
    "RUNTIME_SECONDS,NODES_USED,LOCATION"
)
TABLE_HEADER = "job_id,state,start_time,end_time,elapsed,num_nodes,nodelist"


def _alcf() -> str:
    rows = []
    for job, start, end, nodes in ENDED:
        stamps = ",".join(iso(second, form="%Y-%m-%d %H:%M:%S") for second in (start - 300, start, end))
        where = ",".join(f"x3005c0s{node}b0n0" for node in nodes)
        rows.append(f'{job}.polaris,{job},polaris,{stamps},18000.0,{end - start}.0,{len(nodes)}.0,"{where}"')
    return lines(ALCF_HEADER, *rows)


def _table() -> str:
    rows = []
    for job, start, end, nodes in RUNS:
        elapsed = (NOW if end is None else end) - start
        times = f"{iso(start)}Z,{'' if end is None else iso(end) + 'Z'},{elapsed}"
        state = "RUNNING" if end is None else "COMPLETED"
        rows.append(f'{job},{state},{times},{len(nodes)},"{",".join(f"cn{node}" for node in nodes)}"')
    return lines(TABLE_HEADER, *rows)


# ---- Flux, Batsim ----------------------------------------------------------------------------------------------------


def _flux() -> str:
    records: list[dict[str, object]] = []
    for job, start, end, nodes in RUNS:
        at = T + start
        ranks = str(nodes[0] - 1) if len(nodes) == 1 else f"[{','.join(str(node - 1) for node in nodes)}]"
        over: dict[str, object] = {} if end is None else {"t_cleanup": T + end - 0.5, "t_inactive": T + end + 0.0}
        records.append(
            {
                "id": 9_000_000_000 + job,
                "userid": 7,
                "t_submit": at - 300.25,
                "t_depend": at - 300.0,
                "t_run": at + 0.0,
                **over,
                "nnodes": len(nodes),
                "ranks": ranks,
                "nodelist": folded(nodes),
                "expiration": at + 18_000.0,
                "duration": 18_000.0,
                "state": "RUN" if end is None else "INACTIVE",
            }
        )
    return _listed({}, "jobs", records)


BATSIM_HEADER = (
    "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,"
    "execution_time,finish_time,waiting_time,turnaround_time,stretch,consumed_energy,allocated_resources"
)


def _batsim() -> str:
    rows = []
    for job, start, end, nodes in ENDED:
        submitted = max(0, start - 300)
        times = [submitted, start, end - start, end, start - submitted, end - submitted]
        submit, begin, ran, over, waited, around = (f"{second}.000000" for second in times)
        allocated = " ".join(str(node - 1) for node in nodes)
        stretch = f"{(end - submitted) / (end - start):.6f}"
        rows.append(
            f"{job},w0,{submit},{len(nodes)},18000.000000,1,{begin},{ran},{over},{waited},{around},{stretch},-1,{allocated}"
        )
    return lines(BATSIM_HEADER, *rows)


_WORKLOAD = json.dumps({"nb_res": 6, "jobs": [{"id": "101", "subtime": 0, "res": 2, "profile": "p"}], "profiles": {}})

SMALL_LOGS = {
    "sacct": SmallLog("slurm", _sacct(), ReadOptions(timezone="UTC")),
    "sacct-json": SmallLog("slurm", _sacct_json()),
    "node-events": SmallLog("slurm", _node_events(), ReadOptions(timezone="UTC"), (("jobs.psv", _sacct()),)),
    "sinfo": SmallLog("slurm", _sinfo()),
    "snapshots": SmallLog("snapshots", _snapshots()),
    "pbs-pro": SmallLog("pbs", _pbs(is_torque=False)),
    "torque": SmallLog("pbs", _pbs(is_torque=True)),
    "lsf": SmallLog("lsf", _lsf()),
    "grid-engine": SmallLog("grid-engine", _grid_engine(is_json=False)),
    "grid-engine-objects": SmallLog("grid-engine", _grid_engine(is_json=True)),
    "swf": SmallLog("swf", _swf()),
    "swf-extended": SmallLog("swf", _swf_extended()),
    "alcf": SmallLog("cobalt", _alcf(), ReadOptions(n_nodes=6)),
    "table": SmallLog("table", _table()),
    "flux": SmallLog("flux", _flux()),
    "batsim": SmallLog("batsim", _batsim(), beside=(("workload.json", _WORKLOAD),), origin_s=0),
}
"""Format -> its log."""
