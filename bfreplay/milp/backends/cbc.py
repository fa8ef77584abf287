"""CBC through python-mip, and through PuLP: the command that comes with it, a process a solve."""

from __future__ import annotations

import math
import os
import platform
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.arrays import TOLERANCE, Report, ScaledBackend, Stopwatch, refuse_sets, trivial_answer
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
from bfreplay.milp.files.models import mps_text
from bfreplay.milp.model import LinearModel, by_column
from bfreplay.milp.solution import SolverStatus
from bfreplay.outputs import scratch_prefix

REQUIREMENT = "'mip>=1.17,<2' 'cbcbox>=2.914,<2.929'"

INCREMENT = "1e-7"
"""What a solution must be better by, of an objective whose largest coefficient is 1. CBC's own 1e-5 makes it call
answers optimal that are worse by up to 1e-4 of the optimum, whatever the gap asked for (2 of 160 published
decisions); with 1e-9 it searches for minutes among symmetric answers that differ by less than anybody can tell."""

CONFLICT_GRAPH = "off"
"""With its conflict graph on, CBC takes 280 ms instead of 26 for ``choices`` of 10 jobs and 50 nodes, 125 instead of 99
for 35 and 640; node-level models take the same time either way."""

_LOAD_PROBLEM = """void Cbc_loadProblem(Cbc_Model *model, const int numcols, const int numrows, const int *start,
    const int *index, const double *value, const double *collb, const double *colub, const double *obj,
    const double *rowlb, const double *rowub);"""
"""CBC's own call for a whole matrix; python-mip does not declare it."""


class CbcMip(ScaledBackend):
    """CBC in this process, by python-mip. Takes SOS2, and a start for models without.

    SOS2 with a start gives wrong optima on CBC, even with the sound builds: with sets the start is left out. (Without,
    none of 3,600 answers was wrong.) The model goes over as arrays in one call of CBC's C interface. CBC prints through
    its log level now and then, so standard output is closed to the whole process while it runs. A bound is reported of
    optima at gap 0 only: when it stops early, what CBC calls its bound may be its own answer, or have the wrong sign.
    """

    name = "cbc"
    title = "CBC"
    capabilities = Capabilities(sos=True, continuous=True, warm_start=True, licence="EPL-2.0", excludes=OR_TOOLS)
    statuses: ClassVar = {
        "OPTIMAL": SolverStatus.OPTIMAL,
        "FEASIBLE": SolverStatus.FEASIBLE,
        "NO_SOLUTION_FOUND": SolverStatus.NO_SOLUTION,
        "INFEASIBLE": SolverStatus.INFEASIBLE,
        "INT_INFEASIBLE": SolverStatus.INFEASIBLE,
        "UNBOUNDED": SolverStatus.UNBOUNDED,
        "ERROR": SolverStatus.ERROR,
    }

    def available(self) -> str:
        """Return what is missing, empty for nothing: python-mip, a sound CBC build, or a CBC for this machine."""
        fix = f"pip install {REQUIREMENT} (no CBC build exists for ppc64le: use the exact solver there)"
        reason = (
            "cbcbox 2.931 and later abort on SOS2 models and call wrong answers optimal, 2.913 aborts on infeasible "
            "ones, and mip 2 requires a late one"
        )
        fault = unmet("mip", ">=1.17,<2", why=reason, fix=fix) or unmet("cbcbox", ">=2.914,<2.929", why=reason, fix=fix)
        if fault:
            return fault
        try:
            import cbcbox

            folder = Path(cbcbox.cbc_lib_dir())
        except Exception as error:  # a broken installation may raise anything
            return f"cbcbox cannot be imported: {error}; {fix}"
        return "" if any(folder.glob("libCbc.*")) else f"cbcbox has no CBC library for this machine in {folder}; {fix}"

    def version(self) -> str:
        """Return the version, as ``"CBC (cbcbox 2.927, mip 1.17.5)"``."""
        return f"CBC (cbcbox {version('cbcbox')}, mip {version('mip')})"

    def maximise(self, model: LinearModel, scale: float, options: SolveOptions, stopwatch: Stopwatch) -> Report:
        """Build the model in CBC and solve it."""
        cbc = _build(model, scale)
        cbc.max_mip_gap = options.relative_gap
        cbc.max_mip_gap_abs = 0.0
        cbc.seed = options.seed + 1  # 0 would mean the time of day
        cbc.round_int_vars = False  # it rounds fractional answers after the solve, and so hides that they are wrong
        cbc.integer_tol = cbc.infeas_tol = cbc.opt_tol = TOLERANCE
        if model.sets:
            cbc.preprocess = 0  # with it CBC calls fractional answers of SOS2 models optimal, and crashes on others
        cbc.threads = 0 if options.threads == 1 else options.threads  # 1 would mean a thread beside this one
        stopwatch.start_solving()
        with silent_stdout():
            status_word = cbc.optimize(max_seconds=options.time_limit_s)
        return Report(
            status_word.name,
            values=lambda: _column_values(cbc, model.n_columns),
            objective=lambda: cbc.objective_value,
            bound=lambda: cbc.objective_bound,
            bounded=(SolverStatus.OPTIMAL,) if options.relative_gap == 0 else (),
        )


