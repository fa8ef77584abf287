"""Protocol of a reader of one scheduler's logs, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of readers; each reader uses the ones that its format needs.

    Parameters
    ----------
    timezone
        Zone of local times in the log (IANA name, e.g. ``"Europe/Paris"``), ``None`` if not known.
    dst_fold
        Rule for a local time that occurs twice at the end of summer time and that nothing else resolves:
        ``"reject"``, ``"earlier"`` or ``"later"``.
    n_nodes, procs_per_node
        Nodes of the machine, processors of each, if the log gives only counts.
    columns
        Names of the columns of a table without a header, in order.
    delimiter
        Separator of its columns.
    mapping
        Role -> column name, for tables of any make: ``{"start": "start_time", "elapsed": "dur:min", ...}``; the role
        ``nodes`` may be ``ALL`` in a table of outages.
    time_unit
        Unit of numbers in start and end of such tables: ``"s"``, ``"ms"``, ``"us"``, ``"ns"``.
    time_format
        Format of times in such tables as of ``datetime.strptime``, if not ISO-8601.
    missing_wait_is_zero
        SWF: a job without a waiting time started when it was submitted.
    node_names
        Form of node names in jobs, outages and inventory: ``"as-is"``, ``"short"`` (without the domain),
        ``"lower"`` or ``"short-lower"``. Otherwise a log that spells a node in several ways has several nodes.
    reservations
        State of nodes in reservations other than for maintenance: ``"idle"`` or ``"reserved"``.
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


OF_ALL_LOGS = ("n_nodes", "node_names")
"""Options that every log has a use for."""

FLAGS = {"timezone": "--tz", "n_nodes": "--nodes", "mapping": "--map"}
"""Names of options on the command line, where they differ."""


@dataclass(frozen=True, slots=True)
class Export:
    """Export of a scheduler's log: a shell command for the cluster, and its output."""

    command: str
    gives: str


class LogReader(Protocol):
    """Reader of all kinds of logs of one scheduler into a ``ScheduleRecord``.

    Attributes
    ----------
    name
        Name on the command line: ``"slurm"``.
    title
        Formats, for ``--help`` and messages: ``"Slurm: sacct -P, sacct --json, sacctmgr show event, sinfo"``.
    exports
        Exact commands to run on the cluster, best first.

    A reader may have ``options``, the names of the ``ReadOptions`` that it uses: others are then refused, or, for times
    on a local clock that the log does not have, noted.
    """

    name: str
    title: str
    exports: Sequence[Export]

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like this scheduler's ("line 1 has the columns ..."), ``None`` if it does not.

        Reads ``file.head()`` only. Never raises for other content.
        """

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read ``files`` (one or several, of any kinds, in any order) into ``record``.

        Skipped rows are counted in ``record.report``; memory does not grow with the length of the files.

        Raises
        ------
        InputError
            The files cannot be used; the message names file and line, what was expected, and the fix.
        """
