"""CBC through PuLP: the command that comes with it, a process a solve."""

from __future__ import annotations

import math
import platform
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.arrays import TOLERANCE, Stopwatch, refuse_sets, trivial_answer
from bfreplay.milp.backends.backend import BackendAnswer, Capabilities, SolveOptions, objective_scale, unmet
from bfreplay.milp.backends.cbc_mip import INCREMENT
from bfreplay.milp.files.models import mps_text
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus
from bfreplay.outputs import scratch_prefix

STATUSES = {
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
        if wrong := unmet("pulp", ">=3.3,<4", why="PuLP 4 brings no CBC", fix="pip install 'pulp>=3.3,<4'"):
            return wrong
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
        if (known := trivial_answer(model)) is not None:
            return known
        posed = _pose(model)
        command = _command(options)
        stopwatch.start_solving()
        # PuLP leaves its files after a failure
        with tempfile.TemporaryDirectory(prefix=scratch_prefix("pulp")) as folder:
            command.tmpDir = folder
            command.actualSolve(posed)
        status = STATUSES.get(posed.said, SolverStatus.UNKNOWN)
        x, objective, bound = None, math.nan, math.inf
        if status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
            x = posed.column_values()
            objective = float(model.objective @ x) + model.objective_constant
            if status is SolverStatus.OPTIMAL and options.relative_gap == 0:
                bound = objective
        if status is SolverStatus.INFEASIBLE and stopwatch.solve_s >= options.time_limit_s:
            status = SolverStatus.NO_SOLUTION  # CBC says so as well when its time ends while it prepares the model
        return stopwatch.answer(status, x, objective, bound, f"PuLP says {posed.said[0]}, {posed.said[1]}")


def _command(options: SolveOptions) -> Any:
    """Return PuLP's solver with the settings of ``cbc_mip``; PuLP warns on every use that version 4 drops it."""
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
class _Posed:
    """Model with the methods by which PuLP's commands write it and hand the answer over."""

    columns: list[str]
    text: str
    name: str = "bfreplay"
    sense: int = 1  # PuLP's LpMinimize: the file holds the negative objective
    values: dict[str, float] = field(default_factory=dict)
    said: tuple[str, str] = ("Not Solved", "No Solution Found")

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

        self.said = pulp.LpStatus.get(status, str(status)), pulp.LpSolution.get(sol_status, str(sol_status))
        return True

    def column_values(self) -> NDArray[np.float64]:
        """Values by column.

        Raises
        ------
        KeyError
            The answer leaves a column out.
        """
        return np.array([self.values[column] for column in self.columns], dtype=np.float64)


def _pose(model: LinearModel) -> _Posed:
    """Return the model as MPS with short names and the scaled objective."""
    columns = [f"c{i}" for i in range(model.n_columns)]
    short = replace(
        model,
        objective=model.objective / objective_scale(model),
        objective_constant=0.0,
        column_names=tuple(columns),
        row_names=tuple(f"r{i}" for i in range(model.n_rows)),
        start=None,
    )
    return _Posed(columns, mps_text(short))
