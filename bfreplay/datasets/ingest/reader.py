"""Protocol of a reader of one scheduler's logs, its options, and the reading of what may be unreadable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bfreplay import checks
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.errors import InputError
from bfreplay.options import CheckedOptions, OneOf, Whole, add_options, option, option_metadata, options_of

if TYPE_CHECKING:  # the options of a command need no numpy
    from bfreplay.datasets.ingest.log_file import LogFile
    from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord


_TABLES = "Tables"
_Value = TypeVar("_Value")
_DST_FOLD = ("reject", "earlier", "later")
_TIME_UNITS = ("s", "ms", "us", "ns")
_NODE_NAMES = ("as-is", "short", "lower", "short-lower")
_RESERVATIONS = ("idle", "reserved")


def _column_names(names_text: str) -> tuple[str, ...]:
    return tuple(column_name.strip() for column_name in names_text.split(","))


def _role_and_column(role_text: str) -> tuple[str, str]:
    role, sign, column_name = role_text.partition("=")
    if not sign or not role.strip() or not column_name.strip():
        raise InputError("--map cannot be read", value=role_text, expected="ROLE=COLUMN, e.g. --map start=start_time")
    return role.strip(), column_name.strip()


def _unchecked(_name: str, value: Any) -> Any:
    """Return the value: readers check it, who know their columns."""
    return value


def _fact(default: _Value, check: Callable[[str, Any], Any], text: str, **attributes: Any) -> _Value:
    return option(default, check, "Facts that the log lacks", text, **attributes)


def _table_option(default: _Value, check: Callable[[str, Any], Any], text: str, **attributes: Any) -> _Value:
    return option(default, check, _TABLES, text, **attributes)


@dataclass(frozen=True, slots=True)
class ReadOptions(CheckedOptions):
    """Options of readers; each reader uses the ones that its format needs."""

    timezone: str | None = _fact(
        None,
        _unchecked,
        "Time zone of local times in all files, e.g. Europe/Paris or UTC.",
        flag="--tz",
        metavar="ZONE",
    )
    dst_fold: str = _fact(
        "reject",
        OneOf(_DST_FOLD),
        "Treatment of local times that occur twice at the end of summer time and stay ambiguous.",
    )
    n_nodes: int | None = _fact(None, Whole(1), "Number of nodes, if the log has only counts.", flag="--nodes")
    procs_per_node: int | None = _fact(None, Whole(1), "Processors per node, if the log counts them.")
    node_names: str = _fact(
        "as-is",
        OneOf(_NODE_NAMES),
        "Node names in all files: as they are, without the domain (cn01.hpc: cn01), in lower case, or both.",
    )
    unit: str = _fact(
        "node",
        OneOf(tuple(UNITS)),
        "What can be idle: whole nodes, or GPUs or cores of nodes that jobs share (with --units).",
    )
    columns: tuple[str, ...] | None = _table_option(
        None,
        _unchecked,
        "Column names of a log without a header line, in order.",
        metavar="NAME,...",
        parse=_column_names,
    )
    delimiter: str | None = _table_option(None, _unchecked, "Column separator.", metavar="CHARACTER")
    mapping: Mapping[str, str] = field(
        default_factory=dict,
        metadata=option_metadata(
            _unchecked,
            _TABLES,
            "For 'table': column of a role (start, end, nodes, node_count, job, ...), which may have a unit: "
            "elapsed=dur:min; repeatable.",
            default={},
            flag="--map",
            metavar="ROLE=COLUMN[:UNIT]",
            parse=_role_and_column,
            is_mapping=True,
        ),
    )
    time_unit: str = _table_option("s", OneOf(_TIME_UNITS), "Unit of numbers in a table's start and end.")
    time_format: str | None = _table_option(
        None, _unchecked, "Format of times in a table, e.g. '%d.%m.%Y %H:%M:%S'.", metavar="FORMAT"
    )
    missing_wait_is_zero: bool = _fact(False, checks.truth, "SWF: a job without a waiting time did not wait.")
    states: str | None = _fact(
        None,
        _unchecked,
        "For 'snapshots': the table of states, from the words of a scheduler to those of a log, edited.",
        metavar="FILE",
    )
    reservations: str = _fact("idle", OneOf(_RESERVATIONS), "State of reserved nodes, other than for maintenance.")


ReadOptions.__doc__ = add_options(ReadOptions.__doc__, options_of(ReadOptions))

OF_ALL_LOGS = ("n_nodes", "node_names")
"""Options that every log has a use for."""


def or_none(read: Callable[..., _Value], *arguments: Any, **options: Any) -> _Value | None:
    """Return what ``read`` makes of its arguments, ``None`` if it cannot read them (``ValueError``)."""
    try:
        return read(*arguments, **options)
    except ValueError:
        return None


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