def _build(model: LinearModel, scale: float) -> Any:
    """Build the model in one call of CBC's C interface, inside a python-mip model that knows how to solve it."""
    cbc_module = _cbc_module()
    import mip

    ffi, library = cbc_module.ffi, cbc_module.cbclib

    def ints(array: Any) -> Any:
        return ffi.from_buffer("int[]", np.ascontiguousarray(array, dtype=np.int32))

    def doubles(array: Any) -> Any:
        return ffi.from_buffer("double[]", np.ascontiguousarray(array, dtype=np.float64))

    cbc_model = mip.Model(sense=mip.MAXIMIZE, solver_name=mip.CBC)
    cbc_model.verbose = 0
    cbc_module.cbc_set_parameter(cbc_model.solver, "increment", INCREMENT)
    cbc_module.cbc_set_parameter(cbc_model.solver, "cgraph", CONFLICT_GRAPH)
    pointer = cbc_model.solver._model
    matrix = by_column(model)
    entries = ints(matrix.start), ints(matrix.index), doubles(matrix.value)
    columns = model.column_lower, model.column_upper, model.objective / scale
    rows = model.row_lower, model.row_upper
    library.Cbc_loadProblem(pointer, model.n_columns, model.n_rows, *entries, *map(doubles, (*columns, *rows)))
    library.Cbc_setObjSense(pointer, -1.0)
    set_integer = library.Cbc_setInteger
    for column in np.flatnonzero(model.is_integer).tolist():
        set_integer(pointer, column)
    for group in model.sets:
        ends = ints([0, len(group.columns)])
        library.Cbc_addSOS(pointer, 1, ends, ints(group.columns), doubles(group.weights), group.kind)
    if model.start is not None and not model.sets:
        library.Cbc_setMIPStartI(pointer, model.n_columns, ints(np.arange(model.n_columns)), doubles(model.start))
    return cbc_model


def _column_values(cbc_model: Any, n_columns: int) -> Any:
    """Copy the values of the columns: they die with the model."""
    cbc_module = _cbc_module()
    values = cbc_module.cbclib.Cbc_getColSolution(cbc_model.solver._model)
    return np.frombuffer(cbc_module.ffi.buffer(values, n_columns * 8), dtype=np.float64).copy()


def _cbc_module() -> Any:
    """Import python-mip's CBC module with one thread for the linear algebra of CBC, and safe to collect.

    Its OpenBLAS otherwise starts a thread a core, and they spin: a solve took 5 to 10 times longer on two busy cores.
    A python-mip model is freed by the garbage collector. When that runs while cffi looks something up, and freeing
    needs a first look-up itself, cffi waits for its own lock for ever: look that one up here.
    """
    refuse_beside("CBC", OR_TOOLS)
    variable = "OPENBLAS_NUM_THREADS"
    old_value = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        import mip.cbc
    finally:
        if old_value is None:
            del os.environ[variable]
        else:
            os.environ[variable] = old_value
    if not mip.cbc.has_cbc:
        raise RuntimeError("python-mip could not load its CBC library")
    mip.cbc.cbclib.Cbc_deleteModel  # noqa: B018
    if not hasattr(mip.cbc.cbclib, "Cbc_loadProblem"):
        mip.cbc.ffi.cdef(_LOAD_PROBLEM)
    return mip.cbc


PULP_STATUSES = {
    ("Optimal", "Optimal Solution Found"): SolverStatus.OPTIMAL,
    ("Optimal", "Solution Found"): SolverStatus.FEASIBLE,  # a limit ended the search with an incumbent
    ("Not Solved", "No Solution Found"): SolverStatus.NO_SOLUTION,
    ("Infeasible", "No Solution Exists"): SolverStatus.INFEASIBLE,
    ("Infeasible", "No Solution Found"): SolverStatus.INFEASIBLE,  # CBC's "Integer infeasible"
    ("Unbounded", "Solution is Unbounded"): SolverStatus.UNBOUNDED,
}
"""PuLP's status and solution status, which only together say what happened; every other pair is ``UNKNOWN``."""

MACHINES = ("x86_64", "amd64", "aarch64", "arm64")
"""What PuLP's CBC command is built for. (Not asked of PuLP: importing it imports highspy, see ``refuse_beside``.)"""


