"""Reads a folder of results: its JSON documents, and its tables on first use."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bfreplay.checks import instance
from bfreplay.documents import html_table, parse_json, printable_json
from bfreplay.errors import InputError, printable
from bfreplay.result_folders.records import AnswerRecord, JsonObject, ResultKind, ResultRecord, parse_record

if TYPE_CHECKING:
    import pandas as pd

_Record = TypeVar("_Record", bound=ResultRecord)
_Answer = TypeVar("_Answer", bound=AnswerRecord)


_ROW_GROUPS = 8
"""Row groups of a file that are read at once: as a replay writes them, 131,072 rows."""
_NODE_TIME, _US_PER_HOUR = "_node_us", 3_600_000_000


def read_documents(folder: str | Path, kind: ResultKind) -> list[JsonObject]:
    """Read the record of a result folder, then its other documents in the order of ``kind``.

    Raises
    ------
    InputError
        The folder is not of this kind, damaged, or of another schema version.
    """
    instance(kind.word, folder, (str, PathLike), f"a {kind.word}, or the path of its folder")
    folder = Path(folder)
    documents = [_read_document(folder, name, kind) for name in (kind.record_file, *kind.more_documents)]
    version = documents[0].get("schema_version")
    if isinstance(version, bool) or version != kind.schema_version:
        raise InputError(
            f"the {kind.word} folder has another schema version",
            file=folder / kind.record_file,
            column="schema_version",
            value=version,
            expected=str(kind.schema_version),
            fix=f"make it again with this version of bfreplay: '{kind.made_by}'",
        )
    return documents


def _read_document(folder: Path, name: str, kind: ResultKind) -> JsonObject:
    inside = None
    try:
        document_text = (folder / name).read_text(encoding="utf-8")
        document = parse_json(document_text, parse_constant=_refuse_constant, parse_float=_finite)
    except (FileNotFoundError, NotADirectoryError):
        kinds = ((folder.is_dir(), f"it has no {name}"), (folder.is_file(), "it is a file"))
        fault_words = next((words for is_so, words in kinds if is_so), "there is no such folder")
        inside = next((record_path.parent for record_path in sorted(folder.glob(f"**/{kind.record_file}"))), None)
    except OSError as error:
        fault_words = f"{name}: {error.strerror or error}"
    except ValueError as error:
        raise InputError(
            f"the {kind.word} folder is damaged: {name} is no JSON document ({error})",
            file=folder,
            fix=f"make it again: '{kind.made_by}'",
        ) from error
    else:
        if isinstance(document, dict):
            printable_document: JsonObject = printable_json(document)
            return printable_document
        fault_words = f"{name} is a JSON {type(document).__name__}, not an object"
    raise InputError(
        f"this is not a {kind.word} folder: {fault_words}",
        file=folder,
        expected="a folder with " + " and ".join((kind.record_file, *kind.more_documents)),
        fix=f"give the folder that '{kind.made_by}' wrote" + (f", such as {inside}" if inside else ""),
    )


def _refuse_constant(constant: str) -> float:
    """Refuse a constant that is not JSON but that Python reads and, by default, writes."""
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


@dataclass(frozen=True, repr=False)
class Result(Generic[_Record]):
    """Result of a command, in memory or as a folder: a typed record, and tables.

    Parameters
    ----------
    record
        Contents of the folder's JSON document.
    folder
        Path of the folder; ``None`` in memory.
    tables
        Tables in memory by name; others are read from the folder on first use.
    """

    kind: ClassVar[ResultKind]
    record_type: ClassVar[type[ResultRecord]]
    schemas: ClassVar[Mapping[str, pa.Schema]] = {}  # of tables that are written with one

    record: _Record
    folder: Path | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)
    _sound: set[str] = field(default_factory=set, init=False, compare=False)  # tables whose files have been checked

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a folder.

        Raises
        ------
        InputError
            It is not of this kind, damaged, or of another schema version.
        """
        (document,) = read_documents(folder, cls.kind)
        path = Path(folder)
        return cls(cast(_Record, parse_record(document, cls.record_type, cls.kind, path / cls.kind.record_file)), path)

    def to_dict(self) -> JsonObject:
        """Contents of the folder's JSON document."""
        return self.record.to_json()

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the folder's tables by file name; empty in memory."""
        return self.record.sha256

    def table(self, name: str) -> pa.Table:
        """Return table ``name``, without ``.parquet``.

        Raises
        ------
        InputError
            The table does not exist, or its file is damaged or was changed.
        """
        return self._read(name)

    def batches(self, name: str, columns: Sequence[str], *, backwards: bool = False) -> Iterator[pa.Table]:
        """Yield those of ``columns`` that table ``name`` has, some rows at a time, without keeping them.

        ``backwards``: the last rows first, in their order in each batch. Raises as ``table`` does.
        """
        if name in self.tables:
            yield self.tables[name].select([column for column in self.tables[name].column_names if column in columns])
            return
        table_file = self._checked(name)
        try:
            with pq.ParquetFile(table_file, pre_buffer=False) as file:
                present_columns = [column for column in file.schema_arrow.names if column in columns]
                starts = range(0, max(1, file.num_row_groups), _ROW_GROUPS)  # a file without rows is one empty batch
                for first_group in reversed(starts) if backwards else starts:
                    groups = range(first_group, min(first_group + _ROW_GROUPS, file.num_row_groups))
                    table_batch = file.read_row_groups(groups, columns=present_columns, use_threads=False)
                    yield _printable_table(table_batch)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(table_file, error) from error

    def columns(self, name: str, *columns: str) -> pa.Table:
        """Return those of ``columns`` that table ``name`` has, without keeping them. Raises as ``table`` does."""
        return pa.concat_tables(self.batches(name, columns))

    def n_rows(self, name: str) -> int:
        """Return the number of rows of a table. Raises as ``table`` does."""
        if name in self.tables:
            return int(self.tables[name].num_rows)
        return int(pq.read_metadata(self._checked(name)).num_rows)

    def _read(self, name: str) -> pa.Table:
        if name not in self.tables:
            table_file = self._checked(name)
            try:
                self.tables[name] = _printable_table(pq.read_table(table_file))
            except (pa.ArrowException, OSError) as error:
                raise self._unreadable(table_file, error) from error
        return self.tables[name]

    def _checked(self, name: str) -> Path:
        """Return the file of a table; its checksum and columns are checked once."""
        table_file = self._file_of(name)
        if table_file is None or not table_file.exists():
            message = f"the {self.kind.word} has no table {name!r}"
            raise InputError(
                message, file=table_file, fix=self.kind.hints.get(name, f"make the folder again: '{self.kind.made_by}'")
            )
        if not table_file.is_file():  # pyarrow takes a folder for a table in parts, and an empty one for an empty table
            raise self._unreadable(table_file, "it is no file")
        if name not in self._sound:
            try:
                if self.digests:
                    check_digest(table_file, self.digests.get(table_file.name), self.kind)
                file_schema = pq.read_schema(table_file)
            except (pa.ArrowException, OSError) as error:
                raise self._unreadable(table_file, error) from error
            self._check_columns(table_file, file_schema, name)
            self._sound.add(name)
        return table_file

    def _file_of(self, name: str) -> Path | None:
        """Return the file of a table, which may not exist; ``None`` in memory."""
        return None if self.folder is None else self.folder / f"{name}.parquet"

    def _check_columns(self, path: Path, schema: pa.Schema, name: str) -> None:
        for column in self.schemas.get(name, ()):
            types = [schema.field(index).type for index in schema.get_all_field_indices(column.name)]
            if len(types) != 1 or not _is_alike(types[0], column.type):
                raise InputError(
                    "the table does not have the columns that it was written with",
                    file=path,
                    column=column.name,
                    value=", ".join(map(str, types)) or None,
                    expected=f"one such column, of {column.type}",
                    fix=f"make the folder again: '{self.kind.made_by}'",
                )

    def _unreadable(self, path: Path, reason: object) -> InputError:
        return InputError(
            f"the table cannot be read: {reason}",
            file=path,
            expected="a whole Parquet file",
            fix=f"make the folder again: '{self.kind.made_by}'",
        )

    def has_table(self, name: str) -> bool:
        """Return whether the table exists, damaged or not."""
        return name in self.tables or ((file := self._file_of(name)) is not None and file.exists())

    def check(self) -> int:
        """Check the file of every table that the folder should have, and return their number.

        Raises as ``table`` does, but for defects in the rows of a file with the right checksum.
        """
        table_names = [Path(file).stem for file in self.digests if file.endswith(".parquet")] or list(self.tables)
        for table_name in table_names:
            if table_name not in self.tables:
                self._checked(table_name)
        return len(table_names)

    def frame(self, name: str) -> pd.DataFrame:
        """Return table ``name`` as a data frame, with hours beside integers: ``useful_node_us``, ``useful_node_hours``.

        Raises as ``table`` does.
        """
        frame: pd.DataFrame = self._read(name).to_pandas()
        for exact_column in [str(column) for column in frame.columns if str(column).endswith(_NODE_TIME)]:
            hours = exact_column.removesuffix(_NODE_TIME) + "_node_hours"
            if hours not in frame:
                frame.insert(list(frame.columns).index(exact_column) + 1, hours, frame[exact_column] / _US_PER_HOUR)
        return frame


