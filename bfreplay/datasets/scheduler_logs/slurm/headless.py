"""Rows of ``sacct -n``: no header names their columns, but their shape does, if it is that of a known command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.slurm.fields import (
    ABSENT_TIMES,
    JobStepError,
    duration_us,
    is_known_state,
    job_identity,
    job_state,
    whole,
)
from bfreplay.datasets.scheduler_logs.slurm.psv import Layout

COLUMNS = (
    "JobIDRaw", "JobID", "Cluster", "Partition", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw",
    "Suspended", "TimelimitRaw", "NNodes", "NodeList", "Reservation", "Restarts",
)  # fmt: skip
"""The columns of the command that the messages give."""

XDMOD_COLUMNS = (
    "JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit", "Eligible",
    "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES",
    "Timelimit", "NodeList", "JobName",
)  # fmt: skip
"""The columns that XDMoD has sites export without a header, in UTC."""

_HEAD_ROWS = 200


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Columns that rows have by their shape.

    Attributes
    ----------
    columns
        As ``sacct`` calls them.
    command
        Whose they are, for the report.
    is_utc
        Whether that command is known to write UTC.
    """

    columns: tuple[str, ...]
    command: str
    is_utc: bool = False


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in COLUMNS if name not in names)


_OWN = "the export command of `bfreplay ingest slurm --how`, run with -n"
_KNOWN = (
    KnownRows(XDMOD_COLUMNS, "what XDMoD has sites export with sacct -n", is_utc=True),
    KnownRows(COLUMNS, _OWN),
    KnownRows(_without("Suspended"), _OWN),
    KnownRows(_without("JobID"), _OWN),
    KnownRows(_without("JobID", "Suspended"), _OWN),
)


def known_rows(file: LogFile) -> tuple[Layout, KnownRows] | None:
    """Layout of rows without a header, if more than half of the first ones have a known shape; ``None`` otherwise."""
    lines = [line for line in file.head_lines()[:_HEAD_ROWS] if line.strip()]
    for known in _KNOWN:
        for is_trailing in (False, True):
            layout = Layout.of(known.columns, "|", is_trailing)
            fitting = sum(_fits(layout.cells(line), layout) for line in lines)
            if 2 * fitting > len(lines):
                return layout, known
    return None


def _fits(cells: list[str] | None, layout: Layout) -> bool:
    if cells is None:
        return False
    found = dict(zip(layout.names, cells, strict=True))
    try:
        job_identity(found["jobidraw"], found.get("jobid"))
    except JobStepError:
        pass
    except ValueError:
        return False
    return all(check(found[name]) for name, check in _CHECKS.items() if name in found)


def _is_time(text: str) -> bool:
    is_epoch = len(text) == 10 and whole(text) is not None
    return (
        is_epoch or text.lower() in ABSENT_TIMES or (len(text) == 19 and text[4] == text[7] == "-" and text[13] == ":")
    )


def _is_whole(text: str) -> bool:
    return whole(text) is not None


def _is_duration(text: str) -> bool:
    return duration_us(text) is not None


def _is_state(text: str) -> bool:
    return is_known_state(job_state(text))


_CHECKS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("submit", "eligible", "start", "end"), _is_time),
    **dict.fromkeys(("nnodes", "ncpus", "restarts", "elapsedraw"), _is_whole),
    **dict.fromkeys(("elapsed", "suspended"), _is_duration),
    "state": _is_state,
}
