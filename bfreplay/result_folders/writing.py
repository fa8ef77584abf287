"""A folder of results appears whole or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.outputs import naming, remove_leftovers, temporary_name
from bfreplay.result_folders.reading import digest
from bfreplay.result_folders.records import Part, ResultKind, ResultRecord

_Record = TypeVar("_Record", bound=ResultRecord)

FAILURES = "failures"
"""The folder in a folder of results that keeps models and decisions of rejected answers."""


@contextmanager
def new_folder(out: Path | str | None, kind: ResultKind, *, overwrite: bool) -> Iterator[Path | None]:
    """A temporary folder that becomes ``out`` when the block ends well, and vanishes when it does not.

    One that is replaced is moved aside first and comes back if the new one cannot take its place.

    Parameters
    ----------
    out
        Where; without it there is no folder.
    kind
        What it will be: its record file tells one that is there from a folder of anything else.
    overwrite
        Whether one of the same kind that is there may be replaced.

    Raises
    ------
    OutputExistsError
        ``out`` is there already and ``overwrite`` is off, or it is something of another kind.
    InputError
        Nothing can be written there.
    OSError
        The folder cannot be written to its end, because the disk is full for one; it names the folder.
    """
    if out is None:
        yield None
        return
    out = Path(out)
    remove_leftovers(out.resolve())
    target = check_target(out, kind, overwrite=overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{temporary_name(target.name, 'partial')}-"))
        partial.chmod(0o755)
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        with naming(out):
            yield partial
        check_target(out, kind, overwrite=overwrite)  # once more: the work took its time
        try:
            _move_into_place(partial, target)
        except OSError as error:
            raise unwritable(out, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_target(out: Path, kind: ResultKind, *, overwrite: bool) -> Path:
    """Where the folder will be, links followed; raises as ``new_folder`` would."""
    target, elsewhere = out.resolve(), "choose another folder"
    try:
        if target.exists() and not target.is_dir():
            raise existing("there is a file where the output folder should be", out, elsewhere)
        if target.exists() and any(target.iterdir()):
            if not (target / kind.record_file).is_file():
                other = f"exists and is not a {kind.word} folder"
                raise existing(f"the output folder {other}, so it is left alone, even with --force", out, elsewhere)
            if not overwrite:
                fix = f"{elsewhere}, or add --force (in Python: overwrite=True) to replace this {kind.word}"
                raise existing("the output folder exists already", out, fix)
            foreign = sorted(path.name for path in target.iterdir() if not _is_ours(path))
            if foreign:
                problem = "the output folder holds what bfreplay did not write, so it is left alone, even with --force"
                raise existing(problem, out / foreign[0], f"move it elsewhere, or {elsewhere}")
        if Path.cwd().is_relative_to(target):
            raise existing("the output folder is where you stand", out, f"cd out of it, or {elsewhere}")
        return target
    except OSError as error:
        raise unwritable(out, error) from error


def _is_ours(path: Path) -> bool:
    """Whether a folder of results may hold this: tables, records, pictures, a page, and saved failures."""
    if path.is_dir() and not path.is_symlink():
        return path.name == FAILURES
    return path.suffix in (".parquet", ".json", ".png", ".svg", ".html")


def _move_into_place(partial: Path, target: Path) -> None:
    if not target.exists():
        partial.rename(target)
        return
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{temporary_name(target.name, 'replaced')}-"))
    replaced = aside / target.name
    try:
        target.rename(replaced)
        partial.rename(target)
    finally:
        if not target.exists():  # whatever came between, Ctrl-C too: the earlier one comes back
            replaced.rename(target)
        shutil.rmtree(aside, ignore_errors=True)


def existing(problem: str, place: Path, fix: str) -> OutputExistsError:
    """Return the error for an output that is there, or cannot be replaced."""
    return OutputExistsError(f"{problem}\n  file:     {place}\n  fix:      {fix}")


def unwritable(folder: Path, error: OSError, what: str = "the output folder") -> InputError:
    """Return the error for a folder of results that the system does not let one write."""
    problem, expected = f"{what} cannot be written: {error.strerror or error}", "a folder in which you may write"
    return InputError(problem, file=folder, expected=expected, fix="choose another folder")


def record_json(document: Part | Mapping[str, object], what: str) -> str:
    """Return the text of a record file: sorted, so that the same document gives the same bytes.

    Raises
    ------
    BfreplayError
        Something in it is no plain data; ``what`` cannot be recorded.
    """
    try:
        plain = document.to_json() if isinstance(document, Part) else document
        return json.dumps(plain, indent=1, sort_keys=True, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise BfreplayError(
            f"{what} cannot be recorded as JSON: {error}; a policy's describe(), the log's metadata and the session "
            "may hold plain numbers, texts, lists and dicts only, and no nan or inf"
        ) from error


def write_record(folder: Path, record: _Record, kind: ResultKind, not_in: Sequence[str] = ()) -> _Record:
    """Write the record of a result with the digests of the tables in its folder, and return it so.

    Parameters
    ----------
    folder
        With all tables written.
    record
        Without digests.
    kind
        Of result.
    not_in
        Files of tables that are not part of the record: they hold what was measured.
    """
    files = sorted(file for file in folder.glob("*.parquet") if file.name not in not_in)
    record = msgspec.structs.replace(record, sha256={file.name: digest(file) for file in files})
    (folder / kind.record_file).write_text(record_json(record, f"the {kind.word}"), encoding="utf-8")
    return record


def write_result(
    folder: Path | None, record: _Record, tables: Mapping[str, pa.Table], kind: ResultKind,
    pictures: Callable[[Path], object] | None = None,
) -> _Record:  # fmt: skip
    """Write tables and record of a result, then draw into its folder; returns the record with digests.

    Without a folder nothing is written, but the record is checked all the same.
    """
    if folder is None:
        record_json(record, f"the {kind.word}")
        return record
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    record = write_record(folder, record, kind)
    if pictures is not None:
        pictures(folder)
    return record
