"""Kinds of result folders, and the base of their typed records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec
import pyarrow as pa
from msgspec import Meta

from bfreplay.documents import fault_and_path
from bfreplay.errors import InputError


@dataclass(frozen=True, slots=True)
class ResultKind:
    """One kind of result folder: its files, schema version and words in messages.

    Parameters
    ----------
    word
        Name in messages, such as ``"run"``.
    record_file
        JSON document that identifies the kind; it has the ``schema_version``.
    schema_version
        Version that is written.
    made_by
        Command that makes such a folder.
    more_documents
        Other required JSON documents.
    hints
        Reason for which a table may be missing, by its name.
    """

    word: str
    record_file: str
    schema_version: int
    made_by: str
    more_documents: tuple[str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)


RUN = ResultKind(
    word="run",
    record_file="run.json",
    schema_version=4,
    made_by="bfreplay replay --out",
    more_documents=("session.json",),
    hints={"nodes": "nodes are recorded only with record_nodes=True (--record-nodes)"},
)
"""One finished replay."""

LAB = ResultKind(word="lab", record_file="lab.json", schema_version=2, made_by="bfreplay compare formulations --out")
"""One comparison of formulations."""

COMPARISON = ResultKind(
    word="comparison", record_file="comparison.json", schema_version=3, made_by="bfreplay compare runs --out"
)
"""One comparison of finished replays."""

SWEEP = ResultKind(word="sweep", record_file="sweep.json", schema_version=2, made_by="bfreplay sweep --out")
"""Many replays, and one table of their results."""

TUNING = ResultKind(word="tuning", record_file="tuning.json", schema_version=1, made_by="bfreplay tune --out")
"""One recommendation, and the sweep behind it."""

FINISH = ResultKind(word="finish", record_file="finish.json", schema_version=1, made_by="bfreplay finish --out")
"""Times until all jobs are done from many starts, and the runs behind them."""

RULES = ResultKind(word="rules", record_file="rules.json", schema_version=1, made_by="bfreplay compare rules --out")
"""Elasticity rules of products compared on one log, and the runs behind them."""


JsonObject = dict[str, Any]
"""An object of a JSON document with free entries, such as a policy's description of itself."""

Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
TimeUs = Annotated[int, Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""Microseconds since 1970-01-01 UTC, in the years 1 to 9999."""


class RecordPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of a record. The file omits entries that equal their default.

    ``part["name"]`` is ``part.name``.
    """

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def to_json(self) -> JsonObject:
        """Return plain dicts, lists, texts and numbers."""
        document: JsonObject = _with_lists(msgspec.to_builtins(self, enc_hook=_plain))
        return document

    def to_dict(self) -> JsonObject:
        """Return ``to_json()``: answers have both names."""
        return self.to_json()


class ResultRecord(RecordPart, frozen=True, kw_only=True):
    """The record of a result folder; ``sha256`` has the digests of its tables, by file name."""

    schema_version: int
    sha256: dict[str, str] = msgspec.field(default_factory=dict)


class AnswerRecord(ResultRecord, frozen=True, kw_only=True):
    """The record of a command that answers one question: in one sentence, with warnings and notes as sentences."""

    versions: dict[str, str]
    answer: str
    warnings: list[str]
    notes: list[str]


def _with_lists(value: Any) -> Any:
    """Return the value with lists in place of tuples."""
    if isinstance(value, dict):
        return {entry_name: _with_lists(entry_value) for entry_name, entry_value in value.items()}
    return [_with_lists(entry_value) for entry_value in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """Convert numbers of numpy, and other mappings."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no plain data")


_Record = TypeVar("_Record")


def parse_record(document: JsonObject, record: type[_Record], kind: ResultKind, file: Path | str) -> _Record:
    """Convert a document to a typed record.

    Raises
    ------
    InputError
        An entry is missing, of another type or out of bounds.
    """
    try:
        return msgspec.convert(document, record)
    except (msgspec.ValidationError, InputError, ArithmeticError) as error:
        expected, entry_path = fault_and_path(error)
        raise InputError(
            f"the {kind.word} folder is damaged",
            file=file,
            column=entry_path or None,
            expected=expected,
            fix=f"make it again: '{kind.made_by}'",
        ) from error


_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def schema_of(row_type: type) -> pa.Schema:
    """Return one column for each field of a class: ``bool``, ``int``, ``float``, ``str`` and ``TimeUs``."""
    return pa.schema([(name, _type_of(hint)) for name, hint in get_type_hints(row_type, include_extras=True).items()])


def _type_of(type_hint: object) -> pa.DataType:
    if type_hint == TimeUs:
        return pa.timestamp("us", tz="UTC")
    if isinstance(type_hint, type):
        return next(arrow_type for base, arrow_type in _TYPES.items() if issubclass(type_hint, base))
    return _type_of(next(argument for argument in get_args(type_hint) if argument is not NoneType))


def table_of(rows: Sequence[object], row: type) -> pa.Table:
    """Return the table of ``rows``, all of class ``row``."""
    columns = [pa.array([getattr(row, column.name) for row in rows], column.type) for column in schema_of(row)]
    return pa.Table.from_arrays(columns, schema=schema_of(row))


def table_by(schema: pa.Schema, columns: Sequence[Any]) -> pa.Table:
    """Return the table of columns in the order of ``schema``; nan is null."""
    arrays = [pa.array(column, field.type, from_pandas=True) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
