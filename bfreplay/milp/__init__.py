"""One decision: the problem, the exact solver, MILP formulations and the back ends that solve them."""

from bfreplay.milp.backends import Backend, BackendAnswer, Capabilities, ModelRefusedError, SolveOptions
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.formulations import Formulation
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.model import LinearModel, SpecialOrderedSet
from bfreplay.milp.named_solvers import solve, solver_entries, solver_of
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.milp.solver import Solver

__all__ = [
    "AllocationProblem",
    "Backend",
    "BackendAnswer",
    "Capabilities",
    "ExactSolver",
    "Formulation",
    "LinearModel",
    "MilpSolver",
    "ModelRefusedError",
    "ProcessStatus",
    "Quality",
    "Solution",
    "SolveOptions",
    "Solver",
    "SolverStatus",
    "SpecialOrderedSet",
    "solve",
    "solver_entries",
    "solver_of",
]
