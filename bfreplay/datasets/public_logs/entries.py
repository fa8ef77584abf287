"""Catalogue of public logs: facts about each, the sources of its files, and its text."""

from __future__ import annotations

import shlex
import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from bfreplay.checks import nearest
from bfreplay.documents import Json
from bfreplay.errors import BfreplayError, InputError
from bfreplay.wording import aligned_lines, count

CATALOGUE = Path(str(files("bfreplay.datasets.public_logs") / "catalogue.toml"))

QUALITIES = {"A": "node lists", "B": "counts only", "C": "states"}
"""Information about nodes: the nodes of each job; only their number; or node states without jobs."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log.

    Parameters
    ----------
    name
        Its name in the data folder.
    bytes, sha256
        Size and digest of the file.
    content_bytes, content_sha256
        Size and digest of its content if it is compressed; otherwise the same as ``bytes`` and ``sha256``.
    addresses
        URLs for download, best first; none if the file is not served as it is.
    about
        Description, if a log has several files or the file differs from the published one.
    """

    name: str
    bytes: int
    sha256: str
    content_bytes: int
    content_sha256: str
    addresses: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class PublicLog:
    """Log of the catalogue: one or more files that belong together.

    Parameters
    ----------
    name, title
        Name on the command line; title for readers.
    format
        Format of ``bfreplay ingest``; ``"table"`` if it has none of its own.
    quality
        A key of ``QUALITIES``.
    jobs, nodes
        Rows of jobs and nodes of the machine; ``None`` if absent or not known.
    start, end
        First and last day with a job or an outage; ``None`` if times are relative.
    clock
        Kind of its times.
    good_for, bad_for, traps
        Questions that it answers, questions that it does not, and its errors and oddities.
    licence, acknowledge, citation, page
        Terms, acknowledgement, citation, and the page of its origin.
    ingest
        Command that converts it to node events, in the folder of the files; ``None`` without a useful result.
    """

    name: str
    title: str
    format: str
    quality: str
    clock: str
    good_for: str
    bad_for: str
    traps: tuple[str, ...]
    licence: str
    acknowledge: str
    citation: str
    page: str
    files: tuple[LogFile, ...]
    jobs: int | None = None
    nodes: int | None = None
    start: date | None = None
    end: date | None = None
    ingest: str | None = None

    @property
    def bytes(self) -> int:
        """Size of all its files in bytes."""
        return sum(log_file.bytes for log_file in self.files)

    @property
    def downloadable(self) -> bool:
        """True if every file has an address."""
        return all(log_file.addresses for log_file in self.files)

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values, dates as ISO text."""
        return asdict(self) | {key: day and day.isoformat() for key, day in (("start", self.start), ("end", self.end))}


def catalogue() -> tuple[PublicLog, ...]:
    """Return every log, in the order of the catalogue."""
    return read_catalogue(CATALOGUE)


def public_log(name: str) -> PublicLog:
    """Look a log up.

    Raises
    ------
    InputError
        No log has this name; the message lists the names and suggests the nearest.
    """
    entries = {entry.name: entry for entry in catalogue()}
    if name not in entries:
        expected, fix = f"one of {', '.join(entries)}", nearest(name, entries, "see: bfreplay datasets list")
        raise InputError(f"unknown public log {name!r}", expected=expected, fix=fix)
    return entries[name]


@cache
def read_catalogue(path: Path) -> tuple[PublicLog, ...]:
    """Read a catalogue in the form of the one that ships with bfreplay."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["log"]
    for table in tables:
        uncompressed = [{"content_bytes": file["bytes"], "content_sha256": file["sha256"]} for file in table["file"]]
        table["files"] = [plain | file for plain, file in zip(uncompressed, table.pop("file"), strict=True)]
    return msgspec.convert(tables, tuple[PublicLog, ...])


class DownloadError(BfreplayError):
    """A public log could not be downloaded; the message names the addresses and the steps to get it by hand."""


class NotSuppliedError(Exception):
    """One file could not be obtained.

    Parameters
    ----------
    log_file
        The file.
    reasons
        One line for each attempt.
    """

    def __init__(self, log_file: LogFile, reasons: Sequence[str]) -> None:
        super().__init__(log_file.name)
        self.file = log_file
        self.reasons = tuple(reasons)


