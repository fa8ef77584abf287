"""Sources of node states: Slurm's commands, a command of the site, and a log that another program extends."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from tempfile import TemporaryDirectory
from time import monotonic

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.sacct import SACCT_COLUMNS
from bfreplay.datasets.snapshots.readings import Snapshot
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.datasets.snapshots.texts import JOBS_COMMAND, NODES_COMMAND, SCONTROL, SnapshotReader, kind_of
from bfreplay.datasets.times import DAY_US, US, iso_utc
from bfreplay.errors import BfreplayError, InputError, printable

Clock = Callable[[], int]
"""Returns the time in microseconds since 1970 UTC."""


class NoAnswerError(BfreplayError):
    """A poll was not answered, or with nonsense: the states of now are not known."""


class StateSource(ABC):
    """Source of the states of all nodes; without a name of the cluster, and without accounting, by default.

    Attributes
    ----------
    name
        Name in messages and in the log: ``"slurm"``.
    strange_words
        Words of states that the table of states does not have, and a state with each.
    """

    name: str
    strange_words: Mapping[str, str] = {}

    def cluster(self) -> str | None:
        """Return the name of the cluster, ``None`` if it has none."""
        return None

    @abstractmethod
    def poll(self) -> Snapshot:
        """Return the states of now; ``NoAnswerError`` where they are not known."""

    def accounted(self, start_us: int, end_us: int, nodes: Sequence[str]) -> NodeEvents | None:
        """Return the states of ``nodes`` in a time that nobody polled, from accounting; ``None`` without it.

        Raises
        ------
        NoAnswerError, InputError
            There is accounting, and it cannot be read.
        """
        return None


_LONGEST_ANSWER = 2**28
"""Largest answer to a poll, in bytes: that of 400,000 nodes."""
_LONGEST_ACCOUNTING = 2**30
_PIECE = 2**16


def run_command(
    words: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    longest: int = _LONGEST_ANSWER,
) -> str:
    """Return what a command prints.

    Raises
    ------
    NoAnswerError
        It fails, takes too long, or prints too much, or what is not UTF-8.
    """
    shown = " ".join(words)[:100]
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else {**os.environ, **environment},
            start_new_session=True,  # a command that hangs is ended with all that it started
        )
    except OSError as error:
        reason = "there is no such command here" if isinstance(error, FileNotFoundError) else error.strerror
        raise NoAnswerError(f"{shown}: {reason}") from error
    with process:
        try:
            output, complaint = _read_streams(process, monotonic() + timeout_s, longest)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the command may have ended, and what it started not
            if isinstance(error, TimeoutError):
                raise NoAnswerError(f"{shown}: no answer within {timeout_s:g} s") from None
            if isinstance(error, OverflowError):
                raise NoAnswerError(f"{shown}: it prints more than {longest / 2**20:g} MiB") from None
            raise
    if process.returncode:
        lines = complaint.decode(errors="replace").strip().splitlines()
        said = printable(lines[-1][:200]) if lines else f"exit code {process.returncode}"
        raise NoAnswerError(f"{shown}: {said}")
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        raise NoAnswerError(f"{shown}: its output is not UTF-8") from error


def _read_streams(process: subprocess.Popen[bytes], end_s: float, longest: int) -> tuple[bytearray, bytearray]:
    """Return what a process prints until it ends; ``TimeoutError`` and ``OverflowError`` where that is too much."""
    output, complaint = bytearray(), bytearray()
    with DefaultSelector() as selector:
        for stream, text in ((process.stdout, output), (process.stderr, complaint)):
            assert stream is not None
            selector.register(stream, EVENT_READ, text)
        while selector.get_map():
            ready = selector.select(max(end_s - monotonic(), 0.0))
            if monotonic() >= end_s:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fileobj)
                key.data.extend(piece)
                if len(key.data) > longest:
                    raise OverflowError
    try:
        process.wait(max(end_s - monotonic(), 0.0))
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    return output, complaint


_SLURM_TIMES = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC"}
_ACCOUNTING_TIMES = {"SLURM_TIME_FORMAT": "standard", "TZ": "UTC"}  # not as the user may have set it


class SlurmSource(StateSource):
    """``scontrol show node`` and ``squeue``, one call of each a poll, as an ordinary user.

    Parameters
    ----------
    table
        States of nodes by Slurm's words.
    timeout_s
        Longest time that a command may take.
    clock
        Time of a poll.
    lends
        Partitions whose jobs do not make a node busy, in accounting too.
    """

    name = "slurm"

    def __init__(self, table: StateTable, timeout_s: float, clock: Clock, lends: Collection[str] = ()) -> None:
        self._reader, self._timeout_s, self._clock = SnapshotReader(table), timeout_s, clock
        self._lends, self.strange_words = frozenset(lends), table.strange_words

    def cluster(self) -> str | None:
        """Return ``ClusterName`` of the configuration."""
        for line in run_command(["scontrol", "show", "config"], self._timeout_s).splitlines():
            name, sign, value = line.partition("=")
            if sign and name.strip() == "ClusterName":
                return value.strip() or None
        return None

    def poll(self) -> Snapshot:
        """Return the nodes, and the jobs that are or were just now on them."""
        # jobs first: a job that starts between the two calls is then on nodes that are still seen idle, not the reverse
        job_text = run_command(JOBS_COMMAND, self._timeout_s, _SLURM_TIMES)
        node_text = run_command(NODES_COMMAND, self._timeout_s, _SLURM_TIMES)
        time_us = self._clock()
        if kind_of(node_text) != SCONTROL:  # an error message may look like a line of a node and its state
            raise NoAnswerError(f"{' '.join(NODES_COMMAND)}: {printable(node_text[:200].strip()) or 'nothing printed'}")
        return _answer(lambda: Snapshot(time_us, self._reader.nodes(node_text), self._reader.jobs(job_text)))

    def accounted(self, start_us: int, end_us: int, nodes: Sequence[str]) -> NodeEvents | None:
        """Return the states by ``sacct``, ``sacctmgr show event`` and ``show reservation``."""
        # a day more, so that there are jobs: a log without any is refused
        first, last = (iso_utc(time_us)[:19] for time_us in (start_us - DAY_US, end_us + US))
        known = run_command(["sacct", "-e"], self._timeout_s).lower().split()
        columns = ",".join(name for name in SACCT_COLUMNS if name.lower() in known)
        events = ["Cluster", "NodeName", "Start", "End", "State", "Reason", "User"]
        reservations = ["Cluster", "Name", "Start", "End", "NodeNames", "Flags"]
        commands = {
            "jobs.psv": ["sacct", "-a", "-X", "-D", "-P", "-S", first, "-E", last, "-o", columns],
            "outages.psv": _sacctmgr("event", events, first, last),
            "reservations.psv": _sacctmgr("reservation", reservations, first, last),
        }
        with TemporaryDirectory(prefix="bfreplay-gap") as folder:
            files = []
            for name, words in commands.items():
                text = run_command(words, 10 * self._timeout_s, _ACCOUNTING_TIMES, _LONGEST_ACCOUNTING)
                if name == "jobs.psv":
                    text = _without_partitions(text, self._lends)
                if len(text.splitlines()) > 1:  # a header alone is no log
                    files.append(Path(folder, name))
                    files[-1].write_text(text, encoding="utf-8")
                elif name == "jobs.psv":
                    raise NoAnswerError("sacct shows no jobs: there are none, or others' jobs are hidden")
            inventory = Path(folder, "nodes")
            inventory.write_text("".join(f"{node}\n" for node in nodes), encoding="utf-8")
            rules = OccupancyRules(
                window=(start_us, end_us),
                log_end_us=end_us,
                min_gap_s=0.0,
                empty_machine="idle",
                absent_after_s=1e9 - 1,
            )
            options = ReadOptions(timezone="UTC", reservations="reserved")
            read = read_log(files, "slurm", options, inventory=inventory, inventory_only=True)
            return read.build(rules).events


def _without_partitions(table: str, partitions: frozenset[str]) -> str:
    """Return the rows of ``sacct -P`` without the jobs of some partitions."""
    head, *rows = table.splitlines() or [""]
    names = head.split("|")
    if "Partition" not in names:
        return table
    column = names.index("Partition")
    kept = (row for row in rows if not partitions.intersection(row.split("|")[column : column + 1]))
    return "".join(f"{row}\n" for row in (head, *kept))


def _sacctmgr(entity: str, columns: Sequence[str], first: str, last: str) -> list[str]:
    span = [f"Start={first}", f"End={last}"]
    return [
        "sacctmgr",
        "-P",
        "show",
        entity,
        *(["All_Time"] * (entity == "event")),
        *span,
        f"format={','.join(columns)}",
    ]


class CommandSource(StateSource):
    """Command of the site that prints the state of every node, in any form that snapshots are read in."""

    name = "command"

    def __init__(self, words: Sequence[str], table: StateTable, timeout_s: float, clock: Clock) -> None:
        self._words, self._reader = list(words), SnapshotReader(table)
        self._timeout_s, self._clock, self.strange_words = timeout_s, clock, table.strange_words

    def poll(self) -> Snapshot:
        """Return the states that the command prints."""
        text = run_command(self._words, self._timeout_s)
        time_us = self._clock()
        return _answer(lambda: Snapshot(time_us, self._reader.nodes(text)))


def _answer(read: Callable[[], Snapshot]) -> Snapshot:
    try:
        return read()
    except InputError as error:
        place = "" if error.row is None else f", {error.row}: {error.value}"
        raise NoAnswerError(f"the answer cannot be read: {error.problem}{place}") from error
