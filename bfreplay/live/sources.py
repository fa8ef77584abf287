"""Sources of node states: Slurm's commands, a command of the site, and a log that another program extends."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

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


def run_command(words: Sequence[str], timeout_s: float, environment: Mapping[str, str] | None = None) -> str:
    """Return what a command prints.

    Raises
    ------
    NoAnswerError
        It fails, takes too long, or prints what is not UTF-8.
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
        raise NoAnswerError(f"{shown}: {error.strerror}") from error
    is_answered = False
    with process:
        try:
            output, complaint = process.communicate(timeout=timeout_s)
            is_answered = True
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"{shown}: no answer within {timeout_s:g} s") from error
        finally:
            if not is_answered:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        lines = complaint.decode(errors="replace").strip().splitlines()
        said = printable(lines[-1][:200]) if lines else f"exit code {process.returncode}"
        raise NoAnswerError(f"{shown}: {said}")
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        raise NoAnswerError(f"{shown}: its output is not UTF-8") from error


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
                lines = run_command(words, 10 * self._timeout_s, _ACCOUNTING_TIMES).splitlines(keepends=True)
                if self._lends and lines and name == "jobs.psv":
                    place = lines[0].split("|").index("Partition")
                    lines = [line for line in lines if line.split("|")[place] not in self._lends]
                if len(lines) > 1:  # a header alone is no log
                    files.append(Path(folder, name))
                    files[-1].write_text("".join(lines), encoding="utf-8")
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
        raise NoAnswerError(f"the answer cannot be read: {error.problem}") from error
