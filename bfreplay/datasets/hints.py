"""What a header or an encoding that cannot be used was probably meant to be."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bfreplay.checks import near_name
from bfreplay.errors import InputError

_SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}
_JOB_SIGNS = ("min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s", "work_samples")
_TOO_FEW_SIGNS = 2


def did_you_mean(unknown: Sequence[str], missing: Sequence[str]) -> str | None:
    """Return ``"did you mean 'time' for 'tiem'?"``, each missing name at most once; ``None`` if none is like one."""
    left, pairs = list(missing), []
    for name in unknown:
        near = near_name(name, left)
        if near is not None:
            left.remove(near)
            pairs.append(f"{near!r} for {name!r}")
    return f"did you mean {', '.join(pairs)}?" if pairs else None


def kind_of_table(columns: Iterable[str]) -> str | None:
    """Say whether columns look like those of a log, a job set or a table of curves; ``None`` for none of these."""
    names = {name.strip().lower() for name in columns}
    if len(names.intersection(_JOB_SIGNS)) > _TOO_FEW_SIGNS:
        return "a job set"
    if {"time", "node"} <= names and names & {"state", "idle"}:
        return "a log of nodes"
    return "a table of curves" if {"curve", "nodes", "value"} <= names else None


def refuse_other_separators(columns: Sequence[str], file: Path) -> None:
    """Refuse a header that is one cell because something else than commas separates its names.

    Raises
    ------
    InputError
        With the separator it seems to have.
    """
    if len(columns) != 1:
        return
    for mark, shown in _SEPARATORS.items():
        if mark in columns[0]:
            raise InputError(
                f"the table looks separated by {shown}, not by commas",
                file=file,
                row="line 1",
                value=columns[0],
                expected="columns separated by commas",
                fix="use commas (and a point in decimal numbers): save it as comma-separated CSV",
            )


def not_utf8(file: Path) -> InputError:
    """Return the error for a text file that is not UTF-8; it is searched for the first line that is not."""
    opened: Callable[..., Any] = gzip.open if file.suffix.lower() == ".gz" else open
    number, line = 0, b""
    try:
        with opened(file, "rb") as stream:
            for number, line in enumerate(stream, start=1):  # noqa: B007
                try:
                    text = line.decode()
                except UnicodeDecodeError:
                    break
                if "\0" in text:
                    break
    except (OSError, EOFError):
        pass  # damaged further on: what was found so far has to do
    is_utf16 = line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line
    source, name = ("utf-16", "UTF-16") if is_utf16 else ("latin1", "Latin-1 or another 8-bit encoding")
    command = f"iconv -f {source} -t utf-8 IN > OUT"
    if file.suffix.lower() == ".gz":
        command = f"zcat IN | iconv -f {source} -t utf-8 | gzip > OUT"
    return InputError(
        f"the file is not UTF-8; it looks like {name}",
        file=file,
        row=f"line {max(number, 1)}",
        value=line.rstrip(b"\r\n"),
        expected="UTF-8 text",
        fix=f"save the file as UTF-8, e.g. {command}",
    )
