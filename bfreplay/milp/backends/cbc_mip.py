"""CBC through python-mip."""

from __future__ import annotations

import math
import os
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from bfreplay.milp.backends.backend import BackendAnswer, Capabilities, SolveOptions, objective_scale
from bfreplay.milp.backends.silence import silent_stdout
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus

STATUSES = {
    "OPTIMAL": SolverStatus.OPTIMAL,
    "FEASIBLE": SolverStatus.FEASIBLE,
    "NO_SOLUTION_FOUND": SolverStatus.NO_SOLUTION,
    "INFEASIBLE": SolverStatus.INFEASIBLE,
    "INT_INFEASIBLE": SolverStatus.INFEASIBLE,
    "UNBOUNDED": SolverStatus.UNBOUNDED,
    "ERROR": SolverStatus.ERROR,
}
"""python-mip's status names; every other one is ``UNKNOWN``."""

REQUIREMENT = "'mip>=1.17,<2' 'cbcbox>=2.913,<2.929'"

INCREMENT = "1e-7"
"""What a solution must be better by, of an objective whose largest coefficient is 1. CBC's own 1e-5 makes it call
answers optimal that are worse by up to 1e-4 of the optimum, whatever the gap asked for (2 of 160 published
decisions); with 1e-9 it searches for minutes among symmetric answers that differ by less than anybody can tell."""

TOLERANCE = 1e-9
"""Of integrality, rows and reduced costs. With CBC's 1e-6, 3 of 5,500 small ``published`` models (non-concave curves)
were called optimal at a wrong value; with this none in 4,000."""


