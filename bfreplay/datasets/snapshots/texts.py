"""SnapshotReader: the texts that schedulers print about nodes and jobs, to readings of them.

Recognised by their content: ``scontrol show node`` (with and without ``-o``), ``sinfo --json``, ``scontrol show node
--json``, ``pbsnodes -a`` (text, and ``-F json``), and lines ``node state [since]``. A text is read whole, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any, NamedTuple, TypeAlias

from bfreplay.checks import is_name
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.readings import JobReading, NodeReading
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.datasets.times import US, in_calendar, microseconds_of, parse_time_us
from bfreplay.documents import parse_json
from bfreplay.errors import InputError

NODES_COMMAND = ("scontrol", "show", "node", "-o")
_ON_NODES = "R,CG,CF,S,CD,CA,F,TO,NF,PR,OOM,BF,DL,SO,SI,ST"
"""States of jobs that are on nodes, or were just now; those that wait are many."""
JOBS_COMMAND = ("squeue", "-h", "-a", "-t", _ON_NODES, "-o", "%A|%P|%T|%S|%e|%N")
"""Commands of Slurm that a poll runs, with ``SLURM_TIME_FORMAT=%s`` in their environment: then times have no zone."""

SCONTROL, SLURM_JSON, PBSNODES, PBS_JSON = "scontrol show node", "sinfo --json", "pbsnodes -a", "pbsnodes -a -F json"
LINES = "lines of node and state"

_IDLE_OR_KEPT = (NodeState.IDLE, NodeState.PLANNED, NodeState.RESERVED, NodeState.MAINTENANCE, NodeState.DRAIN)
"""States that may have begun when the node was last busy."""
_NO_END_YET = frozenset(["RUNNING", "SUSPENDED", "CONFIGURING", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"])
_FIRST_SLURM_NODE = re.compile(r"\s*NodeName=", re.ASCII)
_COMMENT = re.compile(r"(?:^|\s)#.*")  # not alloc#, which is a state
_JOINED = re.compile(r"#[ \t]*[1-9]\d{8,9}[A-Za-z]", re.ASCII)
_JSON_NODES = re.compile(r'"(nodes|sinfo|jobs|Jobs)"\s*:\s*([\[{])')
_FIRST_PBS_NODE = re.compile(r"\s*\S+[ \t]*\n[ \t]+(?:Mom|ntype|state|np|power_state) = ", re.ASCII)
_SLURM_NODE = re.compile(
    r"(\S+)\s.*?\sState=(\S+)(?:.*?\sPartitions=(\S*))?(?:.*?\sLastBusyTime=(\S+))?", re.ASCII | re.DOTALL
)
_SLURM_FIELD = re.compile(r"(?<!\S)(Gres|CPUEfctv|CPUTot|CfgTRES|Partitions)=(\S*)", re.ASCII)
_LONGEST_SHOWN = 120

Nodes: TypeAlias = dict[str, NodeReading]


class _Entry(NamedTuple):
    """Node as a text has it; ``is_last_busy``: the time is when it was last busy, not since when it has its state."""

    node: str
    raw: str
    since_us: int | None = None
    partitions: tuple[str, ...] = ()
    reason: str = ""
    is_last_busy: bool = False


class _TextError(ValueError):
    """A text is no snapshot: problem, value, and place such as ``"line 7"``."""

    def __init__(self, problem: str, value: object = "", place: str | None = None) -> None:
        super().__init__(problem)
        self.value, self.place = value, place


class SnapshotReader:
    """Reader of the texts of polls, one after the other; lines equal to those of the last poll are not read again.

    Parameters
    ----------
    states
        Table of states; ``None``: the default.
    zone
        Zone of local times; ``None``: local times are not used.
    """

    def __init__(self, states: StateTable | None = None, zone: tzinfo | None = None) -> None:
        self.states = StateTable.default() if states is None else states
        self._zone = zone
        self._slurm_nodes: dict[str, tuple[str, NodeReading]] = {}
        self._jobs: dict[str, JobReading] = {}

    def nodes(self, text: str, source: str | None = None) -> Nodes:
        """Return the readings of all nodes in the output of a command.

        Parameters
        ----------
        source
            File or command, for messages.

        Raises
        ------
        InputError
            The text is cut, is no snapshot, or has two states of one node.
        """
        kind = kind_of(text) or LINES
        try:
            nodes = self._nodes(text, kind)
            if not nodes or (kind == LINES and all(reading.state == NodeState.UNKNOWN for reading in nodes.values())):
                raise _TextError("no node of it has a known state", text)
        except _TextError as error:
            expected = f"the whole output of {kind}" if kind != LINES else f"{SCONTROL}, {SLURM_JSON}, ..., or {LINES}"
            raise _refusal(error, source, expected) from None
        return nodes

    def jobs(self, text: str, source: str | None = None) -> tuple[JobReading, ...]:
        """Return the jobs on nodes in the output of ``JOBS_COMMAND``.

        Raises
        ------
        InputError
            The text is cut, or a line is not of this form.
        """
        jobs: dict[str, JobReading] = {}
        try:
            for place, line in _lines(text):
                jobs[line] = self._jobs.get(line) or self._job(line, place)
        except _TextError as error:
            raise _refusal(error, source, "the output of " + " ".join(JOBS_COMMAND)) from None
        self._jobs = jobs
        return tuple(job for job in jobs.values() if job.nodes)

    def _nodes(self, text: str, kind: str) -> Nodes:
        nodes: Nodes = {}
        if kind == SCONTROL:
            self._read_slurm_nodes(text, nodes)
            return nodes
        read = _line_entries if kind == LINES else _pbs_entries if kind == PBSNODES else _json_entries
        for entry in read(text):
            _add(nodes, entry.node, self._reading(entry))
        return nodes

    def _read_slurm_nodes(self, text: str, nodes: Nodes) -> None:
        """Read ``scontrol show node``, on one line a node or several; a reason may have line ends too."""
        records: dict[str, tuple[str, NodeReading]] = {}
        for number, record in enumerate(_slurm_records(text), start=1):
            node, reading = records[record] = self._slurm_nodes.get(record) or self._slurm_node(record, number)
            _add(nodes, node, reading)
        self._slurm_nodes = records

    def _slurm_node(self, record: str, number: int) -> tuple[str, NodeReading]:
        fields, _, reason = record.partition(" Reason=")
        match = _SLURM_NODE.match(fields)
        if match is None:
            raise _TextError("a node has no state", f"NodeName={record}", f"node {number}")
        since_us, partitions = self._time_us(match[4]), _names(match[3] or "")
        entry = _Entry(match[1], match[2], since_us, partitions, " ".join(reason.split()), is_last_busy=True)
        return match[1], self._reading(entry)

    def _reading(self, entry: _Entry) -> NodeReading:
        state, free = self.states.state_of(entry.raw), self.states.state_without_jobs(entry.raw)
        state, free = NodeState.UNKNOWN if state is None else state, NodeState.UNKNOWN if free is None else free
        since_us = None if entry.is_last_busy and state not in _IDLE_OR_KEPT else entry.since_us
        return NodeReading(entry.raw, state, since_us, entry.partitions, entry.reason, free)

    def _job(self, line: str, place: str) -> JobReading:
        cells = line.split("|")
        if len(cells) != 6 or not cells[0][:1].isdigit():
            raise _TextError("this is no job of squeue", line, place)
        job_id, partition, state, start, end, node_list = cells
        try:
            nodes = expand_nodes(node_list)
        except ValueError as error:
            raise _TextError(f"the nodes of a job cannot be read: {error}", line, place) from None
        end_us = None if state in _NO_END_YET else self._time_us(end)  # that of a running job is expected
        start_us = None if state == "CONFIGURING" else self._time_us(start)  # it starts when its nodes are up
        return JobReading(job_id, partition, state, start_us, end_us, nodes)

    def _time_us(self, text: str | None) -> int | None:
        """Return a time of Slurm's, in seconds or local; ``None`` for none, or a local one if no zone is known."""
        if text is None or not text[:1].isdigit():
            return None
        if text.isdigit():
            return _seconds_us(int(text))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        if moment.tzinfo is None and self._zone is None:
            return None
        return microseconds_of(moment if moment.tzinfo else moment.replace(tzinfo=self._zone))


