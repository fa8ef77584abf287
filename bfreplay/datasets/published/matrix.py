"""The published BFTrainer log: a matrix of node states, as a pickle or in an archive."""

from __future__ import annotations

import tarfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.located import first_true
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.published.pickled_frames import PickledFrame, load_frame
from bfreplay.datasets.times import iso_utc
from bfreplay.documents import unpacked_limit
from bfreplay.errors import InputError

MAX_MEMBER_BYTES = 4 << 30
_NODES_AT_ONCE = 64
_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def read_published_events(path: str | PathLike[str]) -> NodeEvents:
    """Read a node-state matrix: one row per instant (index of times, UTC), one column per node, 0 busy and 1 idle.

    Parameters
    ----------
    path
        A pickled DataFrame (``.pkl``), or a gzipped tar archive with exactly one such member.

    Returns
    -------
    NodeEvents
        In memory. The window is from the first row to the last; every column is a node.

    Raises
    ------
    InputError
        Another content, or a pickle that names anything but arrays and DataFrames.
    """
    matrix_file = Path(path)
    is_archive = matrix_file.name.lower().endswith((".tar.gz", ".tgz"))
    data_frame = _frame_in_archive(matrix_file) if is_archive else read_pickled_frame(matrix_file)
    times = _row_times(data_frame, matrix_file)
    names = data_frame.columns.tolist()
    for column_name in names:
        if not isinstance(column_name, str):
            raise InputError(
                "a column of the node-state matrix is not named after a node",
                file=matrix_file,
                column=str(column_name),
                value=column_name,
                expected="a node name for each column; job tables are read by load_jobs",
            )
    initial, row, node, idle = _transitions(data_frame, names, matrix_file)
    order = np.argsort(row, kind="stable")
    sources = (SourceFile.of(matrix_file),)
    return NodeEvents.from_arrays(
        names,
        np.where(initial, NodeState.IDLE, NodeState.BUSY),
        times[row[order]],
        node[order],
        np.where(idle[order], NodeState.IDLE, NodeState.BUSY),
        int(times[0]),
        int(times[-1]),
        EventsMetadata(source_format="node-state matrix", source_files=sources),
        sources,
    )


def read_pickled_frame(file: Path) -> PickledFrame:
    """Read the DataFrame in a ``.pkl`` file."""
    try:
        with file.open("rb") as stream:
            return load_frame(stream, file)
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", file=file, fix="check the path") from error


def _frame_in_archive(archive_file: Path) -> PickledFrame:
    frame_name: str | None = None
    data_frame: PickledFrame | None = None
    most_bytes = min(MAX_MEMBER_BYTES, unpacked_limit(archive_file))
    try:
        with tarfile.open(archive_file, "r:gz") as archive:
            for member in archive:
                if member.size > most_bytes:
                    raise InputError(
                        f"the archive member {member.name!r} is too large",
                        file=archive_file,
                        value=f"{member.size:,} bytes",
                        expected=f"at most {most_bytes:,} bytes, from the size of the archive",
                        fix="do not trust this file; or unpack it yourself and give the .pkl",
                    )
                if not (member.isfile() and member.name.endswith(".pkl")):
                    continue
                if frame_name is not None:
                    raise _not_one_pickle(archive_file, f"{frame_name!r} and {member.name!r}")
                frame_name = member.name
                stream = archive.extractfile(member)
                if stream is not None:
                    data_frame = load_frame(stream, archive_file)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"the archive cannot be read: {error}",
            file=archive_file,
            expected="a gzipped tar archive with one .pkl member",
            fix="check the path, and copy the file again",
        ) from error
    if data_frame is None:
        raise _not_one_pickle(archive_file, "none")
    return data_frame


def _not_one_pickle(archive_file: Path, content: str) -> InputError:
    return InputError(
        "the archive does not have exactly one pickle",
        file=archive_file,
        value=content,
        expected="exactly one member whose name ends in .pkl",
        fix="unpack it and give the right .pkl",
    )


def _row_times(data_frame: PickledFrame, matrix_file: Path) -> NDArray[np.int64]:
    if data_frame.index.dtype.kind != "M" or not len(data_frame.index) or not len(data_frame.columns):
        raise InputError(
            "the pickle is not a node-state matrix: its rows have no times, or there are no rows",
            file=matrix_file,
            value=f"{len(data_frame.index)} rows x {len(data_frame.columns)} columns, index {data_frame.index.dtype}",
            expected="an index of times (rows) and node names (columns); job tables are read by load_jobs",
        )
    times = times_us(data_frame.index, matrix_file, "index")
    row_index = first_true(times[1:] <= times[:-1])
    if row_index is not None:
        raise InputError(
            "the times of the rows do not increase",
            file=matrix_file,
            row=row_index + 2,
            column="index",
            value=iso_utc(int(times[row_index + 1])),
            expected=f"later than {iso_utc(int(times[row_index]))}, the row before",
            fix="sort the matrix by time and keep one row for each",
        )
    return times


def times_us(times: NDArray[Any], pickle_file: Path, column: str) -> NDArray[np.int64]:
    """Return microseconds since the epoch of ``datetime64`` values, shape ``(R,)``; InputError for other values."""
    if times.dtype.kind != "M":
        raise InputError(
            "a column holds no times", file=pickle_file, column=column, value=str(times.dtype), expected="datetime64"
        )
    ticks = times.astype(times.dtype.newbyteorder("=")).view(np.int64)
    unit = np.datetime_data(times.dtype)[0]
    row_index = first_true(np.isnat(times) | ((ticks % 1_000 != 0) if unit == "ns" else False))
    if row_index is not None:
        raise InputError(
            "a time is missing or finer than a microsecond",
            file=pickle_file,
            row=row_index + 1,
            column=column,
            value=str(times[row_index]),
            expected="times that are whole microseconds",
            fix="round the times, or drop the row",
        )
    return ticks // 1_000 if unit == "ns" else ticks * _US_PER_UNIT[unit]


def _transitions(
    data_frame: PickledFrame, names: list[str], matrix_file: Path
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the first row; and row, node and new state of every change, by node; few nodes in memory at a time."""
    initial, changes = np.zeros(len(names), dtype=np.bool_), []
    for placement, values in data_frame.blocks:
        if values.dtype.kind not in "biuf":
            raise InputError(
                "the node-state matrix holds values that are not numbers",
                file=matrix_file,
                column=names[int(placement[0])],
                value=str(values.dtype),
                expected="0 for busy and 1 for idle",
            )
        for begin in range(0, len(placement), _NODES_AT_ONCE):
            piece = np.ascontiguousarray(values[begin : begin + _NODES_AT_ONCE])
            idle = piece == 1
            wrong = np.argwhere(~idle & (piece != 0))
            if len(wrong):
                node_index, row = wrong[0]
                raise InputError(
                    "a state is neither 0 nor 1",
                    file=matrix_file,
                    row=int(row) + 1,
                    column=names[int(placement[begin + node_index])],
                    value=piece[node_index, row].item(),
                    expected="0 for busy and 1 for idle",
                )
            node_slice = placement[begin : begin + _NODES_AT_ONCE]
            initial[node_slice] = idle[:, 0]
            place, row_before = np.nonzero(idle[:, 1:] != idle[:, :-1])
            changes.append((row_before + 1, node_slice[place], idle[place, row_before + 1]))
    rows, nodes, states = (np.concatenate(pieces) for pieces in zip(*changes, strict=True))
    return initial, rows, nodes, states