class CbcMip:
    """CBC in this process, by python-mip. Takes SOS2; never given a start solution.

    (SOS2 with a start solution gives wrong optima on CBC, even with the sound builds.) The objective is divided by
    its largest coefficient before CBC sees it and what CBC reports is multiplied back. CBC prints through its log
    level now and then, so standard output is closed to the whole process while it runs.
    """

    name = "cbc"
    capabilities = Capabilities(sos=True, continuous=True, warm_start=False, crash_isolated=False, licence="EPL-2.0")

    def available(self) -> str:
        """Empty, or what is missing: python-mip, a sound CBC build, or a CBC for this machine."""
        fix = f"pip install {REQUIREMENT}"
        try:
            found = {package: version(package) for package in ("mip", "cbcbox")}
        except PackageNotFoundError as error:
            return f"{error.name} is not installed; {fix} (no CBC build exists for ppc64le: use the exact solver there)"
        sound = (1, 17) <= _release(found["mip"]) < (2,) and (2, 913) <= _release(found["cbcbox"]) < (2, 929)
        if not sound:
            return (
                f"mip {found['mip']} with cbcbox {found['cbcbox']} is not known to be sound (cbcbox 2.931 and later "
                f"abort on SOS2 models and call wrong answers optimal); {fix}"
            )
        try:
            has_cbc = _cbc_module().has_cbc
        except Exception as error:  # a broken native library may raise anything
            return f"python-mip cannot be imported: {error}; {fix}"
        return "" if has_cbc else f"python-mip found no CBC library for this machine; {fix}, or use the exact solver"

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Build the model in CBC and maximise."""
        started = time.perf_counter()
        if _has_impossible_empty_row(model):  # on which CBC reports an error
            return BackendAnswer(SolverStatus.INFEASIBLE, message="a row without entries cannot hold")
        scale = objective_scale(model)
        cbc = _built(model, scale)
        cbc.max_mip_gap = options.relative_gap
        cbc.max_mip_gap_abs = 0.0
        cbc.seed = options.seed + 1  # 0 would mean the time of day
        cbc.round_int_vars = False  # it rounds fractional answers after the solve, and so hides that they are wrong
        cbc.integer_tol = cbc.infeas_tol = cbc.opt_tol = TOLERANCE
        if model.sets:
            cbc.preprocess = 0  # with it CBC calls fractional answers of SOS2 models optimal, and crashes on others
        cbc.threads = 0 if options.threads == 1 else options.threads  # 1 would mean a thread beside this one
        built = time.perf_counter()
        with silent_stdout():
            said = cbc.optimize(max_seconds=options.time_limit_s)
        status = STATUSES.get(said.name, SolverStatus.UNKNOWN)
        x, objective, bound = None, math.nan, math.inf
        if status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):  # without an incumbent CBC's numbers mean nothing
            objective = _undone(cbc.objective_value, model, scale, math.nan)
            bound = _undone(cbc.objective_bound, model, scale, math.inf)
            x = np.array([cbc.solver.var_get_x(var) for var in cbc.vars], dtype=np.float64)
        solved = time.perf_counter()
        return BackendAnswer(
            solver_status=status,
            x=x,
            objective=objective,
            bound=bound,
            message=f"CBC says {said.name}",
            build_s=built - started,
            solve_s=solved - built,
        )


def _built(model: LinearModel, scale: float) -> Any:
    """Build the model in python-mip's own classes."""
    cbc_module = _cbc_module()
    import mip

    cbc = mip.Model(sense=mip.MAXIMIZE, solver_name=mip.CBC)
    cbc.verbose = 0
    cbc_module.cbc_set_parameter(cbc.solver, "increment", INCREMENT)
    columns = [
        cbc.add_var(obj=obj, lb=lower, ub=upper, var_type=mip.INTEGER if whole else mip.CONTINUOUS)
        for obj, lower, upper, whole in zip(
            (model.objective / scale).tolist(),
            model.column_lower.tolist(),
            model.column_upper.tolist(),
            model.is_integer.tolist(),
            strict=True,
        )
    ]
    order = np.argsort(model.entry_row, kind="stable")
    ends = np.cumsum(np.bincount(model.entry_row, minlength=model.n_rows)).tolist()
    entry_column, entry_value = model.entry_column[order].tolist(), model.entry_value[order].tolist()
    start = 0
    for end, lower, upper in zip(ends, model.row_lower.tolist(), model.row_upper.tolist(), strict=True):
        variables = [columns[c] for c in entry_column[start:end]]
        values = entry_value[start:end]
        start = end
        if lower == upper:
            senses = [("=", lower)]
        else:
            senses = [(sense, side) for sense, side in ((">", lower), ("<", upper)) if math.isfinite(side)]
        for sense, side in senses:
            cbc.add_constr(mip.LinExpr(variables, values, -side, sense))
    for group in model.sets:
        members = [columns[c] for c in group.columns.tolist()]
        cbc.add_sos(list(zip(members, group.weights.tolist(), strict=True)), group.kind)
    return cbc


def _has_impossible_empty_row(model: LinearModel) -> bool:
    empty = np.bincount(model.entry_row, minlength=model.n_rows) == 0
    return bool((empty & ((model.row_lower > 0) | (model.row_upper < 0))).any())


def _cbc_module() -> Any:
    """Import python-mip's CBC module with one thread for the linear algebra of CBC, and safe to collect.

    Its OpenBLAS otherwise starts a thread a core, and they spin: a solve took 5 to 10 times longer on two busy cores.
    A python-mip model is freed by the garbage collector. When that runs while cffi looks something up, and freeing
    needs a first look-up itself, cffi waits for its own lock for ever: look that one up here.
    """
    variable = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        import mip.cbc
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
    if mip.cbc.has_cbc:
        mip.cbc.cbclib.Cbc_deleteModel  # noqa: B018
    return mip.cbc


def _undone(reported: float | None, model: LinearModel, scale: float, absent: float) -> float:
    """Undo the scaling of what CBC reports; ``absent`` where it reports nothing."""
    if reported is None or not math.isfinite(reported) or abs(reported) >= 1e40:
        return absent
    return float(reported) * scale + model.objective_constant


def _release(text: str) -> tuple[int, ...]:
    """``(1, 17, 5)`` of ``"1.17.5"``; stops at the first part that is no number."""
    parts: list[int] = []
    for part in text.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)
