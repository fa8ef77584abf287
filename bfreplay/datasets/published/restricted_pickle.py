"""Pickled DataFrames read without running anything they name.

A pickle is a program that may call any function it names. Only the names of an explicit list are accepted, and even
those are not called: each stands for an inert :class:`Record` that only keeps its arguments. The result is a tree of
records, which ``pickled_frames`` turns into NumPy arrays, checking
every size and type. pandas is not imported, so files of pandas 1, 2 and 3 read alike.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from io import SEEK_END
from pathlib import Path
from pickle import BINBYTES8, BYTEARRAY8
from typing import IO, Any, ClassVar, NoReturn

from bfreplay.errors import InputError


class Record:
    """Arguments and state of a call in a pickle that was not made."""

    arguments: tuple[Any, ...]
    state: Any

    def __new__(cls, *arguments: Any) -> Record:
        """Keep the arguments."""
        self = object.__new__(cls)
        self.arguments = arguments
        self.state = None
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


class ArrayRecord(Record):
    """A NumPy array: ``_reconstruct`` with its bytes or objects as state."""


class BufferRecord(Record):
    """A NumPy array: ``_frombuffer(bytes, dtype, shape, order)``."""


class ScalarRecord(Record):
    """A NumPy scalar: ``scalar(dtype, bytes)``."""


class DtypeRecord(Record):
    """A NumPy dtype."""


class DatetimeRecord(Record):
    """pandas' wrapper around an array of times."""


class TextRecord(Record):
    """pandas' wrapper around an array of text."""


class ArrowArrayRecord(Record):
    """An Arrow array of text, as pandas 3 keeps column names."""


class ArrowBufferRecord(Record):
    """The bytes of an Arrow array."""


class ArrowTypeRecord(Record):
    """The name of an Arrow type."""


class IndexRecord(Record):
    """A pandas index: ``_new_Index(class, {...})``."""


class RangeIndexRecord(Record):
    """The class of an index that counts."""


class BlockRecord(Record):
    """Columns of one dtype: ``_unpickle_block(values, placement, ndim)``."""


class BytesRecord(Record):
    """Bytes as protocols below 5 keep them: ``bytearray(bytes)``, or below 3 ``encode(text, "latin1")``."""


class SliceRecord(Record):
    """A slice."""


class ManagerRecord(Record):
    """The blocks and axes of a DataFrame."""


class FrameRecord(Record):
    """A DataFrame."""


class NameRecord(Record):
    """A class that is only passed as an argument."""


ALLOWED: Mapping[tuple[str, str], type[Record]] = {
    ("builtins", "slice"): SliceRecord,
    ("__builtin__", "slice"): SliceRecord,
    ("builtins", "bytearray"): BytesRecord,
    ("__builtin__", "bytearray"): BytesRecord,
    ("_codecs", "encode"): BytesRecord,
    ("numpy", "ndarray"): NameRecord,
    ("numpy", "dtype"): DtypeRecord,
    ("numpy.core.multiarray", "_reconstruct"): ArrayRecord,
    ("numpy._core.multiarray", "_reconstruct"): ArrayRecord,
    ("numpy.core.multiarray", "scalar"): ScalarRecord,
    ("numpy._core.multiarray", "scalar"): ScalarRecord,
    ("numpy.core.numeric", "_frombuffer"): BufferRecord,
    ("numpy._core.numeric", "_frombuffer"): BufferRecord,
    ("pandas", "DataFrame"): FrameRecord,
    ("pandas.core.frame", "DataFrame"): FrameRecord,
    ("pandas.core.internals.managers", "BlockManager"): ManagerRecord,
    ("pandas._libs.internals", "_unpickle_block"): BlockRecord,
    ("pandas.core.indexes.base", "_new_Index"): IndexRecord,
    ("pandas.core.indexes.datetimes", "_new_DatetimeIndex"): IndexRecord,
    ("pandas", "Index"): NameRecord,
    ("pandas", "DatetimeIndex"): NameRecord,
    ("pandas", "RangeIndex"): RangeIndexRecord,
    ("pandas.core.indexes.base", "Index"): NameRecord,
    ("pandas.core.indexes.datetimes", "DatetimeIndex"): NameRecord,
    ("pandas.core.indexes.range", "RangeIndex"): RangeIndexRecord,
    ("pandas.core.arrays.datetimes", "DatetimeArray"): DatetimeRecord,
    ("pandas.arrays", "DatetimeArray"): DatetimeRecord,
    ("pandas._libs.arrays", "__pyx_unpickle_NDArrayBacked"): DatetimeRecord,
    ("pandas.arrays", "ArrowStringArray"): TextRecord,
    ("pandas.core.arrays.string_arrow", "ArrowStringArray"): TextRecord,
    ("pandas", "StringDtype"): NameRecord,
    ("pandas.core.arrays.string_", "StringDtype"): NameRecord,
    ("pyarrow.lib", "_restore_array"): ArrowArrayRecord,
    ("pyarrow.lib", "type_for_alias"): ArrowTypeRecord,
    ("pyarrow.lib", "py_buffer"): ArrowBufferRecord,
}

