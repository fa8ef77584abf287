"""Tables whose rows are declared as classes: the schema follows from the fields."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import get_args, get_type_hints

import pyarrow as pa

from bfreplay.result_folders.records import TimeUs

_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def schema_of(row: type) -> pa.Schema:
    """One column for each field of a class: truth values, whole numbers, numbers, texts and ``TimeUs``."""
    return pa.schema([(name, _type_of(hint)) for name, hint in get_type_hints(row, include_extras=True).items()])


def _type_of(hint: object) -> pa.DataType:
    if hint == TimeUs:
        return pa.timestamp("us", tz="UTC")
    if isinstance(hint, type):
        return next(found for base, found in _TYPES.items() if issubclass(hint, base))
    return _type_of(next(each for each in get_args(hint) if each is not NoneType))


def table_of(rows: Sequence[object], row: type) -> pa.Table:
    """The table of ``rows``, which are all of one class."""
    columns = [pa.array([getattr(each, column.name) for each in rows], column.type) for column in schema_of(row)]
    return pa.Table.from_arrays(columns, schema=schema_of(row))
