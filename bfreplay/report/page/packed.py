"""Arrays and documents as short texts inside a page; ``unpack.js`` is the other end."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.step_series import StepSeries
from bfreplay.result_folders.records import JsonObject

_WHOLE = (np.uint8, np.uint16, np.uint32)
_US_PER_S = 1_000_000
_UNITS_US = (_US_PER_S, 1_000, 1)


def packed_numbers(values: NDArray[np.float64] | NDArray[np.int64]) -> JsonObject:
    """``values (N,)``, none of them nan: the smallest unsigned whole numbers that hold them all, else 64-bit floats."""
    numbers = np.asarray(values)
    kind: type[np.generic] = np.float64
    if not numbers.size or (numbers.min() >= 0 and np.array_equal(numbers, np.floor(numbers))):
        most = float(numbers.max(initial=0))
        kind = next((whole for whole in _WHOLE if most <= np.iinfo(whole).max), np.float64)
    as_kind = numbers.astype(np.dtype(kind).newbyteorder("<"))
    return {"type": np.dtype(kind).name, "n": int(numbers.size), "zlib": _text(as_kind.tobytes())}


def packed_steps(series: StepSeries, start_us: int) -> JsonObject:
    """A step function: lengths of its steps in ``unit_s``, and its heights; ``least`` and ``most`` where they differ.

    ``start_us`` is the start of the window, from which the page counts seconds.
    """
    length_us = np.diff(series.edge_us)
    unit_us = next(unit for unit in _UNITS_US if not (length_us % unit).any() and not (series.edge_us[0] % unit))
    document: JsonObject = {
        "start_s": (int(series.edge_us[0]) - start_us) / _US_PER_S,
        "unit_s": unit_us / _US_PER_S,
        "length": packed_numbers(length_us // unit_us),
        "mean": packed_numbers(series.mean),
    }
    if not series.is_exact:
        document |= {"least": packed_numbers(series.least), "most": packed_numbers(series.most)}
    return document


def packed_document(document: Any) -> str:
    """Any JSON document, compressed; ``nan`` and ``inf`` are refused by ``ValueError``."""
    return _text(json.dumps(document, allow_nan=False, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")
