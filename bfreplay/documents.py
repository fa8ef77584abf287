"""Reads text, TOML and JSON of untrusted files, with limits on lines, keys and nesting before memory is used.

Also ``html_table``, the table that a notebook shows.
"""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from html import escape
from pathlib import Path
from typing import IO, Any, TypeAlias

from bfreplay.errors import InputError, printable

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of a JSON document."""

Cell: TypeAlias = (
    "bool | int | float | str | bytes | Decimal | date | time | timedelta | Sequence[Cell] | Mapping[str, Cell] | None"
)
"""A value of a TOML file, or of a cell in a CSV or Parquet table; times are ``datetime``, which is a ``date``."""

LONGEST_LINE = 1 << 24
"""Largest length of a line in characters."""

DEEPEST = 64
"""Largest depth of nested lists and tables; parsers recurse for each."""

LARGEST_TOML = 4 << 20
"""Largest TOML file in bytes; parsed TOML takes some hundred times the memory of its text."""

_ALWAYS_UNPACKED, _MOST_PACKED = 1 << 28, 200
_MOST_KEY_PARTS = 16
_PART = r"""(?:[\w-]++|"(?!"")(?:[^"\\\n]++|\\.)*+"?+|'(?!'')[^'\n]*+'?+)"""
_JOINED = rf"[ \t]*+\.[ \t]*+{_PART}"
_TOML_TOKEN = re.compile(
    r"""#.*+|""\"(?:[^"\\]++|\\[\s\S]?+|"(?!""))*+"{0,5}+|\'\'\'(?:[^']++|'(?!''))*+'{0,5}+"""
    rf"|{_PART}(?:{_JOINED}){{0,{_MOST_KEY_PARTS - 1}}}+(?P<one_more>{_JOINED})?+",
    re.ASCII,
)
"""A comment, a multi-line string, or dotted parts, which may be one-line strings.

A token without an end extends to the end of the line or text, so that no text is read twice.
"""


def parse_toml(text: str) -> dict[str, Cell]:
    """Return the tables of a TOML text.

    Raises
    ------
    tomllib.TOMLDecodeError
        It is no TOML, is nested more than 64 deep, or has a key of more than 16 dotted parts; each part costs the
        parser as much memory as all before it.
    """
    if any(token["one_more"] for token in _TOML_TOKEN.finditer(text)):
        raise tomllib.TOMLDecodeError(f"a key has more than {_MOST_KEY_PARTS} parts joined by dots")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # from ``int``
        raise tomllib.TOMLDecodeError("a whole number has thousands of digits") from None
    if is_too_deep(tables):
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    return tables