def kind_of(text: str) -> str | None:
    """Return the command whose output a text is, from its beginning; ``None`` for lines and anything else."""
    if _FIRST_SLURM_NODE.match(text):
        return SCONTROL
    if text.lstrip()[:1] == "{":
        match = _JSON_NODES.search(text)
        return None if match is None or match[1].lower() == "jobs" else SLURM_JSON if match[2] == "[" else PBS_JSON
    return PBSNODES if _FIRST_PBS_NODE.match(text) else None


def slurm_node_fields(text: str, source: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the nodes in ``scontrol show node``, each with its fields about GPUs, cores and partitions.

    Raises
    ------
    InputError
        The text is cut.
    """
    try:
        for record in _slurm_records(text):
            name, _, fields = record.partition(" Reason=")[0].partition(" ")
            yield name.strip(), dict(reversed(_SLURM_FIELD.findall(fields)))  # a comment may repeat one, later
    except _TextError as error:
        raise _refusal(error, source, f"the whole output of {SCONTROL}") from None


def _slurm_records(text: str) -> list[str]:
    if not text.endswith("\n"):
        raise _TextError("the text is cut: its last line has no end", text[-_LONGEST_SHOWN:])
    return text.split("NodeName=", 1)[1].split("\nNodeName=")


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield place and text of the lines that are not blank; the last one has to have its end."""
    lines = text.split("\n")
    if lines[-1]:
        raise _TextError("the text is cut: its last line has no end", lines[-1], f"line {len(lines)}")
    return ((f"line {number}", line) for number, line in enumerate(lines, start=1) if line and not line.isspace())


def _add(nodes: Nodes, node: str, reading: NodeReading) -> None:
    """Add a reading; a node may stand in a text again, with another partition, but in the same state."""
    if not is_name(node):
        raise _TextError("a node cannot have this name", node)
    other = nodes.setdefault(node, reading)
    if other is not reading:
        if other.state != reading.state:
            raise _TextError(f"the node {node} is twice in it, in two states", f"{other.raw}, {reading.raw}")
        partitions = tuple(dict.fromkeys(other.partitions + reading.partitions))
        nodes[node] = NodeReading(other.raw, other.state, other.since_us, partitions, other.reason, other.without_jobs)


def _line_entries(text: str) -> Iterator[_Entry]:
    """Read lines ``node state [since]``: nodes are names or lists, ``since`` is in seconds or ISO-8601 (UTC)."""
    for place, line in _lines(text):
        if _JOINED.match(line):
            raise _TextError("a time and a node stand on one line", line, place)
        line = _COMMENT.sub("", line).strip()
        words = [word.strip(",") for word in line.split()] if len(line.split()) > 1 else line.split(",")
        if not line or (place == "line 1" and words[1:2] and words[1].lower() == "state"):
            continue
        try:
            if not 2 <= len(words) <= 3 or not all(words):
                raise ValueError("not two or three words")
            nodes, since_us = expand_nodes(words[0]), parse_time_us(words[2]) if words[2:] else None
        except ValueError as error:
            raise _TextError(f"this is no line of a node and its state: {error}", line, place) from None
        for node in nodes:
            yield _Entry(node, words[1], since_us)


def _pbs_entries(text: str) -> Iterator[_Entry]:
    """Read ``pbsnodes -a``: a line with the name of each node, and lines ``key = value`` below it."""
    records: list[tuple[str, str, dict[str, str]]] = []
    for place, line in _lines(text):
        key, sign, value = line.partition(" = ")
        if not line[0].isspace():
            records.append((line.strip(), place, {}))
        elif sign and records:
            records[-1][2][key.strip()] = value.strip()
    for node, place, values in records:
        if "state" not in values:
            raise _TextError("a node has no state: is the text cut?", node, place)
        has_jobs = bool(values.get("jobs"))
        queue, reason = _names(values.get("queue", "")), values.get("comment", values.get("note", ""))
        yield _Entry(node, _pbs_state(values["state"], has_jobs), None, queue, reason)


def _pbs_state(raw: str, has_jobs: bool) -> str:
    return f"{raw},has-jobs" if has_jobs else raw


def _json_entries(text: str) -> Iterator[_Entry]:
    """Read the nodes of Slurm's or PBS's JSON; numbers are plain, or ``{"set", "infinite", "number"}``."""
    try:
        document = parse_json(text)
        nodes = document.get("nodes") or document["sinfo"]
        if isinstance(nodes, dict):
            for node, values in nodes.items():
                raw = _pbs_state(values["state"], bool(values.get("jobs")))
                since_us = _seconds_us(values.get("last_state_change_time"))
                queue, reason = _names(str(values.get("queue", ""))), str(values.get("comment", ""))
                yield _Entry(node, raw, None if raw != values["state"] else since_us, queue, reason)
            return
        for values in nodes:
            yield from _slurm_json_entries(values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, _TextError):
            raise
        raise _TextError(f"this JSON cannot be read: {error!r}", text) from None


def _slurm_json_entries(values: Any) -> Iterator[_Entry]:
    """Read a node of ``scontrol show node --json`` and older ``sinfo --json``, or the nodes of a row of newer ones."""
    details = values.get("node", values)
    state = details["state"]
    raw = "+".join([state] if isinstance(state, str) else state)
    raw = "+".join([raw, *values.get("state_flags", ())]).upper()
    since_us, reason = _seconds_us(values.get("last_busy")), values.get("reason") or ""
    if details is values:
        names, partitions = [values["name"]], tuple(values.get("partitions") or ())
    else:
        names, partitions = values["nodes"]["nodes"], (values["partition"]["name"],)
    for name in names:
        for node in expand_nodes(name):
            yield _Entry(node, raw, since_us, partitions, reason if isinstance(reason, str) else "", is_last_busy=True)


def _seconds_us(seconds: Any) -> int | None:
    """Return the microseconds of a count of seconds; ``None`` for none."""
    if isinstance(seconds, dict):
        seconds = seconds.get("number")
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
        return None
    return seconds * US if in_calendar(seconds * US) else None


def _names(list_text: str) -> tuple[str, ...]:
    return tuple(filter(None, list_text.split(",")))


def _refusal(error: _TextError, source: str | None, expected: str) -> InputError:
    value = str(error.value)
    return InputError(
        f"this is no snapshot: {error}",
        file=source,
        row=error.place,
        value=value if len(value) <= _LONGEST_SHOWN else value[: _LONGEST_SHOWN - 3] + "...",
        expected=expected,
        fix="see what the command printed; a poll that is not whole is not used",
    )
