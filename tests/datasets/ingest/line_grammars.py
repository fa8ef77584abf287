"""Strict grammars of lines: whether a scheduler could have written a line, and what it says twice is said alike.

Written with nothing of the readers. Only what decides about who held which nodes when is looked at.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from datetime import datetime

from tests.datasets.ingest.small_logs_of_formats import NOW, SMALL_LOGS, T

_EARLIEST, _LATEST = datetime(1, 1, 2), datetime(9999, 12, 31)
_ENDED = "COMPLETED|FAILED|TIMEOUT|CANCELLED( by \\d+)?|NODE_FAIL|PREEMPTED|OUT_OF_MEMORY|DEADLINE|BOOT_FAIL|REQUEUED"
_WRITTEN_WITHIN = 600  # seconds: running jobs of one export may differ by so much in when it was written
_DIGITS = re.compile(r"\d+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*", re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)


class _NotThatError(Exception):
    """The line is not of the grammar."""


def _must(condition: object) -> None:
    if not condition:
        raise _NotThatError


def _whole(text: object, least: int = 0, most: int = 10**12) -> int:
    _must(isinstance(text, str) and _DIGITS.fullmatch(text) and len(text) < 16)
    number = int(str(text))
    _must(least <= number <= most)
    return number


def _time(text: str) -> float:
    """Seconds after T of a local time in UTC; a second of 60 is one."""
    _must(_ISO.fullmatch(text))
    second = 1 if text[17:19] == "60" else 0
    try:
        moment = datetime.fromisoformat(text[:17] + "59" + text[19:] if second else text)
    except ValueError:
        raise _NotThatError from None
    _must(_EARLIEST < moment < _LATEST)
    return (moment - datetime(2024, 6, 1)).total_seconds() + second


def _nodes(text: str) -> list[str]:
    """Names of ``a1,b[1-3,7]``; one pair of brackets to a name."""
    names: list[str] = []
    for part in re.findall(r"[^,\[\]]*(?:\[[^\[\]]*\])?[^,\[\]]*(?:,|$)", text)[:-1] if text else []:
        match = re.fullmatch(r"([A-Za-z0-9_.\-]*)(?:\[([\d,\-]+)\])?([A-Za-z0-9_.\-]*),?", part, re.ASCII)
        _must(match)
        assert match is not None
        prefix, ranges, suffix = match.groups()
        if ranges is None:
            names.append(prefix + suffix)
            continue
        for field in ranges.split(","):
            ends = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", field)
            _must(ends)
            assert ends is not None
            first, last = int(ends[1]), int(ends[2] or ends[1])
            _must(first <= last < first + 10_000)
            names += [f"{prefix}{i:0{len(ends[1])}d}{suffix}" for i in range(first, last + 1)]
    _must(names and all(_NAME.fullmatch(name) for name in names))
    return list(dict.fromkeys(names))


def _cells(line: str, header: str) -> list[str]:
    try:
        cells = next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration):
        raise _NotThatError from None
    _must(len(cells) == header.count(",") + 1)
    return cells


# ---- Slurm -----------------------------------------------------------------------------------------------------------


def _run(start: float, end: float | None, elapsed: float, suspended: float = 0) -> None:
    """Start, end and running time agree; a job that runs, ran until the export was written."""
    if end is None:
        _must(abs(start + elapsed + suspended - NOW) <= _WRITTEN_WITHIN)
    else:
        _must(end > start and abs(end - start - elapsed - suspended) <= 1)


def sacct(line: str) -> None:
    cells = line.split("|")
    _must(len(cells) == 13)
    raw, name, cluster, state, submit, start, end, elapsed, suspended, limit, count, nodes, restarts = cells
    _must(re.fullmatch(rf"{_whole(raw, 1)}|\d+(_\d+|\+\d+)", name, re.ASCII) and cluster == "hill")
    _must(restarts == "0")
    if nodes == "None assigned":
        _must(start in ("None", "Unknown") and (state == "PENDING" or re.fullmatch(_ENDED, state)))
        return
    _time(submit)
    is_running = state == "RUNNING"
    _must(is_running or re.fullmatch(_ENDED, state))
    _must((end == "Unknown") == is_running)
    clock = re.fullmatch(r"(?:(\d+)-)?(\d\d):([0-5]\d):([0-5]\d)", suspended, re.ASCII)
    _must(clock)
    assert clock is not None
    stopped = ((int(clock[1] or 0) * 24 + int(clock[2])) * 60 + int(clock[3])) * 60 + int(clock[4])
    _run(_time(start), None if is_running else _time(end), _whole(elapsed), stopped)
    _must(_whole(limit) > 0 and len(_nodes(nodes)) == _whole(count, 1))


def _json(line: str) -> dict[str, object]:
    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        _must(len({key for key, _ in found}) == len(found))
        return dict(found)

    def refuse(_: str) -> None:
        raise _NotThatError

    try:
        value = json.loads(line.strip().removesuffix(","), object_pairs_hook=pairs, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise _NotThatError from None
    _must(isinstance(value, dict))
    return value


def _number(value: object) -> int:
    if isinstance(value, dict):
        _must(value.get("set") is True and value.get("infinite") is False)
        value = value.get("number")
    if isinstance(value, str):
        return _whole(value)
    _must(
        isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) and 0 <= value < 10**12
    )
    return int(value)  # type: ignore[call-overload]


def sacct_json(line: str) -> None:
    job = _json(line)
    times, state, het = job.get("time"), job.get("state"), job.get("het")
    _must(isinstance(times, dict) and isinstance(state, dict) and isinstance(het, dict | None))
    _must(job.get("cluster") == "hill" and job.get("restart_cnt") == 0 and _number(job.get("job_id")) > 0)
    words = state.get("current")
    _must(isinstance(words, list) and len(words) == 1 and isinstance(words[0], str))
    is_running = words[0] == "RUNNING"
    _must(is_running or re.fullmatch(_ENDED, words[0]))
    start, end = _number(times.get("start")), _number(times.get("end"))
    _must(start > 0 and (end == 0) == is_running)
    _run(start - T, None if is_running else end - T, _number(times.get("elapsed")), _number(times.get("suspended")))
    nodes = job.get("nodes")
    _must(isinstance(nodes, str) and len(_nodes(nodes)) == _number(job.get("allocation_nodes")))


_NODE_STATE = re.compile(
    r"(IDLE|DOWN|DRAIN(ED|ING)?|ALLOC(ATED)?|MIX(ED)?|FAIL(ING)?|MAINT|RESERVED|POWERED_DOWN|POWERING_DOWN|UNKNOWN|"
    r"COMP(LETING)?|FUTURE|ERROR|PLANNED|REBOOT)[*~#!%$@^]?(\+(DRAIN|DOWN|POWERED_DOWN|CLOUD))?[*~#!%$@^+\-]?",
    re.ASCII | re.IGNORECASE,
)


_SNAPSHOT_STATE = re.compile(rf"{_NODE_STATE.pattern}|busy|free|offline|off", re.ASCII | re.IGNORECASE)


def node_events(line: str) -> None:
    cells = line.split("|")
    _must(len(cells) >= 7)  # a reason may hold what separates
    _, node, start, end, state = cells[:5]
    _must(len(_nodes(node.strip(" "))) >= 1 and _NODE_STATE.fullmatch(state))
    begin = _time(start)
    _must(end == "Unknown" or _time(end) > begin)


def sinfo(line: str) -> None:
    cells = line.split("|")
    _must(len(cells) == 3 and len(cells[0]) == 10)
    _whole(cells[0], 10**9)
    _must(_nodes(cells[1]) and _NODE_STATE.fullmatch(cells[2]))


def snapshots(line: str) -> None:
    if re.fullmatch(r"(#[ \t]*)?[1-9]\d{8,9}(\.\d{1,6})?[ \t]*", line, re.ASCII):
        return
    cells = re.sub(r"(^|\s)#.*", "", line).replace(",", " ").split()
    _must(2 <= len(cells) <= 3 and _nodes(cells[0]) and _SNAPSHOT_STATE.fullmatch(cells[1]))


# ---- PBS, LSF --------------------------------------------------------------------------------------------------------

_PBS = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d);([A-Z]);(\d+(?:\[\d+\])?\.[a-z]+);(.*)", re.ASCII)


def _pbs(line: str, is_torque: bool) -> None:
    match = _PBS.fullmatch(line)
    _must(match)
    assert match is not None
    stamp = T + _time(f"{match[3]}-{match[1]}-{match[2]}T{match[4]}") + 5 * 3_600
    kind, text = match[5], match[7]
    if kind in "QD" or (kind == "R" and not text):
        _must(re.fullmatch(r"[a-z]*=?[a-z@]*", text))
        return
    _must(kind in "SER")
    pairs = [pair.partition("=") for pair in text.split(" ")]
    _must(
        all(re.fullmatch(r"[A-Za-z_.]+", key) for key, _, _ in pairs)
        and len({key for key, _, _ in pairs}) == len(pairs)
    )
    found = {key: value for key, _, value in pairs}
    times = [_whole(found.get(key)) for key in ("ctime", "qtime", "etime", "start")]
    _must(times == sorted(times) and times[0] > 0)
    if kind == "S":
        _must(abs(stamp - times[-1]) <= 10 and "end" not in found)
    else:
        end = _whole(found.get("end"))
        _must(times[-1] < end and abs(stamp - end) <= 10)
    hosts = []
    for part in found.get("exec_host", "").split("+"):
        host = re.fullmatch(r"([^/]+)/\d[\d,\-]*(\*\d+)?", part, re.ASCII)
        _must(host and _NAME.fullmatch(host[1]))
        assert host is not None
        hosts.append(host[1])
    if is_torque:
        _must(_whole(found.get("unique_node_count")) == len(set(hosts)))
    else:
        nodes = re.findall(r"\(([^():]+)(?:\[\d+\])?:[^()]*\)", found.get("exec_vnode", ""))
        _must("+".join(f"({node}:ncpus=4:mem=9gb)" for node in nodes) == found.get("exec_vnode"))
        _must(set(nodes) == set(hosts))


def pbs_pro(line: str) -> None:
    _pbs(line, is_torque=False)


def torque(line: str) -> None:
    _pbs(line, is_torque=True)


def lsf(line: str) -> None:
    fields = re.findall(r'"(?:[^"]|"")*"|[^ "]+', line)
    _must(" ".join(fields) == line and len(fields) > 6)
    _must(re.fullmatch(r'"\d+\.\d+"', fields[1], re.ASCII))
    when = _whole(fields[2], 1, 10**11)
    if fields[0] == '"HOST_CTRL"':
        _must(_whole(fields[3]) in (1, 2) and len(fields) == 8)
        _must(len(_nodes(fields[4].strip('"'))) == 1)
        return
    _must(fields[0] == '"JOB_FINISH"' and len(fields) > 60)
    _whole(fields[3], 1)
    submit, start = _whole(fields[7], 1), _whole(fields[10])
    _must(start == 0 or submit <= start < when)
    asked = _whole(fields[22])
    count = _whole(fields[23 + asked])
    hosts = fields[24 + asked : 24 + asked + count]
    _must(len(fields) == 24 + asked + count + 37)
    _must(hosts or start == 0)
    for host in hosts:
        name = re.fullmatch(r'"(?:\d+\*)?([^"*]+)"', host, re.ASCII)
        _must(name and len(_nodes(name[1])) == 1)
    after = fields[24 + asked + count :]
    _must(_whole(after[0]) in (1, 4, 32, 64) and re.fullmatch(r"\d+\.\d+", after[1], re.ASCII))
    _must(after[2].startswith('"') and after[3].startswith('"'))
    _whole(after[29])


# ---- Grid Engine -----------------------------------------------------------------------------------------------------

_GRID_ENGINE = re.compile(
    r"all\.q:([^:]+):[^:]*:[^:]*:.*?:([1-9]\d*):[^:]*:-?\d+:(\d+):(\d+):(\d+):\d+:\d+:(\d+(?:\.\d*)?)(?::\d+(?:\.\d*)?){17}"
    r":[^:]*:[^:]*:([^:]*):(\d+):(\d+):[\d.]+:[\d.]+:[\d.]+:.*:[\d.]+:(NONE|1\.[^:]+):[\d.]+:0:0",
    re.ASCII,
)


def grid_engine(line: str) -> None:
    match = _GRID_ENGINE.fullmatch(line)
    _must(match)
    assert match is not None
    host, _, submit, start, end, ran, _, slots, _, task = match.groups()
    _grid_engine_run(host, [_whole(time) for time in (submit, start, end)], _whole(slots), task != "NONE")
    _must(abs(_whole(end) - _whole(start) - float(ran)) <= 2)


def grid_engine_json(line: str) -> None:
    job = _json(line)
    times = [job.get(name) for name in ("submission_time", "start_time", "end_time")]
    _must(all(type(time) is int for time in times) and type(job.get("job_number")) is int)
    _must(isinstance(job.get("hostname"), str) and type(job.get("slots")) is int)
    _grid_engine_run(job["hostname"], times, job["slots"], bool(job.get("pe_taskid")))


def _grid_engine_run(host: str, times: list[int], slots: int, is_task: bool) -> None:
    submit, start, end = times
    _must(submit <= start < end and _nodes(host) == [host])
    _must(slots > 1 or not is_task)


# ---- SWF -------------------------------------------------------------------------------------------------------------

_SWF_NUMBER = re.compile(r"-?\d{1,12}(\.\d*)?", re.ASCII)


def swf(line: str) -> None:
    if line.lstrip().startswith(";"):
        header = re.fullmatch(r"\s*;\s*(UnixStartTime|MaxNodes|MaxProcs)\s*:\s*(\d{1,12})(\D.*)?", line, re.ASCII)
        _must(header or re.fullmatch(r"\s*; Computer: .*", line))
        return
    _swf_fields(line.split())


def _swf_fields(fields: list[str]) -> None:
    _must(len(fields) == 18 and all(_SWF_NUMBER.fullmatch(field) for field in fields[:11]))
    job, submit, wait, run, processors = (float(field) for field in fields[:5])
    _must(submit >= 0 and wait >= 0 and run > 0 and processors >= 1)
    _must(job == int(job) and processors == int(processors) and fields[10] in ("0", "1", "5", "-1"))


def swf_extended(line: str) -> None:
    if line.lstrip().startswith(";"):
        swf(line)
        return
    fields = line.split()
    _must(len(fields) == 21 and re.fullmatch(r"\{\d{1,9}(,\d{1,9})*\}", fields[18], re.ASCII))
    _swf_fields(fields[:18])
    _must(fields[18].count(",") + 1 == int(float(fields[4])))


# ---- tables ----------------------------------------------------------------------------------------------------------


def alcf(line: str) -> None:
    header = SMALL_LOGS["alcf"].text.splitlines()[0]
    cells = _cells(line, header)
    _, job, machine, _, start, end, _, ran, used, where = cells
    _must(machine == "polaris" and _whole(job) > 0)
    _must(re.fullmatch(r"\d+(\.\d+)?", ran, re.ASCII) and re.fullmatch(r"\d+(\.0+)?", used, re.ASCII))
    _run(_time(start), _time(end), float(ran))
    names = where.split(",")
    _must(all(re.fullmatch(r"x\d+c\d+s\d+b\d+n\d+", name, re.ASCII) for name in names))
    _must(len(set(names)) == float(used))


def table(line: str) -> None:
    header = SMALL_LOGS["table"].text.splitlines()[0]
    _, state, start, end, ran, count, nodes = _cells(line, header)
    is_running = state == "RUNNING"
    _must((is_running or state == "COMPLETED") and (end == "") == is_running)
    _must(all(not time or time.endswith("Z") for time in (start, end)) and re.fullmatch(r"\d+(\.\d+)?", ran, re.ASCII))
    _run(_time(start[:-1]), None if is_running else _time(end[:-1]), float(ran))
    printed = re.fullmatch(r'\["([^"]*)"\]', nodes)
    _must(len(_nodes(printed[1] if printed else nodes.strip().replace(", ", ","))) == _whole(count))


# ---- Flux, Batsim ----------------------------------------------------------------------------------------------------


def flux(line: str) -> None:
    job = _json(line)
    names = ("t_submit", "t_depend", "t_run", "t_cleanup", "t_inactive")
    is_over = job.get("state") == "INACTIVE"
    _must(is_over or (job.get("state") == "RUN" and "t_cleanup" not in job and "t_inactive" not in job))
    times = [job.get(name) for name in names[: 5 if is_over else 3]]
    _must(all(isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < 10**11 for time in times))
    _must(times == sorted(times) and isinstance(job.get("id"), int | str) and job["id"] not in (True, False, ""))
    count, nodes, ranks = job.get("nnodes"), job.get("nodelist"), job.get("ranks")
    _must(isinstance(count, int) and isinstance(nodes, str) and isinstance(ranks, str))
    _must(len(_nodes(nodes)) == count == len(_nodes(f"r[{ranks.strip('[]')}]")))


def batsim(line: str) -> None:
    header = SMALL_LOGS["batsim"].text.splitlines()[0]
    cells = dict(zip(header.split(","), _cells(line, header), strict=True))
    names = ("submission_time", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time")
    _must(all(re.fullmatch(r"\d{1,12}(\.\d*)?", cells[name], re.ASCII) for name in names))
    submit, start, ran, end, waited, around = (float(cells[name]) for name in names)
    _must(cells["job_id"] and submit <= start < end)
    for found, expected in ((ran, end - start), (waited, start - submit), (around, end - submit)):
        _must(abs(found - expected) <= 1e-3)
    numbers: set[int] = set()
    for part in cells["allocated_resources"].split(" "):
        ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part, re.ASCII)
        _must(ends)
        assert ends is not None
        numbers.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    _must(numbers and max(numbers) < 6 and len(numbers) == _whole(cells["requested_number_of_resources"]))


GRAMMARS: dict[str, Callable[[str], None]] = {
    "sacct": sacct,
    "sacct-json": sacct_json,
    "node-events": node_events,
    "sinfo": sinfo,
    "snapshots": snapshots,
    "pbs-pro": pbs_pro,
    "torque": torque,
    "lsf": lsf,
    "grid-engine": grid_engine,
    "grid-engine-objects": grid_engine_json,
    "swf": swf,
    "swf-extended": swf_extended,
    "alcf": alcf,
    "table": table,
    "flux": flux,
    "batsim": batsim,
}


def is_well_formed(name: str, line: bytes) -> bool:
    """Return whether a line other than those of the valid log could stand in it."""
    try:
        GRAMMARS[name](line.decode("ascii").removesuffix("\r"))
    except (_NotThatError, UnicodeDecodeError):
        return False
    return True
