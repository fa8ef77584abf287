"""Columns of an Arrow table as plain arrays, with errors that name the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bfreplay.checks import near_name
from bfreplay.datasets.hints import empty_cell
from bfreplay.datasets.located import first_true
from bfreplay.datasets.times import (
    EXPECTED_TIME,
    FIRST_TIME_US,
    LAST_TIME_US,
    OUTSIDE_CALENDAR,
    parse_time_us,
    time_error,
)
from bfreplay.errors import InputError

MOST_TEXT = 1 << 28
_FEW_WORDS = 10  # up to this many are a vocabulary; more are the names of an inventory
_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a piece of a file; ``first_row`` is the file's data row of its first value."""

    values: Any  # pyarrow.Array
    name: str
    file: Path
    first_row: int

    def refuse_nulls(self) -> None:
        """Raise for the first missing value."""
        if self.values.null_count:
            raise self.missing_value(self.values.is_null().to_pylist().index(True))

    def missing_value(self, row_index: int) -> InputError:
        """Return the error for a missing value at index ``row_index``."""
        return empty_cell(self.name, self.file, self.first_row + row_index)

    def codes(self, code_of: Mapping[str, int], expected: str, fix: str, fold_case: bool = False) -> NDArray[np.int32]:
        """Return the code of each text, shape ``(R,)``.

        Raises
        ------
        InputError
            A missing value, or a text that has no code.
        """
        self.refuse_nulls()
        dictionary = self.values
        if not pa.types.is_dictionary(dictionary.type):
            if not pa.types.is_string(dictionary.type):
                dictionary = self._cast(pa.string(), expected)
            dictionary = dictionary.dictionary_encode()
        words = dictionary.dictionary.to_pylist()
        lookup = np.array(
            [code_of.get(word.lower() if fold_case else word, -1) if isinstance(word, str) else -1 for word in words],
            dtype=np.int32,
        )
        indices = as_numpy(dictionary.indices)
        codes: NDArray[np.int32] = lookup[indices] if len(words) else np.empty(0, dtype=np.int32)
        row_index = first_true(codes < 0)
        if row_index is not None:
            word = words[indices[row_index]]
            if word is None or word == "":
                raise self.missing_value(row_index)
            near = near_name(word, code_of) if len(code_of) <= _FEW_WORDS else None
            raise InputError(
                "the value of idle is neither true nor false" if self.name == "idle" else f"the {self.name} is unknown",
                file=self.file,
                row=self.first_row + row_index,
                column=self.name,
                value=word,
                expected=expected,
                fix=fix if near is None else f"did you mean {near!r}?",
            )
        return codes

    def times_us(self) -> NDArray[np.int64]:
        """Return microseconds since the epoch, shape ``(R,)``; times without a zone are UTC.

        Raises
        ------
        InputError
            A missing or unreadable time, parts of a microsecond, or a time outside the years 1 to 9999.
        """
        self.refuse_nulls()
        arrow_type = self.values.type
        is_timestamp = pa.types.is_timestamp(arrow_type)
        if is_timestamp:
            times = self._timestamps_us(arrow_type.unit)
        elif pa.types.is_dictionary(arrow_type) or pa.types.is_large_string(arrow_type) or is_number(arrow_type):
            times = self._texts_us(self._cast(pa.string(), EXPECTED_TIME))
        elif pa.types.is_string(arrow_type):
            times = self._texts_us(self.values)
        else:
            raise self._wrong_type("timestamp[us, UTC]")
        index = first_true((times < FIRST_TIME_US) | (times > LAST_TIME_US))
        if index is not None:
            value_text = f"{self.values.cast(pa.int64())[index].as_py()} {arrow_type.unit}" if is_timestamp else None
            raise self._time_error(index, OUTSIDE_CALENDAR, value_text)
        return times

    def _time_error(self, row_index: int, reason: str, value_text: str | None = None) -> InputError:
        shown_value = self.values[row_index].as_py() if value_text is None else value_text
        return time_error(shown_value, reason, file=self.file, row=self.first_row + row_index, column=self.name)

    def _timestamps_us(self, time_unit: str) -> NDArray[np.int64]:
        ticks: NDArray[np.int64] = as_numpy(self.values.cast(pa.int64()))
        if time_unit == "us":
            return ticks
        if time_unit == "ns":
            row_index = first_true(ticks % 1_000 != 0)
            if row_index is not None:
                raise self._time_error(row_index, "finer than a microsecond", f"{ticks[row_index]} ns")
            return ticks // 1_000
        factor = _US_PER_UNIT[time_unit]
        limit = (2**63 - 1) // factor
        row_index = first_true((ticks > limit) | (ticks < -limit))
        if row_index is not None:
            raise self._time_error(row_index, "too far from 1970", f"{ticks[row_index]} {time_unit}")
        return ticks * factor

    def _texts_us(self, texts: Any) -> NDArray[np.int64]:
        if len(texts) == 0:
            return np.empty(0, dtype=np.int64)
        first = texts[0].as_py().strip()
        try:
            if first[:1].isdigit() and "-" not in first and ":" not in first:
                return _unscale(texts.cast(pa.decimal128(38, 6)))
            has_zone = first[-1:] in "Zz" or "+" in first or "-" in first[10:]
            kind = pa.timestamp("us", tz="UTC" if has_zone else None)
            return as_numpy(texts.cast(kind).cast(pa.int64()))
        except (pa.ArrowInvalid, OverflowError):
            return self._texts_us_one_by_one(texts)

    def _texts_us_one_by_one(self, texts: Any) -> NDArray[np.int64]:
        times = np.empty(len(texts), dtype=np.int64)
        for row_index, text in enumerate(texts.to_pylist()):
            if text == "":
                raise self.missing_value(row_index)
            try:
                times[row_index] = parse_time_us(text)
            except ValueError as error:
                raise self._time_error(row_index, str(error)) from error
        return times

    def _cast(self, arrow_type: Any, expected: str) -> Any:
        try:
            return self.values.cast(arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self._wrong_type(expected) from error

    def _wrong_type(self, expected: str) -> InputError:
        return InputError(
            f"the column {self.name} is of a type that cannot be used",
            file=self.file,
            column=self.name,
            value=str(self.values.type),
            expected=expected,
            fix="convert the column",
        )


def as_numpy(integers: Any) -> NDArray[Any]:
    """Return a writable copy of an Arrow array of integers without nulls; pyarrow's own conversion imports pandas."""
    dtype = np.dtype(str(integers.type))
    if len(integers) == 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(integers.buffers()[1], dtype)[integers.offset :][: len(integers)].copy()


def as_arrow(values: Sequence[Any] | NDArray[Any], arrow_type: Any) -> Any:
    """Return an Arrow array of type ``arrow_type``; ``None`` is null. ``pa.array`` imports pandas, which takes 0.25 s.

    So is nan in an array of numpy, which cannot hold ``None``.

    Whole numbers and floats of 8 to 64 bits, times in such whole numbers, truth values, texts, dictionaries of texts,
    and lists of such numbers.
    """
    if pa.types.is_dictionary(arrow_type):
        distinct = dict.fromkeys(values)
        words = [word for word in distinct if word is not None]
        code_of = {None: -1} | {word: code for code, word in enumerate(words)}
        if len(distinct) == 1:  # as most columns are
            index = np.full(len(values), code_of[values[0]], dtype_of(arrow_type.index_type))
        else:
            index = np.fromiter(map(code_of.__getitem__, values), dtype_of(arrow_type.index_type), len(values))
        codes = _of_numbers(arrow_type.index_type, np.maximum(index, 0), index >= 0)
        return pa.DictionaryArray.from_arrays(codes, as_arrow(words, arrow_type.value_type))
    if isinstance(values, np.ndarray):
        return _of_numbers(arrow_type, values, ~np.isnan(values) if values.dtype.kind == "f" else None)
    if len(values) and all(cell_value is None for cell_value in values):
        return pa.nulls(len(values), arrow_type)
    is_there = None
    # without comparing arrays, of which a list is made
    if any(cell_value is None for cell_value in values) if pa.types.is_list(arrow_type) else None in values:
        is_there = np.packbits([cell_value is not None for cell_value in values], bitorder="little")
        nothing: Any = "" if pa.types.is_string(arrow_type) else () if pa.types.is_list(arrow_type) else 0
        values = [nothing if cell_value is None else cell_value for cell_value in values]
    length = len(values)
    if pa.types.is_boolean(arrow_type):
        return _of_buffers(arrow_type, length, is_there, [np.packbits(np.array(values, np.bool_), bitorder="little")])
    if pa.types.is_list(arrow_type):
        dtype = dtype_of(arrow_type.value_type)
        elements = np.concatenate([np.empty(0, dtype), *values], dtype=dtype, casting="unsafe")
        flat = as_arrow(elements, arrow_type.value_type)
        offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
        return _of_buffers(arrow_type, length, is_there, [offsets], children=[flat])
    if pa.types.is_string(arrow_type):
        texts = [cell_value.encode() for cell_value in values]
        offsets = np.cumsum([0, *map(len, texts)])
        if offsets[-1] >= 1 << 31:
            raise OverflowError("texts of more than 2 GiB in one piece of a column")
        data = np.frombuffer(b"".join(texts), np.uint8)
        return _of_buffers(arrow_type, length, is_there, [offsets.astype(np.int32), data])
    return _of_buffers(arrow_type, length, is_there, [np.array(values, dtype_of(arrow_type))])


def dtype_of(arrow_type: Any) -> np.dtype[Any]:
    """Return the type of an array of such numbers or times."""
    return np.dtype(np.int64 if pa.types.is_timestamp(arrow_type) else str(arrow_type).replace("double", "float64"))


def _of_numbers(arrow_type: Any, values: NDArray[Any], is_there: NDArray[np.bool_] | None) -> Any:
    mask = None if is_there is None or is_there.all() else np.packbits(is_there, bitorder="little")
    return _of_buffers(arrow_type, len(values), mask, [np.ascontiguousarray(values)])


def _of_buffers(
    arrow_type: Any,
    length: int,
    is_there: NDArray[np.uint8] | None,
    arrays: Sequence[NDArray[Any]],
    children: Any = None,
) -> Any:
    buffers = [None if array is None else pa.py_buffer(array) for array in (is_there, *arrays)]
    return pa.Array.from_buffers(arrow_type, length, buffers, children=children)


def is_number(arrow_type: Any) -> bool:
    """Return whether a column of this type holds numbers."""
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type))


