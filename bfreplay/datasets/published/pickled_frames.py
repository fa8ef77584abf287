"""The NumPy arrays of a pickled DataFrame, rebuilt from inert records with every size and type checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.published import restricted_pickle as pickled
from bfreplay.errors import InputError

_PLAIN_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
_MOST_LABELS_OF_NOTHING = 1_000_000
_TIME_UNITS = ("s", "ms", "us", "ns")


# errors that a tree of anything but a DataFrame can raise
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class PickledFrame:
    """DataFrame as arrays.

    C columns, R rows: ``columns`` and ``index`` are the labels, shapes ``(C,)`` and ``(R,)``; each of ``blocks`` is
    (columns it holds, shape ``(B,)``; their values, shape ``(B, R)``).
    """

    columns: NDArray[Any]
    index: NDArray[Any]
    blocks: tuple[tuple[NDArray[np.int64], NDArray[Any]], ...]

    def column(self, column_name: str) -> NDArray[Any]:
        """Return the values of the column ``column_name``, shape ``(R,)``; KeyError for an unknown name."""
        position = self.columns.tolist().index(column_name) if column_name in self.columns.tolist() else -1
        for placement, values in self.blocks:
            matches = np.flatnonzero(placement == position)
            if matches.size:
                column: NDArray[Any] = values[matches[0]]
                return column
        raise KeyError(column_name)


def load_frame(stream: IO[bytes], file: Path) -> PickledFrame:
    """Read the DataFrame in a pickle, without running its code.

    Raises
    ------
    InputError
        Forbidden names, a damaged pickle, or another object.
    """
    tree = pickled.load_records(stream, file)
    try:
        return _frame(tree)
    except _MALFORMED as error:
        raise InputError(
            f"the pickle is not a usable DataFrame: {error}",
            file=file,
            expected=pickled.EXPECTED_PICKLE,
            fix=pickled.FIX_PICKLE,
        ) from error


def cell_list(cell: Any) -> list[Any]:
    """Return the values of a cell with a list or one-dimensional array; TypeError for anything else."""
    if isinstance(cell, pickled.ArrayRecord | pickled.BufferRecord):
        values: list[Any] = _array(cell).tolist()
    elif isinstance(cell, list | tuple):
        values = [_scalar(item) if isinstance(item, pickled.ScalarRecord) else item for item in cell]
    else:
        raise TypeError("the cell holds no list")
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in values):
        raise TypeError("the list holds values that are not numbers")
    return values


def _frame(tree: Any) -> PickledFrame:
    state = _expect(tree, pickled.FrameRecord, "the pickled object is not a DataFrame").state
    manager = _expect(state.get("_mgr", state.get("_data")), pickled.ManagerRecord, "it has no blocks")
    if manager.arguments:
        parts, axes = manager.arguments
        blocks = [_expect(part, pickled.BlockRecord, "a block is unreadable").arguments[:2] for part in parts]
    else:
        content = manager.state[3]["0.14.1"]
        axes = content["axes"]
        blocks = [(part["values"], part["mgr_locs"]) for part in content["blocks"]]
    columns_axis, index_axis = axes
    arrays = [_array(values) for values, _ in blocks]
    n_columns = len(_unsized_labels(columns_axis))
    if n_columns > sum(array.shape[0] for array in arrays):
        raise ValueError("a column is missing or occurs twice")
    read = []
    for array, (_, placement) in zip(arrays, blocks, strict=True):
        columns = _placement(placement, n_columns)
        if array.ndim == 1 and len(columns) == 1:  # pandas keeps a column of text so
            array = array[np.newaxis]
        if array.ndim != 2 or array.shape[0] != len(columns):
            raise ValueError("a block does not fit its columns")
        read.append((columns, array))
    n_rows = read[0][1].shape[1] if read else 0
    if any(array.shape[1] != n_rows for _, array in read):
        raise ValueError("its columns differ in length")
    positions = np.sort(np.concatenate([columns for columns, _ in read])) if read else np.empty(0)
    if not np.array_equal(positions, np.arange(n_columns)):
        raise ValueError("a column is missing or occurs twice")
    return PickledFrame(_labels(columns_axis, n_columns), _labels(index_axis, n_rows), tuple(read))


def _expect(record: Any, kind: type[pickled.Record], problem: str) -> Any:
    if not isinstance(record, kind):
        raise ValueError(problem)
    return record


def _placement(record: Any, n_columns: int) -> NDArray[np.int64]:
    if isinstance(record, pickled.SliceRecord):
        return np.arange(n_columns, dtype=np.int64)[slice(*record.arguments)]
    return _array(record).astype(np.int64)


def _unsized_labels(axis_record: Any) -> range | NDArray[Any]:
    """Return the labels of an axis before its length is known: a range may be longer than memory."""
    kind, parts = _expect(axis_record, pickled.IndexRecord, "an axis is not an index").arguments
    if parts.get("tz") is not None:
        raise ValueError("its times have a zone; convert them to UTC and drop the zone")
    if kind is pickled.RangeIndexRecord:
        return range(parts["start"], parts["stop"], parts["step"])
    return _array(parts["data"])


def _labels(axis_record: Any, length: int) -> NDArray[Any]:
    labels = _unsized_labels(axis_record)
    if (labels.shape if isinstance(labels, np.ndarray) else (len(labels),)) != (length,):
        raise ValueError("an axis does not fit its blocks")
    return np.array(labels, dtype=object) if isinstance(labels, range) else labels


def _array(record: Any) -> NDArray[Any]:
    reader = _ARRAY_READERS.get(type(record))
    if reader is None:
        raise ValueError(f"an array is of an unknown kind ({type(record).__name__})")
    return reader(record)


def _reconstruct(record: pickled.Record) -> NDArray[Any]:
    _, shape, dtype, is_fortran, data = record.state
    return _fill(data, dtype, shape, "F" if is_fortran else "C")


def _from_buffer(record: pickled.Record) -> NDArray[Any]:
    data, dtype, shape, order = record.arguments
    if order not in ("C", "F"):
        raise ValueError("an array has an unknown order")
    return _fill(data, dtype, shape, order)


def _fill(data: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    if not isinstance(shape, tuple) or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("an array has no proper shape")
    size = math.prod(shape)
    if not size and sum(shape) > _MOST_LABELS_OF_NOTHING:
        raise ValueError("an array without values has an absurd shape")
    kind = _dtype(dtype)
    if kind == np.dtype(object):
        if not isinstance(data, list) or len(data) != size:
            raise ValueError("an array of objects does not fit its shape")
        return np.fromiter(data, object, size).reshape(shape, order=order)
    data = _bytes(data)
    if len(data) != size * kind.itemsize:
        raise ValueError("the bytes of an array do not fit its shape")
    return np.frombuffer(data, dtype=kind).reshape(shape, order=order)


def _bytes(item: Any) -> bytes | bytearray:
    """Return bytes, given as such or in one of the two older forms."""
    if isinstance(item, pickled.BytesRecord):
        if not item.arguments:
            return b""
        inner = item.arguments[0]
        is_text = isinstance(inner, str) and item.arguments[1:] == ("latin1",)
        item = inner.encode("latin1") if is_text else _bytes(inner) if len(item.arguments) == 1 else None
    if not isinstance(item, bytes | bytearray):
        raise ValueError("an array has no bytes")
    return item


def _dtype(record: Any) -> np.dtype[Any]:
    """Return the dtype of a record: booleans, integers, floats, objects and times only."""
    _expect(record, pickled.DtypeRecord, "an array has no dtype")
    dtype_name = record.arguments[0] if record.arguments else None
    state: Sequence[Any] = record.state or ()
    if not isinstance(dtype_name, str) or any(part is not None for part in state[2:5]):
        raise ValueError("an array has a structured dtype")
    if dtype_name in ("O", "O8"):
        return np.dtype(object)
    order = state[1] if len(state) > 1 else "="
    if order not in ("<", ">", "|", "="):
        raise ValueError("an array has an unknown byte order")
    if dtype_name == "M8":
        unit = state[8][1]
        text = unit[0] if isinstance(unit[0], str) else _bytes(unit[0]).decode()
        if text not in _TIME_UNITS or tuple(unit[1:3]) != (1, 1):
            raise ValueError(f"its times are counted in {unit[0]!r}")
        return np.dtype(f"{'=' if order == '|' else order}M8[{text}]")
    if _PLAIN_DTYPE.fullmatch(dtype_name) is None:
        raise ValueError(f"an array has the dtype {dtype_name!r}")
    return np.dtype(dtype_name if dtype_name[0] in "<>|=" or order == "|" else order + dtype_name)


def _datetimes(record: pickled.Record) -> NDArray[Any]:
    state = record.state
    inner = state[1] if isinstance(state, tuple) else None
    if isinstance(state, dict):
        inner = state["_ndarray"] if state.get("_data") is None else state["_data"]
    if not isinstance(inner, pickled.ArrayRecord | pickled.BufferRecord):
        raise ValueError("an array of times is unreadable")
    return _array(inner)


def _texts(record: pickled.Record) -> NDArray[Any]:

    def argument_of(record_part: Any, kind: type[pickled.Record]) -> Any:
        return _expect(record_part, kind, "an array of text is unreadable").arguments[0]

    state = record.state
    array = argument_of(state.get("_pa_array", state.get("_data")), pickled.ArrowArrayRecord)
    text_type, length, _, offset, (_, ends_buffer, text_buffer), _ = array[:6]
    width = {"string": np.int32, "large_string": np.int64}.get(argument_of(text_type, pickled.ArrowTypeRecord))
    if width is None or type(length) is not int or type(offset) is not int or min(length, offset) < 0:
        raise ValueError("an array of text is unreadable")
    ends_bytes, text = (_bytes(argument_of(data, pickled.ArrowBufferRecord)) for data in (ends_buffer, text_buffer))
    ends = np.frombuffer(ends_bytes, dtype=width)[offset : offset + length + 1].tolist()
    if len(ends) != length + 1:
        raise ValueError("an array of text is cut")
    return np.fromiter((text[start:end].decode() for start, end in pairwise(ends)), object, length)


def _scalar(record: pickled.Record) -> Any:
    dtype, data = record.arguments
    return _fill(data, dtype, (1,), "C")[0].item()


_ARRAY_READERS: Mapping[type, Callable[[Any], NDArray[Any]]] = {
    pickled.ArrayRecord: _reconstruct,
    pickled.BufferRecord: _from_buffer,
    pickled.DatetimeRecord: _datetimes,
    pickled.TextRecord: _texts,
}