def check_toml_size(file: Path) -> None:
    """Raise ``InputError`` for a TOML file of more than 4 MiB.

    Raises
    ------
    InputError
        It is larger.
    """
    size_bytes = file.stat().st_size
    if size_bytes > LARGEST_TOML:
        raise InputError(
            "the TOML file is too large",
            file=file,
            value=f"{size_bytes:,} bytes",
            expected=f"at most {LARGEST_TOML:,} bytes",
            fix="write a large set of jobs or curves as CSV or Parquet",
        )


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text; ``options`` as for ``json.loads``.

    Raises
    ------
    ValueError
        It is no JSON, or is nested more than 64 deep.
    """
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


_TOO_DEEP = f"nested more than {DEEPEST} deep"


def is_too_deep(value: Any) -> bool:
    """Return whether lists and tables are nested more than 64 deep."""
    layer = [value]
    for _ in range(DEEPEST):
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if type(outer) is dict else outer if type(outer) is list else ())
            if type(inner) is dict or type(inner) is list
        ]
        if not layer:
            return False
    return True


def fault_and_path(error: Exception) -> tuple[str, str]:
    """Return what msgspec did not accept, and where: ``"campaign.trials"``, empty for the whole document."""
    fault, mark, key_path = str(error).rpartition(" - at `$")
    return (fault, key_path.strip("`").lstrip(".")) if mark else (key_path, "")


def pick(item: object, *names: str) -> dict[str, Json]:
    """Return the attributes of ``item`` with these names, for a JSON document."""
    return {attribute: getattr(item, attribute) for attribute in names}


def printable_json(value: Any) -> Any:
    """Return a JSON value whose texts and keys have control characters and lone surrogates as escapes."""
    if isinstance(value, list):
        return [printable_json(element) for element in value]
    if isinstance(value, dict):
        return {printable(key): printable_json(element) for key, element in value.items()}
    return printable(value) if isinstance(value, str) else value


def text_lines(stream: IO[str], file: Path) -> Iterator[str]:
    """Yield the lines of a stream with their ends.

    Raises
    ------
    InputError
        A line is longer than 16 Mi characters.
    """
    for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), ""), start=1):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise endless_line(file, line, number)
        yield line


def unpacked_limit(file: Path) -> int:
    """Return the largest unpacked size of an archive in bytes: 200 times its size (logs reach 100), or 256 MiB."""
    return max(_ALWAYS_UNPACKED, _MOST_PACKED * file.stat().st_size)


def endless_line(
    file: str | Path, start: str | bytes, number: int | None = None, most: int = LONGEST_LINE
) -> InputError:
    """Return the error for a line of more than ``most`` characters, of which ``start`` is the beginning."""
    return InputError(
        "a line does not end",
        file=file,
        row=None if number is None else f"line {number}",
        value=start[:60],
        expected=f"lines of text of at most {most >> 20} MiB",
        fix="check that this is the right file, as text",
    )


def not_utf8(file: Path) -> InputError:
    """Return the error for a text file that is not UTF-8, with the first bad line."""
    opener: Callable[..., Any] = gzip.open if file.suffix.lower() == ".gz" else open
    number, line = 0, b""
    try:
        with opener(file, "rb") as stream:
            found_kind = other_kind(stream.peek(_START_BYTES))
            if found_kind is not None and found_kind[0] != UTF16:
                return InputError(f"this is {found_kind[0]}", file=file, expected="UTF-8 text", fix=found_kind[1])
            while line := stream.readline(LONGEST_LINE):
                number += 1
                try:
                    line_text = line.decode()
                except UnicodeDecodeError:
                    break
                if "\0" in line_text:
                    break
    except (OSError, EOFError):
        pass  # damaged further on
    is_utf16 = line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line
    source, encoding_name = ("utf-16", "UTF-16") if is_utf16 else ("latin1", "Latin-1 or another 8-bit encoding")
    command = f"iconv -f {source} -t utf-8 IN > OUT"
    if file.suffix.lower() == ".gz":
        command = f"zcat IN | iconv -f {source} -t utf-8 | gzip > OUT"
    return InputError(
        f"the file is not UTF-8; it looks like {encoding_name}",
        file=file,
        row=f"line {max(number, 1)}",
        value=line.rstrip(b"\r\n"),
        expected="UTF-8 text",
        fix=f"save the file as UTF-8, e.g. {command}",
    )


ZIP, UTF16 = "a zip archive", "text in UTF-16"
_START_BYTES = 65_536
_UNPACK = "unpack it, and give the files that are in it"
_SPREADSHEET = ("a spreadsheet", "save the sheet as CSV in UTF-8, and give that file")
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_SPREADSHEET_SIGNS = (b"[Content_Types].xml", b"xl/workbook", b"mimetypeapplication/vnd.oasis.opendocument")
_UTF16_FIX = "convert it: iconv -f {} -t UTF-8 FILE > FILE.utf8"
_STUDY_FIX = "give a study of Optuna as --jobs, in Python to load_campaign"
_OTHER_KINDS = (
    (b"\xff\xfe", UTF16, _UTF16_FIX.format("UTF-16")),
    (b"\xfe\xff", UTF16, _UTF16_FIX.format("UTF-16")),
    (b"\xd0\xcf\x11\xe0", *_SPREADSHEET),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"%PDF-", "a PDF document", "export the table as CSV or text where it was made"),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        f"{_STUDY_FIX}; of another database, export the table: sqlite3 -header -csv FILE 'SELECT ...' > jobs.csv",
    ),
    (b'{"op_code"', "a journal of Optuna", _STUDY_FIX),
)
_WEB_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_SLURM_DAEMON = re.compile(rb"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\] ")


def other_kind(start: bytes) -> tuple[str, str] | None:
    """Return the kind of an unreadable file from its first bytes, and the fix; ``None`` for any other file."""
    if start.startswith(_ZIP_MAGIC):
        return _SPREADSHEET if any(sign in start for sign in _SPREADSHEET_SIGNS) else (ZIP, _UNPACK)
    for signature, kind_name, remedy in _OTHER_KINDS:
        if start.startswith(signature):
            return kind_name, remedy
    even, odd = start[:100:2], start[1:100:2]
    for letters, zeros, encoding in ((even, odd, "UTF-16LE"), (odd, even, "UTF-16BE")):
        if len(zeros) > 1 and all(letters) and not any(zeros):
            return UTF16, _UTF16_FIX.format(encoding)
    if _WEB_PAGE.match(start):
        return "a web page", "fetch the file again: this may be a log-in or error page"
    if _SLURM_DAEMON.match(start):
        return (
            "a log of Slurm's own daemons, such as slurmctld.log",
            "export the accounting instead: `bfreplay ingest slurm --how` prints the sacct command for your cluster",
        )
    return None


_TOML_KINDS = (
    ({"campaign", "study"}, "a campaign", "bfreplay replay LOG --jobs {0}, in Python load_campaign"),
    ({"run", "vary", "runs"}, "a sweep", "bfreplay sweep {0} --out FOLDER"),
    ({"job"}, "a job set", "bfreplay replay LOG --jobs {0}"),
)
"""Keys at the top level that tell a kind of TOML file, its name, and its command."""


def refuse_other_toml(tables: Mapping[str, object], file: str | Path, own_kind: str) -> None:
    """Raise ``InputError`` for TOML that is not ``own_kind``: ``"a campaign"``, ``"a sweep"`` or ``"a job set"``."""
    if any(kind_name == own_kind and not kind_keys.isdisjoint(tables) for kind_keys, kind_name, _ in _TOML_KINDS):
        return
    for kind_keys, kind_name, command in _TOML_KINDS:
        if not kind_keys.isdisjoint(tables):
            key = next(iter(kind_keys & tables.keys()))
            remedy = f"use it so: {command.format(Path(file).name)}"
            raise InputError(f"this is {kind_name}, not {own_kind}", file=file, column=key, value=[*tables], fix=remedy)


def refuse_other_kind(start: bytes, file: str | Path, expected: str) -> None:
    """Check the first bytes of a file.

    Raises
    ------
    InputError
        No reader takes this kind of file; the message has the kind and the fix.
    """
    found_kind = other_kind(start)
    if found_kind is not None:
        raise InputError(f"this is {found_kind[0]}", file=file, value=start[:20], expected=expected, fix=found_kind[1])


def html_table(title: str, rows: Iterable[tuple[str, str | None]], place: str = "", notes: Iterable[str] = ()) -> str:
    """Return a table as HTML for a notebook: ``title`` and ``place`` above, ``notes`` below; all text is escaped.

    A row is a heading and a text; rows without a text are left out.
    """
    title, place, *notes = (escape(printable(text)) for text in (title, place, *notes))
    escaped_rows = [(escape(heading), escape(printable(text))) for heading, text in rows if text]
    lines = [
        f'<table>\n<caption style="caption-side: top; text-align: left"><b>{title}</b> {place}</caption>',
        *(f'<tr><th style="text-align: left">{heading}</th><td>{text}</td></tr>' for heading, text in escaped_rows),
        "</table>",
        *(f"<p>{note}</p>" for note in notes),
    ]
    return "\n".join(lines)