def _unscale(decimals: Any) -> NDArray[np.int64]:
    """Return decimal seconds with six places as microseconds: the unscaled integers, if 64 bits hold them."""
    words = np.frombuffer(decimals.buffers()[1], dtype="<i8")[2 * decimals.offset :][: 2 * len(decimals)]
    low, high = words[0::2], words[1::2]
    if np.any(high != (low >> 63)):
        raise OverflowError
    return np.ascontiguousarray(low)


def text_columns(schema: Any) -> list[str]:
    """Return the names of text columns, to be read as dictionaries, which hold each text once."""
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return [field.name for field in schema if field.type in texts]


def refuse_swollen_texts(table: Any, file: str | Path) -> None:
    """Refuse a table or a batch of rows, its texts read as dictionaries, that would take gigabytes as plain values.

    Raises
    ------
    InputError
        The texts of a column exceed 256 MiB: a small file can repeat a long text in many rows.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_dictionary(field.type) or pa.types.is_primitive(field.type.value_type):
            continue
        pieces = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        size = sum(pc.sum(pc.binary_length(piece.dictionary).take(piece.indices)).as_py() or 0 for piece in pieces)
        if size > MOST_TEXT:
            raise InputError(
                f"the texts in {field.name!r} are far too long",
                file=file,
                column=field.name,
                value=f"{size:,} bytes in {table.num_rows:,} rows",
                expected=f"at most {MOST_TEXT:,} bytes at once",
                fix="check what wrote the file",
            )
