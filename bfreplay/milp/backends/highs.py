"""HiGHS through highspy."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

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
)
from bfreplay.milp.linear_program import HighsProgram, missing_highspy
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


class Highs:
    """HiGHS in this process. Takes continuous columns and a start, no special ordered sets.

    The model goes over as arrays in one call. The objective is divided by its largest coefficient before HiGHS sees it.
    """

    name = "highs"
    capabilities = Capabilities(sos=False, continuous=True, warm_start=True, licence="MIT")

    def available(self) -> str:
        """Return which highspy to install; empty for none."""
        return missing_highspy()

    def version(self) -> str:
        """Return the version, as ``"HiGHS 1.15.1 (highspy 1.15.1)"``: both always have the same number."""
        number = version("highspy")
        return f"HiGHS {number} (highspy {number})"

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Build the model in HiGHS and maximise."""
        stopwatch = Stopwatch()
        refuse_beside("highspy", OR_TOOLS)
        refuse_sets(model, self.name)
        if (trivial := trivial_answer(model)) is not None:
            return trivial
        scale = objective_scale(model)
        program = HighsProgram(
            maximise=True,
            threads=options.threads,
            time_limit=float(options.time_limit_s),
            mip_rel_gap=float(options.relative_gap),
            mip_abs_gap=0.0,
            random_seed=options.seed,
            mip_feasibility_tolerance=TOLERANCE,
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
        )
        column_bounds, row_bounds = (model.column_lower, model.column_upper), (model.row_lower, model.row_upper)
        program.load(model.objective / scale, column_bounds, row_bounds, by_column(model), model.is_integer)
        if model.start is not None:
            program.start_from(model.start)
        stopwatch.start_solving()
        outcome = program.run()
        if outcome == "kUnboundedOrInfeasible":
            return BackendAnswer(resolve_unbounded(self.solve, model, options), message=f"HiGHS says {outcome}")
        info = program.info
        report = Report(
            status=status_of(outcome, STATUSES, info.primal_solution_status == 2),  # feasible, in kSolutionStatus*
            message=f"HiGHS says {outcome}",
            values=program.column_values,
            objective=lambda: info.objective_function_value,
            bound=lambda: info.mip_dual_bound,
        )
        if not model.is_integer.any():
            report = replace(report, bound=report.objective, bounded=(SolverStatus.OPTIMAL,))
        return stopwatch.read(report, model, scale)
