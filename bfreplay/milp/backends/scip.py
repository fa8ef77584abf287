"""SCIP through PySCIPOpt."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from bfreplay.milp.backends.arrays import TOLERANCE, Report, ScaledBackend, Stopwatch
from bfreplay.milp.backends.backend import Capabilities, SolveOptions, unmet
from bfreplay.milp.model import LinearModel, by_row
from bfreplay.milp.solution import SolverStatus

FEASIBILITY = 1e-6
"""SCIP's own tolerance of rows and integrality. With a tighter one it takes longer in proportion to find a model of
whole columns unbounded (1e-6: 0.1 s, 1e-7: 1.5 s), and no limit stops it there."""


class Scip(ScaledBackend):
    """SCIP in this process, on one thread whatever ``threads`` says. Takes special ordered sets and a start."""

    name = "scip"
    title = "SCIP"
    capabilities = Capabilities(sos=True, continuous=True, warm_start=True, licence="Apache-2.0")
    statuses: ClassVar = {
        "optimal": SolverStatus.OPTIMAL,
        "gaplimit": SolverStatus.OPTIMAL,  # the gap that was asked for
        "infeasible": SolverStatus.INFEASIBLE,
        "unbounded": SolverStatus.UNBOUNDED,
        "timelimit": SolverStatus.NO_SOLUTION,  # or FEASIBLE: an incumbent makes the difference
        "memlimit": SolverStatus.NO_SOLUTION,
        "nodelimit": SolverStatus.NO_SOLUTION,
        "userinterrupt": SolverStatus.NO_SOLUTION,
        "inforunbd": None,
    }

    def available(self) -> str:
        """Return which PySCIPOpt to install; empty for none."""
        return unmet("pyscipopt", ">=5.4,<7", why="others are untried", fix="pip install 'bfreplay[scip]'")

    def version(self) -> str:
        """Return the version, as ``"SCIP 10.0 (PySCIPOpt 6.3.0)"``."""
        import pyscipopt

        return f"SCIP {pyscipopt.Model().version()} (PySCIPOpt {version('pyscipopt')})"

    def maximise(self, model: LinearModel, scale: float, options: SolveOptions, stopwatch: Stopwatch) -> Report:
        """Build the model in SCIP and solve it."""
        scip_model, variables = _build(model, scale, options)
        stopwatch.start_solving()
        scip_model.optimize()
        best_solution = scip_model.getBestSol()
        return Report(
            scip_model.getStatus(),
            values=lambda: np.array([best_solution[variable] for variable in variables], dtype=np.float64),
            objective=lambda: scip_model.getSolObjVal(best_solution),
            bound=scip_model.getDualbound,
            has_incumbent=scip_model.getNSols() > 0,
        )


def _build(model: LinearModel, scale: float, options: SolveOptions) -> tuple[Any, list[Any]]:
    """Build variable by variable and row by row: PySCIPOpt takes no sparse matrix."""
    from pyscipopt import Model
    from pyscipopt.scip import Expr, ExprCons, Term

    scip_model = Model()
    scip_model.hideOutput()
    scip_model.setParams(
        {
            "limits/time": options.time_limit_s,
            "limits/gap": options.relative_gap,
            "limits/absgap": 0.0,
            "randomization/randomseedshift": options.seed,
            "numerics/feastol": FEASIBILITY,
            "numerics/dualfeastol": TOLERANCE,
        }
    )
    scip_model.setMaximize()
    variables = [
        scip_model.addVar(vtype="I" if is_integer else "C", lb=lower, ub=upper, obj=worth)
        for is_integer, lower, upper, worth in zip(
            model.is_integer.tolist(),
            model.column_lower.tolist(),
            model.column_upper.tolist(),
            (model.objective / scale).tolist(),
            strict=True,
        )
    ]
    terms = [Term(variable) for variable in variables]
    matrix = by_row(model)
    start, index, value = matrix.start.tolist(), matrix.index.tolist(), matrix.value.tolist()
    for row_index, (lower, upper) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        entries = slice(start[row_index], start[row_index + 1])
        if entries.start == entries.stop or (math.isinf(lower) and math.isinf(upper)):
            continue  # says nothing
        terms_of_row = Expr(
            {terms[column]: factor for column, factor in zip(index[entries], value[entries], strict=True)}
        )
        scip_model.addCons(
            ExprCons(terms_of_row, lower if math.isfinite(lower) else None, upper if math.isfinite(upper) else None)
        )
    for group in model.sets:
        add_set = scip_model.addConsSOS1 if group.kind == 1 else scip_model.addConsSOS2
        add_set([variables[column] for column in group.columns.tolist()], group.weights.tolist())
    if model.start is not None:
        start_solution = scip_model.createSol()
        for variable, number in zip(variables, model.start.tolist(), strict=True):
            scip_model.setSolVal(start_solution, variable, number)
        scip_model.addSol(start_solution)
    return scip_model, variables
