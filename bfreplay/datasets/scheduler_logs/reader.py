"""What a reader of one scheduler's logs is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.options import ReadOptions


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
        ...

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read ``files`` (one or several, of any kinds that the scheduler writes, in any order) into ``record``.

        What can be skipped is counted in ``record.lint``; memory does not grow with the length of the files.

        Raises
        ------
        InputError
            The files cannot be used, naming file and line, what was expected, and how to go on.
        """
        ...
