"""A back end of your own: HiGHS by PuLP. Any other solver that PuLP speaks to goes the same way.

``python examples/own_backend.py``. The command line takes it too:
``bfreplay replay sample --jobs sample --solver own_backend:MySolver``.
"""

import numpy as np
from numpy.typing import NDArray

from bfreplay import ModelBuilder
from bfreplay.milp import BackendAnswer, Capabilities, LinearModel, SolveOptions, SolverStatus
from bfreplay.milp.backends.arrays import refuse_sets, resolve_unbounded, trivial_answer, with_one_sided_rows
from bfreplay.milp.backends.backend import objective_scale

STATUSES = {  # PuLP's words; whatever else it says is UNKNOWN, which is never believed
    "Optimal Solution Found": SolverStatus.OPTIMAL,
    "Solution Found": SolverStatus.FEASIBLE,
    "No Solution Found": SolverStatus.NO_SOLUTION,
    "No Solution Exists": SolverStatus.INFEASIBLE,
    "Solution is Unbounded": SolverStatus.UNBOUNDED,
}


class MySolver:
    """Takes any linear model without special ordered sets."""

    name = "my-solver"
    capabilities = Capabilities(sos=False, continuous=True, warm_start=False, licence="MIT")

    def available(self) -> str:
        """Empty, or why it does not work here and how to fix that."""
        try:
            import highspy  # noqa: F401
            import pulp  # noqa: F401
        except ImportError as error:
            return f"{error}; pip install pulp highspy"
        return ""

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Maximise."""
        import pulp  # here, not above: whoever only lists the solvers loads none

        refuse_sets(model, self.name)  # raises ModelRefusedError: what capabilities exclude is refused by name
        if (known := trivial_answer(model)) is not None:  # contradictions and models without columns need no solver
            return known
        scale = objective_scale(model)  # solvers work with absolute tolerances
        lower, upper = _or_none(model.column_lower), _or_none(model.column_upper)
        kind = np.where(model.is_integer, pulp.LpInteger, pulp.LpContinuous).tolist()
        x = [pulp.LpVariable(f"x{c}", lower[c], upper[c], kind[c]) for c in range(model.n_columns)]
        posed = pulp.LpProblem("decision", pulp.LpMaximize)
        posed.addVariables(x)  # PuLP leaves out those that stand in no row and have no worth
        posed += pulp.lpSum(worth * column for worth, column in zip((model.objective / scale).tolist(), x, strict=True))
        rows, senses = with_one_sided_rows(model)
        left = [pulp.LpAffineExpression() for _ in senses]
        for r, c, value in zip(rows.entry_row, rows.entry_column, rows.entry_value.tolist(), strict=True):
            left[r] += value * x[c]
        for r in np.unique(rows.entry_row):  # the others are empty, and hold
            side = float(rows.row_lower[r] if senses[r] == ">" else rows.row_upper[r])
            posed += {"<": left[r] <= side, ">": left[r] >= side, "=": left[r] == side}[senses[r]]
        posed.solve(
            pulp.HiGHS(
                msg=False,
                timeLimit=options.time_limit_s,
                gapRel=options.relative_gap,
                gapAbs=0.0,
                threads=1,
                random_seed=options.seed,
                mip_feasibility_tolerance=1e-9,
                primal_feasibility_tolerance=1e-9,
            )
        )
        status = STATUSES.get(pulp.LpSolution[posed.sol_status], SolverStatus.UNKNOWN)
        if status is SolverStatus.INFEASIBLE and model.objective.any():  # PuLP says so of unbounded ones too
            status = resolve_unbounded(self.solve, model, options)
        if status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
            return BackendAnswer(status)
        values = np.array([column.value() for column in x], dtype=np.float64)
        objective = float(model.objective @ values) + model.objective_constant
        proven = status is SolverStatus.OPTIMAL and options.relative_gap == 0
        return BackendAnswer(status, values, objective, bound=objective if proven else np.inf)


def _or_none(bounds: NDArray[np.float64]) -> list[float | None]:
    return [bound if np.isfinite(bound) else None for bound in bounds.tolist()]


if __name__ == "__main__":
    m = ModelBuilder()
    x = m.variable("x", 2, integer=True)
    m.add((x * np.array([2, 3])).sum() <= 12, "capacity")
    m.maximise(x * np.array([3.0, 5.0]))
    print(MySolver().solve(m.build(), SolveOptions(time_limit_s=10.0)))
