"""Catalogue of public logs as plain text."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path

from bfreplay.datasets.public_logs.entries import QUALITIES, PublicLog
from bfreplay.wording import aligned_lines, count

_WIDTH = 110
_INDENT = 13


def size(n_bytes: int) -> str:
    """Format a size: ``404 kB``, ``3.6 MB``."""
    for unit, length in (("MB", 1_000_000), ("kB", 1_000)):
        if n_bytes >= length:
            return f"{n_bytes / length:.3g} {unit}"
    return f"{n_bytes} B"


def window(log: PublicLog) -> str:
    """Format the days of a log: ``2012-02-03 to 2012-10-17``."""
    return f"{log.start} to {log.end}" if log.start and log.end else "relative times"


def render_list(rows: Sequence[tuple[PublicLog, str]], folder: Path) -> str:
    """Lay out one line per log with its state, and the folder below."""
    head = ("name", "format", "jobs", "nodes", "window", "class", "size", "fetched")
    cells = [head]
    for log, state in rows:
        quality = f"{log.quality} {QUALITIES[log.quality]}"
        cells.append(
            (log.name, log.format, _number(log.jobs), _number(log.nodes), window(log), quality, size(log.bytes), state)
        )
    left = [k for k, name in enumerate(head) if name not in ("jobs", "nodes", "size")]
    lines = aligned_lines(cells, left)
    return "\n".join([*lines, "", f"Data folder: {folder}"])


def render_info(log: PublicLog, state: str, folder: Path) -> str:
    """Lay out everything about one log."""
    facts = [
        ("format", log.format),
        ("class", f"{log.quality}: {QUALITIES[log.quality]}"),
        ("jobs", _number(log.jobs)),
        ("nodes", _number(log.nodes)),
        ("window", window(log)),
        ("clock", log.clock),
        ("good for", log.good_for),
        ("bad for", log.bad_for),
        *(("trap" if k == 0 else "", f"- {trap}") for k, trap in enumerate(log.traps)),
        ("licence", log.licence),
        ("acknowledge", log.acknowledge),
        ("cite", log.citation),
        ("page", log.page),
        ("fetched", f"{state} ({folder})"),
    ]
    lines = [f"{log.name}: {log.title}", ""]
    for name, value in facts:
        lines += _fact(name, value)
    for file in log.files:
        lines += ["", *_fact("file", file.name)]
        lines += _fact("", file.about) if file.about else []
        details = [f"{count(file.bytes, 'byte')}, sha256 {file.sha256}"]
        if file.content_sha256 != file.sha256:
            details.append(f"content: {count(file.content_bytes, 'byte')}, sha256 {file.content_sha256}")
        details += file.addresses or ["no address serves it as it is"]
        lines += [f"{'':<{_INDENT}}{detail}" for detail in details]  # not wrapped: for copying
    command = ingest_command(log, folder)
    lines += ["", "Node events from it:", f"  {command}" if command else "  no command: see what it is bad for"]
    return "\n".join(lines)


def ingest_command(log: PublicLog, folder: Path) -> str | None:
    """Return the ingest command of the catalogue, with the paths of the files."""
    if log.ingest is None:
        return None
    names = {file.name for file in log.files}
    return shlex.join(str(folder / word) if word in names else word for word in shlex.split(log.ingest))


def _fact(name: str, value: str) -> list[str]:
    rows = textwrap.wrap(value, _WIDTH - _INDENT, break_long_words=False, break_on_hyphens=False) or [""]
    hanging = "  " if value.startswith("- ") else ""
    return [f"{name if k == 0 else '':<{_INDENT}}{hanging if k else ''}{row}".rstrip() for k, row in enumerate(rows)]


def _number(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"
