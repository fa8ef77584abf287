"""Writes folders of results, whole or not at all."""

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
from bfreplay.result_folders.records import RecordPart, ResultKind, ResultRecord

_Record = TypeVar("_Record", bound=ResultRecord)

FAILURES = "failures"
"""Subfolder for models and decisions of rejected answers."""


@contextmanager
def new_folder(out: Path | str | None, kind: ResultKind, *, overwrite: bool) -> Iterator[Path | None]:
    """Yield a temporary folder that becomes ``out`` when the block succeeds, and is removed otherwise.

    A replaced folder is moved aside first, and restored if the new one cannot take its place.

    Parameters
    ----------
    out
        Path of the folder; ``None`` for no folder.
    kind
        Kind of the folder.
    overwrite
        Allow to replace a folder of the same kind.

    Raises
    ------
    OutputExistsError
        ``out`` exists and ``overwrite`` is off, or it is of another kind.
    InputError
        The folder cannot be made.
    OSError
        Writing fails later, for example on a full disk; the error names the folder.
    """
    if out is None:
        yield None
        return
    out = Path(out)
    remove_leftovers(out.resolve())
    target = check_target(out, kind, overwrite=overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial_folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{temporary_name(target.name, 'partial')}-"))
        partial_folder.chmod(0o755)
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        with naming(out):
            yield partial_folder
        check_target(out, kind, overwrite=overwrite)  # again: it may have appeared since
        try:
            _move_into_place(partial_folder, target)
        except OSError as error:
            raise unwritable(out, error) from error
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)


def check_target(out: Path, kind: ResultKind, *, overwrite: bool) -> Path:
    """Return the resolved path of the folder; raises as ``new_folder``."""
    target, elsewhere = out.resolve(), "choose another folder"
    try:
        if target.exists() and not target.is_dir():
            raise existing("there is a file where the output folder should be", out, elsewhere)
        if target.exists() and any(target.iterdir()):
            if not (target / kind.record_file).is_file():
                problem = f"the output folder exists and is not a {kind.word} folder: it is never replaced"
                raise existing(problem, out, elsewhere)
            if not overwrite:
                advice = f"{elsewhere}, or add --force (in Python: overwrite=True) to replace this {kind.word}"
                raise existing("the output folder exists already", out, advice)
            foreign = sorted(foreign_path.name for foreign_path in target.iterdir() if not _is_ours(foreign_path))
            if foreign:
                problem = "the output folder holds files that bfreplay did not write: it is never replaced"
                raise existing(problem, out / foreign[0], f"move it elsewhere, or {elsewhere}")
        if Path.cwd().is_relative_to(target):
            raise existing("the output folder contains the current directory", out, f"cd out of it, or {elsewhere}")
        return target
    except OSError as error:
        raise unwritable(out, error) from error


def _is_ours(path: Path) -> bool:
    """Return whether a folder of results may hold this: tables, records, pictures, a page, saved failures."""
    if path.is_dir() and not path.is_symlink():
        return path.name == FAILURES
    return path.suffix in (".parquet", ".json", ".png", ".svg", ".html")


def _move_into_place(partial_folder: Path, target: Path) -> None:
    if not target.exists():
        partial_folder.rename(target)
        return
    aside_folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{temporary_name(target.name, 'replaced')}-"))
    former_folder = aside_folder / target.name
    try:
        target.rename(former_folder)
        partial_folder.rename(target)
    finally:
        if not target.exists():  # after any failure, Ctrl-C included
            former_folder.rename(target)
        shutil.rmtree(aside_folder, ignore_errors=True)


def existing(problem: str, place: Path, advice: str) -> OutputExistsError:
    """Return the error for an output that exists or cannot be replaced."""
    return OutputExistsError(f"{problem}\n  file:     {place}\n  fix:      {advice}")


def unwritable(folder: Path, error: OSError, place: str = "the output folder") -> InputError:
    """Return the error for a folder that cannot be written."""
    problem = f"{place} cannot be written: {error.strerror or error}"
    return InputError(problem, file=folder, expected="a folder in which you may write", fix="choose another folder")


def record_json(document: RecordPart | Mapping[str, object], owner: str) -> str:
    """Return the text of a record file, sorted, so that equal documents give equal bytes.

    Raises
    ------
    BfreplayError
        An entry is not plain data.
    """
    try:
        plain_document = document.to_json() if isinstance(document, RecordPart) else document
        return json.dumps(plain_document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise BfreplayError(
            f"{owner} cannot be recorded as JSON: {error}; a policy's describe(), the log's metadata and the session "
            "may hold plain numbers, texts, lists and dicts only, and no nan or inf"
        ) from error


def write_record(folder: Path, record: _Record, kind: ResultKind, not_in: Sequence[str] = ()) -> _Record:
    """Write the record of a result with the digests of the tables in its folder, and return it with these.

    Parameters
    ----------
    folder
        Folder with all tables.
    record
        Record without digests.
    kind
        Kind of result.
    not_in
        Tables of measurements, which the record does not cover.
    """
    files = sorted(file for file in folder.glob("*.parquet") if file.name not in not_in)
    record = msgspec.structs.replace(record, sha256={file.name: digest(file) for file in files})
    (folder / kind.record_file).write_text(record_json(record, f"the {kind.word}"), encoding="utf-8")
    return record


def table_writer(file: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of a table of results.

    Only texts have dictionaries: numbers, which seldom repeat, take less room and time without.
    """
    texts = [column.name for column in schema if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)]
    return pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=texts)


def write_result(
    folder: Path | None,
    record: _Record,
    tables: Mapping[str, pa.Table],
    kind: ResultKind,
    pictures: Callable[[Path], object] | None = None,
) -> _Record:
    """Write tables, record and pictures of a result, and return the record with digests.

    Without a folder nothing is written, but the record is checked.
    """
    if folder is None:
        record_json(record, f"the {kind.word}")
        return record
    for table_name, table in tables.items():
        with table_writer(folder / f"{table_name}.parquet", table.schema) as writer:
            writer.write_table(table)
    record = write_record(folder, record, kind)
    if pictures is not None:
        pictures(folder)
    return record
