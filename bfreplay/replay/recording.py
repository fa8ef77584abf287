"""The recorded decisions of a run, and the check that a replay repeats them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.replay.result import RunResult
from bfreplay.replay.tables import DECISIONS, NoSink, RowTable

OF_THE_ANSWER = (
    "objective", "bound", "gap", "solver", "process_status", "solver_status", "quality", "fell_back_from",
    "rejected_process_status", "rejected_solver_status", "rejected_quality", "message",
)  # fmt: skip
"""Columns of what stands behind an answer."""

_SAME = (
    "time", "trigger", "n_idle", "n_joined", "n_left", "n_jobs", "n_jobs_running", "n_jobs_preempted", "n_jobs_grown",
    "n_jobs_shrunk", "n_nodes_used",
)  # fmt: skip
_CLOSE = ("rate_samples_per_s", "samples_since_last", "rescale_cost_samples", "preempt_cost_samples")
_POSITION = {name: k for k, name in enumerate(DECISIONS.names)}
_TOLERANCE = 1e-6
"""Another processor may round sums of samples otherwise."""


class LastReached(Exception):  # noqa: N818  # no error: the replay need not go on
    """The last decision that was asked for has been checked."""


class Recording(RowTable):
    """The decision table of ``run`` up to row ``last``. It takes the rows of a replay in place of a table.

    Raises
    ------
    InputError
        There is no such row, or the table does not hold the counts that were decided.
    """

    def __init__(self, run: RunResult, last: int) -> None:
        super().__init__(DECISIONS, NoSink())
        table = run.table("decisions")
        check_decision(run, last)
        if "counts" not in table.column_names:
            raise InputError(
                "the run does not hold the counts that were decided", file=run.folder, column="counts",
                expected="a column of the table 'decisions'", fix="replay again with this version of bfreplay",
            )  # fmt: skip
        self._last = last
        table = table.slice(0, last + 1).combine_chunks()
        self._version = run.record.versions.get("bfreplay")
        self._columns_of_run = {
            name: (table[name].cast("int64") if name == "time" else table[name]).to_pylist()
            for name in (*_SAME, *_CLOSE, *OF_THE_ANSWER)
        }
        if "t_fwd_s" in table.column_names:  # runs of older versions have none
            self._columns_of_run["t_fwd_s"] = table["t_fwd_s"].to_pylist()
        lists = table["counts"].combine_chunks()
        ends = np.cumsum(np.asarray(lists.value_lengths()), dtype=np.int64)
        self._counts = np.split(np.asarray(lists.flatten(), dtype=np.int64), ends[:-1])

    @property
    def n_expected(self) -> int:
        """Rows up to the last one."""
        return self._last + 1

    def row(self, index: int) -> dict[str, Any]:
        """What was recorded of a decision, without its counts."""
        return {name: column[index] for name, column in self._columns_of_run.items()}

    def counts(self, index: int) -> NDArray[np.int64]:
        """(J,) what was decided."""
        return self._counts[index]

    def difference(self, index: int, here: str, recorded: str) -> InputError:
        """The error for a replay that goes another way."""
        time_us = self._columns_of_run["time"][index]
        return InputError(
            f"the replay does not repeat the run: here {here}, recorded {recorded}",
            row=f"decision {index} at {iso_utc(time_us)}",
            fix=(
                f"the run was made by bfreplay {self._version}: replay again with this version, and with code of your "
                "own (score function, pruner, job source, objective) as it was then. A run whose policy places nodes "
                "itself, or whose first map was not the seeded one, cannot be repeated by its counts"
            ),
        )

    def value(self, name: str) -> Any:
        """What was recorded of the decision to come."""
        return self._columns_of_run[name][self.n_rows]

    def check(self, name: str, here: Any) -> None:
        """Compare a number of the decision to come with what was recorded."""
        recorded = self.value(name)
        if here != recorded:
            raise self.difference(self.n_rows, f"{name} is {here!r}", f"{recorded!r}")

    def append(self, row: Sequence[Any]) -> None:
        """One row of the replay, in the order of the schema."""
        index = self.n_rows
        for name in _SAME:
            self.check(name, row[_POSITION[name]])
        counts = row[_POSITION["counts"]]
        if not np.array_equal(counts, self._counts[index]):
            raise self.difference(index, f"counts are {counts.tolist()}", f"{self._counts[index].tolist()}")
        for name in _CLOSE:
            here, recorded = row[_POSITION[name]], self.value(name)
            if not math.isclose(here, recorded, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                raise self.difference(index, f"{name} is {here!r}", f"{recorded!r}")
        self.n_rows += 1
        if index == self._last:
            raise LastReached


def check_decision(run: RunResult, index: int) -> None:
    """Raise ``InputError`` unless the run has a decision ``index``."""
    total = run.table("decisions").num_rows
    if not 0 <= index < total:
        raise InputError(
            "the run has no such decision", file=run.folder, column="decision", value=index,
            expected=f"0 to {total - 1}" if total else "a run with decisions",
        )  # fmt: skip
