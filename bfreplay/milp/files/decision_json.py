"""Decisions as JSON, with everything that is needed to pose them again; folders of those that a solver failed at."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.documents import parse_json
from bfreplay.errors import InputError
from bfreplay.milp.files.models import file_stem, write_mps
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem
from bfreplay.outputs import write_whole

SCHEMA = "bfreplay decision, version 1"


def decision_text(problem: AllocationProblem, about: Mapping[str, object] | None = None) -> str:
    """``problem`` as JSON text, a line for each entry and each job. Floats read back bit for bit.

    ``gain`` has one list a job, for 0 to ``max_nodes`` nodes: further columns are never read. Where losses depend on
    the count there is a ``loss`` like it, with ``null`` for a count that is forbidden. ``about`` is kept as it is, for
    whoever reads the file.
    """
    arrays = problem.arrays().items()
    texts = {
        "schema": json.dumps(SCHEMA),
        "about": _lines("{}", [f"{json.dumps(label)}: {json.dumps(value)}" for label, value in (about or {}).items()]),
        "capacity": json.dumps(int(problem.capacity)),
        "change_limit": json.dumps(None if problem.change_limit is None else int(problem.change_limit)),
        **{name: json.dumps(array.tolist()) for name, array in arrays if array.ndim == 1},
        **{name: _table_text(array, problem.max_nodes.tolist()) for name, array in arrays if array.ndim == 2},
    }
    return "{\n" + ",\n".join(f' "{field_name}": {field_text}' for field_name, field_text in texts.items()) + "\n}\n"


def _table_text(table: NDArray[np.float64], max_nodes: Sequence[int]) -> str:
    """Return the read part of ``table``, a line for each job, with ``null`` for infinity."""
    rows = [row[: most + 1] for row, most in zip(table.tolist(), max_nodes, strict=True)]
    return _lines("[]", [json.dumps([None if number == math.inf else number for number in row]) for row in rows])


def _lines(brackets: str, entries: Sequence[str]) -> str:
    """Entries of an object or a list, a line each."""
    if not entries:
        return brackets
    return brackets[0] + "\n" + ",\n".join(f"  {entry}" for entry in entries) + "\n " + brackets[1]


def write_decision(problem: AllocationProblem, path: Path, about: Mapping[str, object] | None = None) -> None:
    """Write ``decision_text`` to ``path``; complete or not at all."""
    write_whole(path, decision_text(problem, about))


def read_decision(path: Path) -> AllocationProblem:
    """Read what ``write_decision`` wrote, and check it.

    Raises
    ------
    InputError
        It is no such file, or the decision in it is not valid.
    """
    document = _document(path)
    try:
        names = ("gain", "loss") if "loss" in document else ("gain",)
        rows_of = {name: [_row(name, numbers) for numbers in document[name]] for name in names}
        if not isinstance(document["capacity"], int):
            raise ValueError(f"capacity is {document['capacity']!r}, not a whole number")
        given: dict[str, Any] = {name: document[name] for name in ("capacity", "change_limit")}
        given |= {name: _whole_numbers(name, document[name]) for name in ("current", "min_nodes", "max_nodes")}
        given |= {name: _table(rows) for name, rows in rows_of.items()}
        if "loss" in given:
            problem = AllocationProblem.by_count(**given)
        else:
            given |= {name: np.array(document[name], np.float64) for name in ("scale_up_loss", "scale_down_loss")}
            problem = AllocationProblem(**given)
        wrong_lengths = [
            (name, job_index, len(row))
            for name, rows in rows_of.items()
            for job_index, row in enumerate(rows)
            if len(row) != problem.max_nodes[job_index] + 1
        ]
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        problem_text = f"it has no {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        raise InputError(
            f"the decision cannot be read: {problem_text}",
            file=path,
            expected="the fields and shapes that 'bfreplay export-decision' writes",
        ) from error
    for name, job_index, length in wrong_lengths[:1]:
        raise InputError(
            f"{name} of job {job_index} has the wrong length",
            file=path,
            column=name,
            value=length,
            expected=f"{int(problem.max_nodes[job_index]) + 1}: one number for 0 to max_nodes",
        )
    try:
        problem.validate()
    except InputError as error:
        raise error.with_changes(file=path, value=error.value) from error
    return problem


def _document(path: Path) -> dict[str, Any]:
    try:
        document = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", file=path, expected="a file of 'bfreplay export-decision'") from error
    if not (isinstance(document, dict) and document.get("schema") == SCHEMA):
        schema = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise InputError(
            "is no decision",
            file=path,
            column="schema",
            value=schema,
            expected=SCHEMA,
            fix="write one with 'bfreplay export-decision'",
        )
    return document


def _row(name: str, numbers: Any) -> NDArray[np.float64]:
    if not isinstance(numbers, list):
        raise TypeError(f"{name} is no list of lists of numbers")
    return np.array([math.inf if number is None else number for number in numbers], dtype=np.float64)


def _table(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    table = np.zeros((len(rows), max(map(len, rows), default=1)))
    for job_index, row in enumerate(rows):
        table[job_index, : len(row)] = row
    return table


def _whole_numbers(field_name: str, values: Any) -> NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    if array.tolist() != values:  # numpy cuts fractions off
        raise ValueError(f"{field_name} is no list of whole numbers")
    return array


class FailureFolder:
    """Folder that gets two files for each failure: ``choices-on-cbc-00000.mps`` and ``.json`` beside it.

    The folder is made with the first failure. Files that are there stay; several processes may share it.

    Parameters
    ----------
    folder
        Where they go.
    most
        Failures to keep of each solver and kind (process status, solver status, quality), for models of megabytes add
        up; ``None`` for all.
    """

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder = folder
        self._most = most
        self._next: dict[str, int] = {}
        self._kept: Counter[tuple[str, ...]] = Counter()

    def keep(
        self, solver: str, problem: AllocationProblem, model: LinearModel | None, about: Mapping[str, object]
    ) -> None:
        """Write the model (if there is one) and its decision; ``about`` describes the failure."""
        kind = (solver, *(str(about.get(name)) for name in ("process_status", "solver_status", "quality")))
        if self._most is not None and self._kept[kind] >= self._most:
            return
        self._kept[kind] += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        decision = self._claim_file(file_stem(solver))
        try:
            if model is not None:
                write_mps(model, decision.with_suffix(".mps"))
            write_decision(problem, decision, {"solver": solver, **about})
        except BaseException:
            decision.unlink()
            raise

    def _claim_file(self, stem: str) -> Path:
        """Return the first free file name, made as an empty file at once: other processes may write here too."""
        while True:
            number = self._next.get(stem, 0)
            self._next[stem] = number + 1
            decision = self._folder / f"{stem}-{number:05d}.json"
            with suppress(FileExistsError):
                decision.touch(exist_ok=False)
                return decision
