"""Writes a model as free-format MPS, which every MILP solver reads."""

from __future__ import annotations

import math
import re
from pathlib import Path

from bfreplay.milp.files.names import unused_name, usable_names
from bfreplay.milp.model import LinearModel
from bfreplay.milp.sparse import by_column
from bfreplay.outputs import write_whole

_NAME = re.compile(r"[!-#%-)+-~][!-~]{0,99}")  # printable ASCII without spaces; * and $ begin a comment


def write_mps(model: LinearModel, path: Path) -> None:
    """Write ``model`` with its true (unscaled) objective; complete or not at all.

    The model maximises and MPS has no reliable way to say so: what is written minimises the negative.
    """
    write_whole(path, mps_text(model))


def mps_text(model: LinearModel) -> str:
    """Return free-format MPS text; rows and columns keep their names.

    Names that MPS cannot hold (spaces, say) become ``r0, r1, ...`` or ``c0, c1, ...``, in the model's order. Both
    bounds of every column are written out, because readers differ in what they take for granted of integer ones.
    """
    rows, columns = usable_names(model.row_names, _NAME, "r"), usable_names(model.column_names, _NAME, "c")
    objective = unused_name("negative_objective", set(rows))
    kinds = [_kind(low, high) for low, high in zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)]
    lines = [
        "* minimises the negative of bfreplay's objective",
        "NAME bfreplay FREE",  # without that word CBC takes bounds without a number for fixed columns of text
        "ROWS",
        f" N {objective}",
        *(f" {kind} {row}" for kind, row in zip(kinds, rows, strict=True)),
        "COLUMNS",
    ]
    matrix = by_column(model)
    start, entry_row, entry_value = matrix.start.tolist(), matrix.index.tolist(), matrix.value.tolist()
    inside = False
    for c, (column, whole, gain) in enumerate(
        zip(columns, model.is_integer.tolist(), model.objective.tolist(), strict=True)
    ):
        if whole != inside:
            lines.append(f" MARK 'MARKER' '{'INTORG' if whole else 'INTEND'}'")
            inside = whole
        lines.append(f" {column} {objective} {0.0 - gain!r}")
        lines.extend(f" {column} {rows[entry_row[e]]} {entry_value[e]!r}" for e in range(start[c], start[c + 1]))
    if inside:
        lines.append(" MARK 'MARKER' 'INTEND'")
    lines.append("RHS")
    if model.objective_constant:
        lines.append(f" RHS {objective} {float(model.objective_constant)!r}")
    ranges = []
    for row, kind, low, high in zip(rows, kinds, model.row_lower.tolist(), model.row_upper.tolist(), strict=True):
        side = high if kind == "L" else low
        if kind != "N" and side != 0:
            lines.append(f" RHS {row} {side!r}")
        if kind == "L" and math.isfinite(low):
            ranges.append(f" RNG {row} {high - low!r}")
    lines.extend(["RANGES", *ranges] if ranges else [])
    lines.append("BOUNDS")
    for column, low, high in zip(columns, model.column_lower.tolist(), model.column_upper.tolist(), strict=True):
        lines.append(f" LO BND {column} {low!r}" if math.isfinite(low) else f" MI BND {column}")
        lines.append(f" UP BND {column} {high!r}" if math.isfinite(high) else f" PL BND {column}")
    if model.sets:
        lines.append("SOS")
        for i, group in enumerate(model.sets):
            lines.append(f" S{group.kind} SOS set{i}")
            members = zip(group.columns.tolist(), group.weights.tolist(), strict=True)
            lines.extend(f" {columns[c]} {weight!r}" for c, weight in members)
    lines.append("ENDATA")
    return "\n".join(lines) + "\n"


def _kind(low: float, high: float) -> str:
    if low == high:
        return "E"
    if math.isfinite(high):
        return "L"
    return "G" if math.isfinite(low) else "N"
