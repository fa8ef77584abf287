"""Readers by file ending. A new format is one file, and one line here.

Values are ``"module:function"`` and are imported when a file of that kind is met: pyarrow and pandas
load only where they are needed. A reader takes a ``pathlib.Path`` and returns the log or the jobs.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bfreplay.checks import near_name
from bfreplay.defaults import BUNDLED
from bfreplay.documents import refuse_other_kind
from bfreplay.errors import InputError
from bfreplay.registry import built_in

EVENT_READERS: Mapping[str, str] = {
    ".parquet": "bfreplay.datasets.log.event_files:read_parquet",
    ".csv": "bfreplay.datasets.log.event_files:read_csv",
    ".csv.gz": "bfreplay.datasets.log.event_files:read_csv",
    ".pkl": "bfreplay.datasets.published.matrix:read_published_events",
    ".tar.gz": "bfreplay.datasets.published.matrix:read_published_events",
    ".tgz": "bfreplay.datasets.published.matrix:read_published_events",
}

JOB_TABLE_READERS: Mapping[str, str] = {
    ".csv": "bfreplay.datasets.jobs.tables:read_csv_table",
    ".parquet": "bfreplay.datasets.jobs.tables:read_parquet_table",
    ".toml": "bfreplay.datasets.jobs.tables:read_toml_table",
}

ROW_TABLE_READERS = {ending: reader for ending, reader in JOB_TABLE_READERS.items() if ending != ".toml"}

_START_BYTES = 65_536
_SIGNATURES = ((b"PAR1", "Parquet (.parquet)"), (b"\x1f\x8b", "gzip (.csv.gz, .tar.gz)"), (b"\x80", "pickle (.pkl)"))


CHECK_NAME = "the ending of the name tells how a file is read: it may need another name"


def read_by_ending(
    path: Path, readers: Mapping[str, str], other_endings: Sequence[str] = (), fix: str = CHECK_NAME
) -> Any:
    """Read a file by the ending of its name, the longest one that has a reader; return what the reader returns.

    Parameters
    ----------
    path
        The file.
    readers
        Ending -> reader.
    other_endings
        Endings that the caller reads in another way, for the message.
    fix
        Advice for a file of unknown content.

    Raises
    ------
    InputError
        No such file, one that may not be read, or an ending without a reader; the message names the endings, and
        what the content looks like.
    """
    check_is_file(path)
    ending = ending_of(path, readers)
    if ending is None:
        expected = "a name ending in " + ", ".join((*readers, *other_endings))
        with path.open("rb") as stream:
            start = stream.read(_START_BYTES)
        refuse_other_kind(start, path, expected)
        looks = next((kind for signature, kind in _SIGNATURES if start.startswith(signature)), None)
        raise InputError(
            "no reader for this kind of file",
            file=path,
            value=path.name,
            expected=expected,
            fix=fix if looks is None else f"its content looks like {looks}: rename it",
        )
    return built_in(readers[ending])(path)


def check_is_file(path: Path) -> None:
    """Refuse a path that is not a file which may be read.

    Raises
    ------
    InputError
        The path does not exist, is a folder, or may not be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            if (path / "run.json").exists():
                raise InputError(
                    "this is a run folder",
                    file=path,
                    expected="a file, such as the log that the run was made of",
                    fix="give that file: session.json says where it was; or show the run: bfreplay report RUN",
                )
            raise InputError("this is a folder", file=path, expected="a file", fix="give a file in it")
        if not stat.S_ISREG(mode):
            raise InputError(
                "this is not an ordinary file (a pipe or a device)",
                file=path,
                expected="a file on disk: it is read more than once",
                fix="save it to a file first",
            )
        with path.open("rb"):
            pass
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("there is no such file", file=path, expected="a file", fix=_near_file(path)) from error
    except PermissionError as error:
        raise InputError(
            "the file may not be read",
            file=path,
            expected="permission to read the file, and to enter the folders above it",
            fix="ask its owner, or change its mode: chmod u+r FILE, chmod u+rx FOLDER",
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"the file cannot be opened: {reason}", file=path, expected="a file", fix="check the path"
        ) from error


def _near_file(missing_path: Path) -> str:
    with suppress(OSError):
        files = [path.name for path in missing_path.parent.iterdir() if not path.name.startswith(".")]
        near = near_name(missing_path.name, [BUNDLED, *files], cutoff=0.8)
        if near is not None:
            return f"did you mean {str(missing_path.with_name(near))!r}?"
    return "check the path"


def ending_of(file_path: Path, endings: Iterable[str]) -> str | None:
    """Return the longest of the endings that the file's name has, in any case of letters."""
    file_name = file_path.name.lower()
    fitting = [ending for ending in endings if file_name.endswith(ending)]
    return max(fitting, key=len, default=None)
