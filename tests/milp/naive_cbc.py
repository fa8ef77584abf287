"""CBC as one writes it first: python-mip's own calls and CBC's own settings, none of bfreplay's precautions.

With the CBC build that ``pip install mip`` brings (cbcbox 2.935) it aborts, hangs and calls wrong answers optimal on
models with special ordered sets. It is here to show what becomes of that.
"""

from __future__ import annotations

import os
import time

import numpy as np

from bfreplay.milp.backends import BackendAnswer, Capabilities, SolveOptions
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus


class NaiveCbc:
    name = "naive-cbc"
    capabilities = Capabilities(sos=True, licence="EPL-2.0")

    def available(self) -> str:
        return ""

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import mip

        started = time.perf_counter()
        cbc = mip.Model(sense=mip.MAXIMIZE, solver_name=mip.CBC)
        cbc.verbose = 0
        columns = [
            cbc.add_var(obj=gain, lb=low, ub=high, var_type=mip.INTEGER if whole else mip.CONTINUOUS)
            for gain, low, high, whole in zip(
                model.objective, model.column_lower, model.column_upper, model.is_integer, strict=True
            )
        ]
        for r in range(model.n_rows):
            mine = np.flatnonzero(model.entry_row == r)
            total = mip.xsum(float(model.entry_value[e]) * columns[model.entry_column[e]] for e in mine)
            if model.row_lower[r] == model.row_upper[r]:
                cbc += total == float(model.row_lower[r])
                continue
            if np.isfinite(model.row_lower[r]):
                cbc += total >= float(model.row_lower[r])
            if np.isfinite(model.row_upper[r]):
                cbc += total <= float(model.row_upper[r])
        for group in model.sets:
            cbc.add_sos([(columns[c], float(w)) for c, w in zip(group.columns, group.weights, strict=True)], group.kind)
        built = time.perf_counter()
        said = cbc.optimize(max_seconds=options.time_limit_s)
        status = {
            "OPTIMAL": SolverStatus.OPTIMAL,
            "FEASIBLE": SolverStatus.FEASIBLE,
            "INFEASIBLE": SolverStatus.INFEASIBLE,
        }.get(said.name, SolverStatus.UNKNOWN)
        found = status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)
        return BackendAnswer(
            solver_status=status,
            x=np.array([column.x for column in columns], dtype=np.float64) if found else None,
            objective=cbc.objective_value + model.objective_constant if found else np.nan,
            bound=cbc.objective_bound + model.objective_constant if found else np.inf,
            message=f"CBC says {said.name}",
            build_s=built - started,
            solve_s=time.perf_counter() - built,
        )
