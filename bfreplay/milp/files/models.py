"""Models in files: MPS and LP."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bfreplay.milp.model import LinearModel, by_column, by_row
from bfreplay.outputs import write_whole


def usable_names(names: Sequence[str], pattern: re.Pattern[str], letter: str) -> Sequence[str]:
    """``names`` if all match ``pattern`` and are unique; otherwise all become ``letter`` and a number, from 0.

    All or none, so that a new name never meets an old one.
    """
    if len(set(names)) == len(names) and all(pattern.fullmatch(name) for name in names):
        return names
    return [f"{letter}{i}" for i in range(len(names))]


def unused_name(wish: str, taken: Collection[str]) -> str:
    """``wish``, with as many underscores after it as it takes to be none of ``taken``."""
    while wish in taken:
        wish += "_"
    return wish


def file_stem(name: str) -> str:
    """``"choices on cbc"`` as ``"choices-on-cbc"``: letters, digits, ``. _ -``, and ``-`` for everything else."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name)


_MPS_NAME = re.compile(r"[!-#%-)+-~][!-~]{0,99}")  # printable ASCII without spaces; * and $ begin a comment


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
    rows, columns = usable_names(model.row_names, _MPS_NAME, "r"), usable_names(model.column_names, _MPS_NAME, "c")
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


def _kind(lower_side: float, upper_side: float) -> str:
    if lower_side == upper_side:
        return "E"
    if math.isfinite(upper_side):
        return "L"
    return "G" if math.isfinite(lower_side) else "N"


_WIDTH = 120
"""Longest line, where a single name is not longer: some readers stop at 255 characters, CPLEX at 560."""

# e1 would be read as a part of a number, and section headings and words for infinity as themselves
_LP_NAME = re.compile(
    r"(?!(?:[eE][0-9]|(?:"
    r"st|s\.t\.|such|subject|max|min|maximi[sz]e|minimi[sz]e|maximum|minimum|bounds?|free|inf|infinity|"
    r"bin|binary|binaries|gen|general|generals|int|integers?|semis?|semi|sec|sos|sos1|sos2|s1|s2|end"
    r")$))[A-Za-z_][A-Za-z0-9_.,()]{0,99}",
    re.IGNORECASE,
)


def write_lp(model: LinearModel, path: Path) -> None:
    """Write ``model`` with its true (unscaled) objective; complete or not at all."""
    write_whole(path, lp_text(model))


def lp_text(model: LinearModel) -> str:
    """Return LP text, written so that CBC, Gurobi, HiGHS and SCIP read the same model from it.

    - ``y[0,3]`` becomes ``y(0,3)``: brackets mean something else here. Names that cannot be used even then become
      ``r0, r1, ...`` or ``c0, c1, ...``, in the model's order.
    - All columns stand in the objective, with 0 where they add nothing, so that they keep their order.
    - A constant in the objective is a further column fixed at 1, which all readers understand.
    - A row with two different bounds is two rows, the second with ``_least`` at the end of its name.
    """
    columns = usable_names([_round_brackets(name) for name in model.column_names], _LP_NAME, "c")
    rows = usable_names([_round_brackets(name) for name in model.row_names], _LP_NAME, "r")
    constant = unused_name("objective_constant", set(columns))
    gains = [f"{_with_sign(gain)} {name}" for gain, name in zip(model.objective.tolist(), columns, strict=True)]
    if model.objective_constant:
        gains.append(f"{_with_sign(float(model.objective_constant))} {constant}")
    lines = ["\\ one decision of bfreplay", "Maximize", *_wrap(" objective:", gains), "Subject To"]
    lines.extend(_rows(model, rows, columns))
    lines.append("Bounds")
    if model.objective_constant:
        lines.append(f" {constant} = 1")
    lower, upper = model.column_lower.tolist(), model.column_upper.tolist()
    is_binary = model.is_integer & (model.column_lower == 0) & (model.column_upper == 1)
    for name, low, high, binary in zip(columns, lower, upper, is_binary.tolist(), strict=True):
        if not binary:
            lines.extend(_bound(name, low, high))
    for heading, chosen in (("Binaries", is_binary), ("Generals", model.is_integer & ~is_binary)):
        names = [columns[c] for c in np.flatnonzero(chosen).tolist()]
        if names:
            lines.extend([heading, *_wrap("", names)])
    if model.sets:
        lines.append("SOS")
        for i, group in enumerate(model.sets):
            members = zip(group.columns.tolist(), group.weights.tolist(), strict=True)
            lines.extend(_wrap(f" set{i}: S{group.kind}::", [f"{columns[c]}:{_number(w)}" for c, w in members]))
    lines.append("End")
    return "\n".join(lines) + "\n"


def _rows(model: LinearModel, rows: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    matrix = by_row(model)
    start, entry_column, entry_value = matrix.start.tolist(), matrix.index.tolist(), matrix.value.tolist()
    taken = set(rows)
    anyone = columns[0] if columns else "nothing"
    for r, (row, low, high) in enumerate(zip(rows, model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        terms = [f"{_with_sign(entry_value[e])} {columns[entry_column[e]]}" for e in range(start[r], start[r + 1])]
        terms = terms or [f"0 {anyone}"]  # a row without entries may still ask for the impossible
        if low == high:
            yield from _wrap(f" {row}:", [*terms, f"= {_number(low)}"])
            continue
        if math.isfinite(high):
            yield from _wrap(f" {row}:", [*terms, f"<= {_number(high)}"])
            if math.isfinite(low):
                row = unused_name(f"{row}_least", taken)
                taken.add(row)
        if math.isfinite(low):
            yield from _wrap(f" {row}:", [*terms, f">= {_number(low)}"])


def _bound(column_name: str, lower_side: float, upper_side: float) -> Iterator[str]:
    """Lines for one column; none for what the format takes for granted: 0 to infinity."""
    if lower_side == upper_side:
        yield f" {column_name} = {_number(lower_side)}"
    elif math.isinf(lower_side) and math.isinf(upper_side):
        yield f" {column_name} free"
    elif math.isinf(lower_side):
        yield f" -infinity <= {column_name} <= {_number(upper_side)}"
    elif math.isfinite(upper_side):
        yield f" {_number(lower_side)} <= {column_name} <= {_number(upper_side)}"
    elif lower_side != 0:
        yield f" {column_name} >= {_number(lower_side)}"


def _wrap(head: str, parts: Iterable[str]) -> Iterator[str]:
    line = head
    for part in parts:
        if len(line) + 1 + len(part) > _WIDTH and line.strip():
            yield line
            line = " "
        line += " " + part
    yield line


def _with_sign(number: float) -> str:
    return f"- {_number(-number)}" if number < 0 else f"+ {_number(number)}"


def _number(number: float) -> str:
    """The shortest text that is read back as the same float."""
    return repr(number + 0.0).removesuffix(".0")


def _round_brackets(name: str) -> str:
    return name.replace("[", "(").replace("]", ")")
