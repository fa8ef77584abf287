"""Public names of ``bfreplay.milp`` and where each lives: type checkers read them here, and so does ``__init__.py``."""

from .backends import Backend as Backend
from .backends import BackendAnswer as BackendAnswer
from .backends import Capabilities as Capabilities
from .backends import ModelRefusedError as ModelRefusedError
from .backends import SolveOptions as SolveOptions
from .exact import ExactSolver as ExactSolver
from .formulations import Formulation as Formulation
from .milp_solver import MilpSolver as MilpSolver
from .model import LinearModel as LinearModel
from .model import SpecialOrderedSet as SpecialOrderedSet
from .model_builder import Constraint as Constraint
from .model_builder import Expression as Expression
from .model_builder import ModelBuilder as ModelBuilder
from .named_solvers import solve as solve
from .named_solvers import solver_entries as solver_entries
from .named_solvers import solver_of as solver_of
from .problem import AllocationProblem as AllocationProblem
from .solution import ProcessStatus as ProcessStatus
from .solution import Quality as Quality
from .solution import Solution as Solution
from .solution import Solver as Solver
from .solution import SolverStatus as SolverStatus