def headline(failures: Sequence[tuple[PublicLog, NotSuppliedError]], n_logs: int) -> str:
    """Return ``"1 of 2 public logs could not be fetched, ..."`` and, indented, the files and reasons."""
    if n_logs == 1:
        lines = ["the public log could not be fetched"]
    elif len(failures) == n_logs:
        lines = [f"none of the {count(n_logs, 'public log')} could be fetched"]
    else:
        lines = [f"{len(failures)} of {count(n_logs, 'public log')} could not be fetched, the others are there"]
    for entry, missing in failures:
        lines.append(f"  {entry.name}: {missing.file.name} ({count(missing.file.bytes, 'byte')})")
        lines += [f"    {reason}" for reason in missing.reasons]
    return "\n".join(lines)


_WIDTH = 110
_INDENT = 13


def size(n_bytes: int) -> str:
    """Format a size: ``404 kB``, ``3.6 MB``."""
    for unit, length in (("MB", 1_000_000), ("kB", 1_000)):
        if n_bytes >= length:
            return f"{n_bytes / length:.3g} {unit}"
    return f"{n_bytes} B"


def window(entry: PublicLog) -> str:
    """Format the days of a log: ``2012-02-03 to 2012-10-17``."""
    return f"{entry.start} to {entry.end}" if entry.start and entry.end else "relative times"


def render_list(rows: Sequence[tuple[PublicLog, str]], folder: Path) -> str:
    """Lay out one line per log with its state, and the folder below."""
    header = ["name", "format", "jobs", "nodes", "window", "class", "size", "fetched"]
    cells = [header]
    for entry, state in rows:
        counts = [_number(entry.jobs), _number(entry.nodes)]
        quality = f"{entry.quality} {QUALITIES[entry.quality]}"
        cells.append([entry.name, entry.format, *counts, window(entry), quality, size(entry.bytes), state])
    text_columns = [index for index, column_name in enumerate(header) if column_name not in ("jobs", "nodes", "size")]
    return "\n".join([*aligned_lines(cells, text_columns), "", f"Data folder: {folder}"])


def render_info(entry: PublicLog, state: str, folder: Path) -> str:
    """Lay out everything about one log."""
    facts = [
        ("format", entry.format),
        ("class", f"{entry.quality}: {QUALITIES[entry.quality]}"),
        ("jobs", _number(entry.jobs)),
        ("nodes", _number(entry.nodes)),
        ("window", window(entry)),
        ("clock", entry.clock),
        ("good for", entry.good_for),
        ("bad for", entry.bad_for),
        *(("trap" if trap_index == 0 else "", f"- {trap}") for trap_index, trap in enumerate(entry.traps)),
        ("licence", entry.licence),
        ("acknowledge", entry.acknowledge),
        ("cite", entry.citation),
        ("page", entry.page),
        ("fetched", f"{state} ({folder})"),
    ]
    lines = [f"{entry.name}: {entry.title}", ""]
    for fact_name, fact_text in facts:
        lines += _fact(fact_name, fact_text)
    for log_file in entry.files:
        lines += ["", *_fact("file", log_file.name)]
        lines += _fact("", log_file.about) if log_file.about else []
        details = [f"{count(log_file.bytes, 'byte')}, sha256 {log_file.sha256}"]
        if log_file.content_sha256 != log_file.sha256:
            details.append(f"content: {count(log_file.content_bytes, 'byte')}, sha256 {log_file.content_sha256}")
        details += log_file.addresses or ["no address serves it as it is"]
        lines += [f"{'':<{_INDENT}}{detail}" for detail in details]  # not wrapped: for copying
    command = ingest_command(entry, folder)
    lines += ["", "Node events from it:", f"  {command}" if command else "  no command: see what it is bad for"]
    return "\n".join(lines)


def ingest_command(entry: PublicLog, folder: Path) -> str | None:
    """Return the ingest command of the catalogue, with the paths of the files."""
    if entry.ingest is None:
        return None
    names = {log_file.name for log_file in entry.files}
    return shlex.join(str(folder / word) if word in names else word for word in shlex.split(entry.ingest))


def _fact(fact_name: str, fact_text: str) -> list[str]:
    rows = textwrap.wrap(fact_text, _WIDTH - _INDENT, break_long_words=False, break_on_hyphens=False) or [""]
    hanging = "  " if fact_text.startswith("- ") else ""
    return [
        f"{fact_name if line_index == 0 else '':<{_INDENT}}{hanging if line_index else ''}{row}".rstrip()
        for line_index, row in enumerate(rows)
    ]


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