class CbcPulp:
    """CBC of PuLP, run by PuLP as a command: a crash is an error, and its files are removed.

    PuLP drops special ordered sets silently, so models with sets are refused. PuLP runs the command and reads its
    answer; the model is written from the arrays, as PuLP's own classes take several times as long. CBC's file has 8
    digits and no bound: the objective is that of the answer, the bound of an optimum is its objective.
    """

    name = "pulp-cbc"
    capabilities = Capabilities(sos=False, continuous=True, warm_start=False, crash_isolated=True, licence="EPL-2.0")

    def available(self) -> str:
        """Return what is missing, empty for nothing: PuLP, or a CBC for this machine."""
        if fault := unmet("pulp", ">=3.3,<4", why="PuLP 4 brings no CBC", fix="pip install 'pulp>=3.3,<4'"):
            return fault
        if platform.machine().lower() not in MACHINES:
            return f"PuLP brings no CBC command for {platform.machine()}; take highs or the exact solver"
        return ""

    def version(self) -> str:
        """Return the version, as ``"CBC (PuLP 3.3.2)"``."""
        return f"CBC (PuLP {version('pulp')})"

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Write the model, have CBC maximise it, read the answer."""
        stopwatch = Stopwatch()
        refuse_sets(model, self.name)
        if (trivial := trivial_answer(model)) is not None:
            return trivial
        pulp_model = _pose(model)
        command = _command(options)
        stopwatch.start_solving()
        # PuLP leaves its files after a failure
        with tempfile.TemporaryDirectory(prefix=scratch_prefix("pulp")) as folder:
            command.tmpDir = folder
            command.actualSolve(pulp_model)
        status = PULP_STATUSES.get(pulp_model.statuses, SolverStatus.UNKNOWN)
        x, objective, bound = None, math.nan, math.inf
        if status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
            x = pulp_model.column_values()
            objective = float(model.objective @ x) + model.objective_constant
            if status is SolverStatus.OPTIMAL and options.relative_gap == 0:
                bound = objective
        if status is SolverStatus.INFEASIBLE and stopwatch.solve_s >= options.time_limit_s:
            status = SolverStatus.NO_SOLUTION  # CBC says so as well when its time ends while it prepares the model
        return stopwatch.answer(
            status, x, objective, bound, f"PuLP says {pulp_model.statuses[0]}, {pulp_model.statuses[1]}"
        )


def _command(options: SolveOptions) -> Any:
    """Return PuLP's solver with the settings of ``CbcMip``; PuLP warns on every use that version 4 drops it."""
    import pulp

    settings = [
        f"increment {INCREMENT}",
        f"integerTolerance {TOLERANCE}",
        f"primalTolerance {TOLERANCE}",
        f"dualTolerance {TOLERANCE}",
        f"randomSeed {options.seed + 1}",  # 0 would mean the time of day
        f"randomCbcSeed {options.seed + 1}",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return pulp.PULP_CBC_CMD(
            msg=False,
            timeLimit=options.time_limit_s,
            gapRel=options.relative_gap,
            gapAbs=0.0,
            threads=None if options.threads == 1 else options.threads,  # 1 would mean a thread beside the main one
            options=settings,
        )


@dataclass
class _PulpModel:
    """Model with the methods by which PuLP's commands write it and hand the answer over."""

    columns: list[str]
    text: str
    name: str = "bfreplay"
    sense: int = 1  # PuLP's LpMinimize: the file holds the negative objective
    values: dict[str, float] = field(default_factory=dict)
    statuses: tuple[str, str] = ("Not Solved", "No Solution Found")

    def writeMPS(self, filename: str, rename: int = 0) -> tuple[list[Any], dict[str, str], dict[str, str], str]:  # noqa: N802
        """Write it; PuLP gets the columns' names to look for in the answer."""
        Path(filename).write_text(self.text, encoding="ascii")
        return [], {column: column for column in self.columns}, {}, ""

    def assignVarsVals(self, values: dict[str, float]) -> None:  # noqa: N802
        """Take the columns' values."""
        self.values = values

    def assignVarsDj(self, values: dict[str, float]) -> None:  # noqa: N802
        """Reduced costs: not wanted."""

    def assignConsPi(self, values: dict[str, float]) -> None:  # noqa: N802
        """Shadow prices: not wanted."""

    def assignConsSlack(self, values: dict[str, float], activity: bool = False) -> None:  # noqa: N802
        """Row activities: not wanted."""

    def assignStatus(self, status: int, sol_status: int | None = None) -> bool:  # noqa: N802
        """Take both statuses, as PuLP names them."""
        import pulp

        self.statuses = pulp.LpStatus.get(status, str(status)), pulp.LpSolution.get(sol_status, str(sol_status))
        return True

    def column_values(self) -> NDArray[np.float64]:
        """Values by column.

        Raises
        ------
        KeyError
            The answer leaves a column out.
        """
        return np.array([self.values[column] for column in self.columns], dtype=np.float64)


def _pose(model: LinearModel) -> _PulpModel:
    """Return the model as MPS with short names and the scaled objective."""
    columns = [f"c{index}" for index in range(model.n_columns)]
    short = replace(
        model,
        objective=model.objective / objective_scale(model),
        objective_constant=0.0,
        column_names=tuple(columns),
        row_names=tuple(f"r{index}" for index in range(model.n_rows)),
        start=None,
    )
    return _PulpModel(columns, mps_text(short))