@dataclass(frozen=True, repr=False)
class AnswerResult(Result[_Answer]):
    """The answer to one question; a subclass has a table of runs, and perhaps ``facts``."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.answer}>"

    def _repr_html_(self) -> str:
        notes = [*(f"Warning: {warning}" for warning in self.warnings), *self.record.notes]
        return html_table(self.answer, self.facts, str(self.folder or ""), notes)

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        return self.record.answer

    @property
    def warnings(self) -> list[str]:
        """Warnings, as sentences."""
        return self.record.warnings

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Figures behind the answer, in words and as text."""
        return []

    def to_frame(self) -> pd.DataFrame:
        """Return ``table``."""
        return cast("pd.DataFrame", self.table)


def _printable_table(table: pa.Table) -> pa.Table:
    """Return the table with control characters in names and texts escaped: a stranger's folder steers no terminal."""
    if (column_names := [printable(column_name) for column_name in table.column_names]) != table.column_names:
        table = table.rename_columns(column_names)
    for column_index, column_field in enumerate(table.schema):
        text_type = column_field.type.value_type if pa.types.is_dictionary(column_field.type) else column_field.type
        innermost_type = text_type
        while isinstance(innermost_type, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.DictionaryType):
            innermost_type = innermost_type.value_type
        if not (pa.types.is_string(innermost_type) or pa.types.is_large_string(innermost_type)):
            continue
        table_column = table.column(column_index)
        table_column.validate(full=True)  # refuses bytes that are no text
        if innermost_type is not text_type:
            lists = table_column.to_pylist()
            if (plain := printable_json(lists)) != lists:
                table = table.set_column(column_index, column_field.name, pa.array(plain))
            continue
        words = table_column.unify_dictionaries() if column_field.type is not text_type else table_column
        distinct_texts = pc.unique(words).cast(text_type).to_pylist()
        plain_of = {text: plain for text in distinct_texts if text is not None and (plain := printable(text)) != text}
        if plain_of:
            plain = pa.array([plain_of.get(text, text) for text in table_column.to_pylist()], text_type)
            table = table.set_column(column_index, column_field.with_type(text_type), plain)
    return table


