"""From a scheduler's log files to node events in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.occupancy.build import BuiltLog, build_events
from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.rules import OccupancyRules
from bfreplay.datasets.scheduler_logs.catalogue import AUTO, reader_named, recognised, refuse_events
from bfreplay.datasets.scheduler_logs.inventory_file import read_inventory
from bfreplay.datasets.scheduler_logs.log_file import OpenedLog
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.errors import InputError

Progress = Callable[[int, int], None]
"""Told bytes read so far, and bytes in all."""


@dataclass(frozen=True, slots=True)
class ReadLog:
    """A scheduler's log after reading, before rules are applied: the same log under several rules is read once.

    Attributes
    ----------
    record
        Intervals and inventory.
    reader
        Name of the reader.
    sources
        Files that were read.
    why
        For ``auto``: why each file was taken for what it was.
    """

    record: ScheduleRecord
    reader: str
    sources: tuple[SourceFile, ...]
    why: tuple[str, ...]

    @property
    def is_assigned(self) -> bool:
        """Whether nodes have to be chosen by rule, since the log has only numbers of them."""
        return self.record.n_counted > 0

    def built(self, rules: OccupancyRules | None = None) -> BuiltLog:
        """Node events under ``rules``; see ``build_events``."""
        return build_events(self.record, rules, self.sources)


def read_log(
    paths: Sequence[Path | str],
    reader: str = AUTO,
    options: ReadOptions | None = None,
    *,
    inventory: Path | None = None,
    progress: Progress | None = None,
) -> ReadLog:
    """Read the files of one scheduler's log.

    Parameters
    ----------
    paths
        Files, folders (the files in them) and tar archives, plain or compressed, in any order.
    reader
        ``"slurm"``, ``"pbs"``, ...; ``"auto"`` looks at the files; or ``package.module:Class`` of your own.
    options
        What the log does not say.
    inventory
        A file with the names of all nodes, used or not.
    progress
        Called with bytes read and bytes in all.

    Raises
    ------
    InputError
        A file cannot be used; the message says where and how to go on.
    """
    if not paths:
        raise InputError("there is no file to read", expected="at least one file")
    options = ReadOptions() if options is None else options
    done, total = 0, 0

    def count(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        if progress is not None:
            progress(min(done, total), total)

    record = ScheduleRecord()
    if inventory is not None:
        record.give_inventory(read_inventory(inventory))
    if options.n_nodes is not None:
        record.set_machine_size(options.n_nodes)
    with OpenedLog([Path(path) for path in paths], count) as opened:
        total = opened.n_bytes
        for file in opened.files:
            refuse_events(file)
        if reader == AUTO:
            chosen, why = recognised(opened.files)
            record.lint.facts["recognised"] = why
        else:
            chosen, why = reader_named(reader), []
        chosen.read(opened.files, record, options)
        sources = opened.sources
    if inventory is not None:
        sources = (*sources, SourceFile.of(inventory))
    return ReadLog(record, chosen.name, sources, tuple(why))


def ingest(
    paths: Sequence[Path | str],
    reader: str = AUTO,
    options: ReadOptions | None = None,
    rules: OccupancyRules | None = None,
    *,
    inventory: Path | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> tuple[NodeEvents, Lint]:
    """Read a scheduler's log and make node events of it, with the report of what was kept and what not.

    Parameters
    ----------
    paths, reader, options, inventory, progress
        As ``read_log``.
    rules
        How intervals become states; ``None``: the defaults.
    strict
        Refuse a log that leaves doubts.

    Raises
    ------
    InputError
        A file cannot be used, or (``strict``) there are doubts.
    """
    built = read_log(paths, reader, options, inventory=inventory, progress=progress).built(rules)
    if strict:
        built.lint.refuse_doubts()
    return built.events, built.lint


def each_assignment(rules: OccupancyRules, names: Sequence[str]) -> list[OccupancyRules]:
    """Return the same rules with each rule of assignment."""
    return [replace(rules, assignment=name) for name in names]
