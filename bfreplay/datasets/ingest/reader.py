"""What a reader of one scheduler's logs is, and the options that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of readers; each reader uses those that its format needs.

    Parameters
    ----------
    timezone
        Zone of local times in the log (IANA name, e.g. ``"Europe/Paris"``), ``None`` when nobody said.
    dst_fold
        What to make of a local time that occurs twice when summer time ends and that nothing else settles:
        ``"reject"``, ``"earlier"`` or ``"later"``.
    n_nodes, procs_per_node
        Nodes of the machine, processors of each, where the log gives only counts.
    columns
        Names of the columns of a table without a header, in order.
    delimiter
        What separates its columns.
    mapping
        Role -> column name, for tables of any make: ``{"start": "start_time", "elapsed": "dur:min", ...}``; the role
        ``nodes`` may be ``ALL`` in a table of outages.
    time_unit
        Of numbers in start and end of such tables: ``"s"``, ``"ms"``, ``"us"``, ``"ns"``.
    time_format
        How times in such tables are written, in the terms of ``datetime.strptime``, where they are not ISO-8601.
    missing_wait_is_zero
        SWF: a job without a waiting time started when it was submitted.
    node_names
        How names of nodes are read, in jobs, outages and inventory: ``"as-is"``, ``"short"`` (without the domain),
        ``"lower"`` or ``"short-lower"``. A log that spells nodes in several ways has them several times otherwise.
    reservations
        Whether reservations other than for maintenance take nodes away: ``"idle"`` (no) or ``"reserved"`` (yes).
    """

    timezone: str | None = None
    dst_fold: str = "reject"
    n_nodes: int | None = None
    procs_per_node: int | None = None
    columns: tuple[str, ...] | None = None
    delimiter: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    time_unit: str = "s"
    time_format: str | None = None
    missing_wait_is_zero: bool = False
    node_names: str = "as-is"
    reservations: str = "idle"


@dataclass(frozen=True, slots=True)
class Export:
    """How to get the log out of a scheduler: a command for a shell on the cluster, and what it gives."""

    command: str
    gives: str


class LogReader(Protocol):
    """Reads the logs of one scheduler, of all kinds that it writes, into a ``ScheduleRecord``.

    Attributes
    ----------
    name
        What a user types: ``"slurm"``.
    title
        What it reads, for ``--help`` and messages: ``"Slurm: sacct -P, sacct --json, sacctmgr show event, sinfo"``.
    exports
        The exact commands to run on the cluster, best first.

    A reader of a format without local times may have ``reads_local_times = False``: the report then says that ``--tz``
    has no effect.
    """

    name: str
    title: str
    exports: Sequence[Export]

    def recognise(self, file: LogFile) -> str | None:
        """Say why ``file`` looks like one of this scheduler's ("line 1 has the columns ..."), ``None`` if it does not.

        Looks at ``file.head()`` only. Never raises for content that is something else.
        """

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read ``files`` (one or several, of any kinds that the scheduler writes, in any order) into ``record``.

        What can be skipped is counted in ``record.report``; memory does not grow with the length of the files.

        Raises
        ------
        InputError
            The files cannot be used, naming file and line, what was expected, and how to go on.
        """