def _is_alike(file_type: pa.DataType, schema_type: pa.DataType) -> bool:
    """Return whether a type is the one that was written, as any release of pyarrow reads it."""
    for has_inner_type in (pa.types.is_dictionary, pa.types.is_list):
        if has_inner_type(file_type) and has_inner_type(schema_type):
            return _is_alike(file_type.value_type, schema_type.value_type)
    return bool(file_type == schema_type)


def frame_of(table: str, description: str) -> cached_property[pd.DataFrame]:
    """Make a property of a result: one of its tables as a data frame, read on first use."""
    frame: cached_property[pd.DataFrame] = cached_property(lambda result: result.frame(table))
    frame.__doc__ = description
    return frame


def check_digest(file: Path, recorded_digest: str | None, kind: ResultKind) -> None:
    """Raise ``InputError`` unless the content of ``file`` has this SHA-256."""
    file_digest = digest(file)
    if file_digest != recorded_digest:
        raise InputError(
            f"the file is damaged, was changed, or belongs to another {kind.word}",
            file=file,
            column="sha256",
            value=file_digest,
            expected=recorded_digest or f"a file that {kind.record_file} names",
            fix=f"make the folder again: '{kind.made_by}'; with --force where it lies"
            + (", by the command in session.json" if "session.json" in kind.more_documents else ""),
        )


def digest(file: Path) -> str:
    """Return the SHA-256 of a file, read in blocks."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
