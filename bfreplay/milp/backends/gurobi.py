"""Gurobi through gurobipy."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from bfreplay.milp.backends.arrays import TOLERANCE, WITH_BOUND, Report, ScaledBackend, Stopwatch, with_one_sided_rows
from bfreplay.milp.backends.backend import Capabilities, ModelRefusedError, SolveOptions, unmet
from bfreplay.milp.model import LinearModel, by_column
from bfreplay.milp.solution import SolverStatus

_environments: dict[int, Any] = {}
"""One environment a process (a fork makes its own): starting one reads the licence, and may ask a server for it."""


class Gurobi(ScaledBackend):
    """Gurobi in this process. Takes special ordered sets, continuous columns and a start.

    It runs on the licence that gurobipy finds by itself (``GRB_LICENSE_FILE``, ``gurobi.lic`` in the home folder, a
    token server or web licence named there); without any, on the one that comes with it, which ends at 2,000 columns
    and 2,000 rows. The model goes over as arrays in one call.
    """

    name = "gurobi"
    title = "Gurobi"
    capabilities = Capabilities(
        sos=True, continuous=True, warm_start=True, licence="commercial; free to 2,000 columns and rows"
    )
    statuses: ClassVar = {
        "OPTIMAL": SolverStatus.OPTIMAL,
        "INFEASIBLE": SolverStatus.INFEASIBLE,
        "UNBOUNDED": SolverStatus.UNBOUNDED,
        "TIME_LIMIT": SolverStatus.NO_SOLUTION,  # or FEASIBLE: an incumbent makes the difference
        "INTERRUPTED": SolverStatus.NO_SOLUTION,
        "SUBOPTIMAL": SolverStatus.NO_SOLUTION,
        "NUMERIC": SolverStatus.ERROR,
        "INF_OR_UNBD": None,
    }

    def available(self) -> str:
        """Return what is missing, empty for nothing: gurobipy, a valid release of it, or a licence that works."""
        reason = "the licence that comes with older ones has expired, newer ones are untried"
        if fault := unmet("gurobipy", ">=13,<14", why=reason, fix="pip install 'bfreplay[gurobi]'"):
            return fault
        try:
            if os.getpid() not in _environments:
                _start_environment().dispose()  # no token of a floating licence is held by a process that only asks
        except Exception as error:  # gurobipy's own error, or a broken native library
            return f"Gurobi does not start: {error}"
        return ""

    def version(self) -> str:
        """Return the version, as ``"Gurobi 13.0.3 (gurobipy 13.0.3)"``: both always have the same number."""
        release = version("gurobipy")
        return f"Gurobi {release} (gurobipy {release})"

    def maximise(self, model: LinearModel, scale: float, options: SolveOptions, stopwatch: Stopwatch) -> Report:
        """Build the model in Gurobi and solve it."""
        import gurobipy

        try:
            gurobi = _build(model, scale, options)
            stopwatch.start_solving()
            gurobi.optimize()
        except gurobipy.GurobiError as error:
            if error.errno == gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise ModelRefusedError(_too_large(model)) from error
            raise
        numbers = gurobipy.GRB.Status
        return Report(
            next(name for name in dir(numbers) if name.isupper() and getattr(numbers, name) == gurobi.Status),
            values=lambda: np.array(gurobi.getAttr("X"), dtype=np.float64),
            objective=lambda: gurobi.ObjVal,
            bound=lambda: gurobi.ObjBound if gurobi.IsMIP else gurobi.ObjVal,
            has_incumbent=gurobi.SolCount > 0,
            bounded=WITH_BOUND if gurobi.IsMIP else (SolverStatus.OPTIMAL,),
        )


def _build(model: LinearModel, scale: float, options: SolveOptions) -> Any:
    """Load the whole model from arrays."""
    import gurobipy

    one_sided_rows, sense = with_one_sided_rows(model)
    matrix = by_column(one_sided_rows)
    gurobi = gurobipy.loadModel(
        env=_environment(),
        numvars=one_sided_rows.n_columns,
        numconstrs=one_sided_rows.n_rows,
        modelsense=gurobipy.GRB.MAXIMIZE,
        obj=one_sided_rows.objective / scale,
        lb=one_sided_rows.column_lower,
        ub=one_sided_rows.column_upper,
        vtype=np.where(one_sided_rows.is_integer, b"I", b"C"),
        constr_csc=(matrix.value, matrix.index, matrix.start),
        sense=sense.astype("S1"),
        rhs=np.where(sense == ">", one_sided_rows.row_lower, one_sided_rows.row_upper),
    )
    for parameter, value in (
        ("TimeLimit", options.time_limit_s),
        ("MIPGap", options.relative_gap),
        ("MIPGapAbs", 0.0),
        ("Threads", options.threads),
        ("Seed", options.seed),
        ("IntFeasTol", TOLERANCE),
        ("FeasibilityTol", TOLERANCE),
        ("OptimalityTol", TOLERANCE),
    ):
        gurobi.setParam(parameter, value)
    if model.sets or model.start is not None:
        variables = gurobi.getVars()
        for group in model.sets:
            members = [variables[column] for column in group.columns.tolist()]
            gurobi.addSOS(group.kind, members, group.weights.tolist())
        if model.start is not None:
            gurobi.setAttr("Start", variables, model.start.tolist())
    return gurobi


def _environment() -> Any:
    """Return this process's environment, started when first needed."""
    if os.getpid() not in _environments:
        _environments[os.getpid()] = _start_environment()
    return _environments[os.getpid()]


def _start_environment() -> Any:
    """Start an environment that says nothing: no banner, no log."""
    import gurobipy

    return gurobipy.Env(params={"OutputFlag": 0, "LogToConsole": 0})


def _too_large(model: LinearModel) -> str:
    return (
        f"the model has {model.n_columns:,} columns and {model.n_rows:,} rows, and the licence that comes with "
        "gurobipy ends at 2,000 of either (a row with two sides counts twice); a full licence is picked up by itself "
        "(GRB_LICENSE_FILE, or gurobi.lic in the home folder; academic ones are free), and the formulation "
        "choices_reduced nearly always stays below"
    )
