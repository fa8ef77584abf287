"""HiGHS through highspy."""

from __future__ import annotations

from importlib.metadata import version
from typing import ClassVar

from bfreplay.milp.backends.arrays import TOLERANCE, WITH_BOUND, Report, ScaledBackend, Stopwatch
from bfreplay.milp.backends.backend import OR_TOOLS, Capabilities, SolveOptions
from bfreplay.milp.linear_program import HighsProgram, missing_highspy
from bfreplay.milp.model import LinearModel, by_column
from bfreplay.milp.solution import SolverStatus


class Highs(ScaledBackend):
    """HiGHS in this process. Takes continuous columns and a start, no special ordered sets.

    The model goes over as arrays in one call.
    """

    name = "highs"
    title = "HiGHS"
    capabilities = Capabilities(
        sos=False, continuous=True, warm_start=True, licence="MIT", in_process=True, excludes=OR_TOOLS
    )
    statuses: ClassVar = {
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
        "kUnboundedOrInfeasible": None,
    }

    def available(self) -> str:
        """Return which highspy to install; empty for none."""
        return missing_highspy()

    def version(self) -> str:
        """Return the version, as ``"HiGHS 1.15.1 (highspy 1.15.1)"``: both always have the same number."""
        number = version("highspy")
        return f"HiGHS {number} (highspy {number})"

    def maximise(self, model: LinearModel, scale: float, options: SolveOptions, stopwatch: Stopwatch) -> Report:
        """Build the model in HiGHS and solve it."""
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
        info = program.info
        is_mip = model.is_integer.any()
        return Report(
            outcome,
            values=program.column_values,
            objective=lambda: info.objective_function_value,
            bound=lambda: info.mip_dual_bound if is_mip else info.objective_function_value,
            has_incumbent=info.primal_solution_status == 2,  # feasible, in kSolutionStatus*
            bounded=WITH_BOUND if is_mip else (SolverStatus.OPTIMAL,),
        )