EXPECTED_PICKLE = "a pickled pandas DataFrame of numbers, text and times without a zone"
FIX_PICKLE = "export the table to Parquet or CSV where it was made, and give that file"


class _ClaimedBytes:
    """Stream that refuses to read more bytes than it has left, before allocating them."""

    def __init__(self, stream: IO[bytes]) -> None:
        start = stream.tell()
        self._left = stream.seek(0, SEEK_END) - start
        stream.seek(start)
        self._stream = stream

    def read(self, size: int) -> bytes:
        if size > self._left:
            raise pickle.UnpicklingError(f"it claims {size:,} bytes where {self._left:,} are left")
        return self._count(self._stream.read(size))

    def readline(self) -> bytes:
        return self._count(self._stream.readline())

    def _count(self, data: bytes) -> bytes:
        self._left -= len(data)
        return data


# Python's own: ten bytes make the one in C allocate 32 GB for its memo.
class _RecordUnpickler(pickle._Unpickler):
    # pickle allocates and clears the claimed size of a bytearray before reading; bytes do as well here
    dispatch: ClassVar = {**pickle._Unpickler.dispatch, BYTEARRAY8[0]: pickle._Unpickler.dispatch[BINBYTES8[0]]}

    def __init__(self, stream: IO[bytes], pickle_file: Path) -> None:
        super().__init__(_ClaimedBytes(stream))
        self._file = pickle_file

    def find_class(self, module_name: str, global_name: str) -> type[Record]:
        record = ALLOWED.get((module_name, global_name))
        if record is None:
            raise InputError(
                f"the pickle asks for {module_name}.{global_name}, which is forbidden; nothing was run",
                file=self._file,
                value=f"{module_name}.{global_name}",
                expected=EXPECTED_PICKLE,
                fix=f"do not trust this file; if you made it yourself, {FIX_PICKLE}",
            )
        return record

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to objects outside the file")


def load_records(stream: IO[bytes], file: Path) -> Any:
    """Return the tree of records in a pickle.

    Parameters
    ----------
    stream
        Stream of the pickle.
    file
        Name for messages.

    Raises
    ------
    InputError
        The pickle names something forbidden, is cut, or is not a pickle.
    """
    try:
        return _RecordUnpickler(stream, file).load()
    except InputError:
        raise
    except MemoryError as error:
        problem = "the pickle needs more memory than available"
        raise InputError(problem, file=file, expected=EXPECTED_PICKLE, fix=FIX_PICKLE) from error
    except Exception as error:  # a damaged pickle can make the unpickler raise nearly anything
        raise InputError(
            f"the file is not a readable pickle: {' '.join(str(error).split()) or type(error).__name__}",
            file=file,
            expected=EXPECTED_PICKLE,
            fix="check that it is the right file and complete",
        ) from error
