"""HiGHS through highspy."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from bfreplay.milp.backends.arrays import (
    TOLERANCE,
    Report,
    Stopwatch,
    refuse_sets,
    resolve_unbounded,
    status_of,
    trivial_answer,
)
from bfreplay.milp.backends.backend import (
    OR_TOOLS,
    BackendAnswer,
    Capabilities,
    SolveOptions,
    objective_scale,
    refuse_beside,
    silent_stdout,
    unmet,
)
from bfreplay.milp.model import LinearModel, by_column
from bfreplay.milp.solution import SolverStatus

STATUSES = {
    "kOptimal": SolverStatus.OPTIMAL,
    "kInfeasible": SolverStatus.INFEASIBLE,
    "kUnbounded": SolverStatus.UNBOUNDED,
    "kTimeLimit": SolverStatus.NO_SOLUTION,  # or FEASIBLE: an incumbent makes the difference
    "kIterationLimit": SolverStatus.NO_SOLUTION,
    "kSolutionLimit": SolverStatus.NO_SOLUTION,
    "kInterrupt": SolverStatus.NO_SOLUTION,
    "kMemoryLimit": SolverStatus.NO_SOLUTION,
    "kLoadError": SolverStatus.ERROR,
    "kModelError": SolverStatus.ERROR,
    "kPresolveError": SolverStatus.ERROR,
    "kSolveError": SolverStatus.ERROR,
    "kPostsolveError": SolverStatus.ERROR,
}
"""HiGHS's model statuses; every other one is ``UNKNOWN``."""

SOUND = ">=1.13,!=1.14.0,<2"
"""Versions of highspy, as in ``pyproject.toml``. The presolve of HiGHS 1.14.0 loses optima of mixed-integer models."""


class Highs:
    """HiGHS in this process. Takes continuous columns and a start, no special ordered sets.

    The model goes over as arrays in one call. The objective is divided by its largest coefficient before HiGHS sees it.
    """

    name = "highs"
    capabilities = Capabilities(sos=False, continuous=True, warm_start=True, licence="MIT")

    def available(self) -> str:
        """Return which highspy to install; empty for none."""
        fix = f"pip install 'highspy{SOUND}' (no build exists for ppc64le: use the exact solver there)"
        why = "1.14.0 calls wrong answers optimal; earlier than 1.13 lacks what Gavel's programs need"
        return unmet("highspy", SOUND, why=why, fix=fix)

    def version(self) -> str:
        """Return the version, as ``"HiGHS 1.15.1 (highspy 1.15.1)"``: both always have the same number."""
        found = version("highspy")
        return f"HiGHS {found} (highspy {found})"

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Build the model in HiGHS and maximise."""
        stopwatch = Stopwatch()
        refuse_beside("highspy", OR_TOOLS)
        refuse_sets(model, self.name)
        if (known := trivial_answer(model)) is not None:
            return known
        scale = objective_scale(model)
        start_threads(options.threads)
        highs = _build(model, scale, options)
        stopwatch.start_solving()
        highs.run()
        said = highs.getModelStatus().name
        if said == "kUnboundedOrInfeasible":
            return BackendAnswer(resolve_unbounded(self.solve, model, options), message=f"HiGHS says {said}")
        info = highs.getInfo()
        report = Report(
            status=status_of(said, STATUSES, info.primal_solution_status == 2),  # feasible, in kSolutionStatus*
            message=f"HiGHS says {said}",
            values=lambda: np.array(highs.getSolution().col_value, dtype=np.float64),
            objective=lambda: info.objective_function_value,
            bound=lambda: info.mip_dual_bound,
        )
        if not model.is_integer.any():
            report = replace(report, bound=report.objective, bounded=(SolverStatus.OPTIMAL,))
        return stopwatch.read(report, model, scale)


_threads: list[int] = []
"""How many threads HiGHS has started in this process."""


def new_highs() -> Any:
    """Return a HiGHS of its own, which says nothing: version 1.16 prints two lines when it is made."""
    import highspy

    with silent_stdout():
        highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


def start_threads(threads: int) -> None:
    """End HiGHS's threads before a solve with another number: it keeps them, and would refuse."""
    import highspy

    if _threads and _threads[0] != threads:
        highspy.Highs.resetGlobalScheduler(True)
    _threads[:] = [threads]


def _build(model: LinearModel, scale: float, options: SolveOptions) -> Any:
    """Pass the whole model on as arrays."""
    import highspy

    highs = new_highs()
    for option, value in (
        ("time_limit", float(options.time_limit_s)),
        ("mip_rel_gap", float(options.relative_gap)),
        ("mip_abs_gap", 0.0),
        ("threads", options.threads),
        ("random_seed", options.seed),
        ("mip_feasibility_tolerance", TOLERANCE),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
    ):
        if highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS does not take {option} = {value!r}")
    matrix = by_column(model)
    sizes = model.n_columns, model.n_rows, matrix.value.shape[0]
    meaning = int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMaximize)
    objective = 0.0, model.objective / scale
    bounds = model.column_lower, model.column_upper, model.row_lower, model.row_upper
    entries = matrix.start, matrix.index, matrix.value
    is_integer = model.is_integer.astype(np.int32)
    passed = highs.passModel(*sizes, *meaning, *objective, *bounds, *entries, is_integer)
    if passed == highspy.HighsStatus.kError:
        raise ValueError("HiGHS does not take the model")
    if model.start is not None:
        start = highspy.HighsSolution()
        start.col_value = model.start.tolist()
        highs.setSolution(start)
    return highs
