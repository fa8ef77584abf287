"""Writes a model in the CPLEX LP format, which people read as well as solvers do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bfreplay.milp.files.names import unused_name, usable_names
from bfreplay.milp.model import LinearModel
from bfreplay.milp.sparse import by_row
from bfreplay.outputs import write_whole

_WIDTH = 120
"""Longest line, where a single name is not longer: some readers stop at 255 characters, CPLEX at 560."""

# e1 would be read as a part of a number, and section headings and words for infinity as themselves
_NAME = re.compile(
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
    columns = usable_names([_round_brackets(name) for name in model.column_names], _NAME, "c")
    rows = usable_names([_round_brackets(name) for name in model.row_names], _NAME, "r")
    constant = unused_name("objective_constant", set(columns))
    gains = [f"{_signed(gain)} {name}" for gain, name in zip(model.objective.tolist(), columns, strict=True)]
    if model.objective_constant:
        gains.append(f"{_signed(float(model.objective_constant))} {constant}")
    lines = ["\\ one decision of bfreplay", "Maximize", *_wrapped(" objective:", gains), "Subject To"]
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
            lines.extend([heading, *_wrapped("", names)])
    if model.sets:
        lines.append("SOS")
        for i, group in enumerate(model.sets):
            members = zip(group.columns.tolist(), group.weights.tolist(), strict=True)
            lines.extend(_wrapped(f" set{i}: S{group.kind}::", [f"{columns[c]}:{_number(w)}" for c, w in members]))
    lines.append("End")
    return "\n".join(lines) + "\n"


def _rows(model: LinearModel, rows: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    matrix = by_row(model)
    start, entry_column, entry_value = matrix.start.tolist(), matrix.index.tolist(), matrix.value.tolist()
    taken = set(rows)
    anyone = columns[0] if columns else "nothing"
    for r, (row, low, high) in enumerate(zip(rows, model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        terms = [f"{_signed(entry_value[e])} {columns[entry_column[e]]}" for e in range(start[r], start[r + 1])]
        terms = terms or [f"0 {anyone}"]  # a row without entries may still ask for the impossible
        if low == high:
            yield from _wrapped(f" {row}:", [*terms, f"= {_number(low)}"])
            continue
        if math.isfinite(high):
            yield from _wrapped(f" {row}:", [*terms, f"<= {_number(high)}"])
            if math.isfinite(low):
                row = unused_name(f"{row}_least", taken)
                taken.add(row)
        if math.isfinite(low):
            yield from _wrapped(f" {row}:", [*terms, f">= {_number(low)}"])


def _bound(name: str, low: float, high: float) -> Iterator[str]:
    """Lines for one column; none for what the format takes for granted: 0 to infinity."""
    if low == high:
        yield f" {name} = {_number(low)}"
    elif math.isinf(low) and math.isinf(high):
        yield f" {name} free"
    elif math.isinf(low):
        yield f" -infinity <= {name} <= {_number(high)}"
    elif math.isfinite(high):
        yield f" {_number(low)} <= {name} <= {_number(high)}"
    elif low != 0:
        yield f" {name} >= {_number(low)}"


def _wrapped(head: str, parts: Iterable[str]) -> Iterator[str]:
    line = head
    for part in parts:
        if len(line) + 1 + len(part) > _WIDTH and line.strip():
            yield line
            line = " "
        line += " " + part
    yield line


def _signed(number: float) -> str:
    return f"- {_number(-number)}" if number < 0 else f"+ {_number(number)}"


def _number(number: float) -> str:
    """The shortest text that is read back as the same float."""
    return repr(number + 0.0).removesuffix(".0")


def _round_brackets(name: str) -> str:
    return name.replace("[", "(").replace("]", ")")
