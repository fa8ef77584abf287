"""Other solvers read a file of ours and solve it: the objective as the file states it, or None where infeasible."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.milp.backends.present import present

READS_SETS = {"cbc": True, "gurobi": True, "highs": False, "scip": True}

TIGHT = 1e-9
"""What solvers allow themselves by default (1e-5, even) is a difference between two small numbers."""


class RefusedFileError(Exception):
    """The solver does not read the file."""


Answer = tuple[float | None, list[str]]
"""Objective (maximised or minimised as the file says), and the names of the columns that are not 0."""


def read_by(solver: str, file: Path) -> Answer:
    """What ``solver`` makes of ``file``; skips where the solver is not installed."""
    return _READERS[solver](file)


def _cbc(file: Path) -> Answer:
    present("cbc")
    import cbcbox

    return _cbc_program(Path(cbcbox.cbc_dist_dir()) / "bin" / "cbc", file)


def _pulp_cbc(file: Path) -> Answer:
    """The older build that PuLP brings: with defects of its own in LP files and in sets."""
    present("pulp-cbc")
    import pulp

    return _cbc_program(Path(pulp.apis.PULP_CBC_CMD.pulp_cbc_path), file)


def _cbc_program(program: Path, file: Path) -> Answer:
    solution = file.with_suffix(".sol")
    solution.unlink(missing_ok=True)  # CBC appends
    # its preprocessing loses special ordered sets, whatever made the model: cbcbox 2.927
    tolerances = [word for name in ("integerTolerance", "primalTolerance") for word in (f"-{name}", str(TIGHT))]
    commands = [*tolerances, "-preprocess", "off", "-solve", "-solution", str(solution)]
    done = subprocess.run([str(program), str(file), *commands], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "default column names" not in done.stdout
    assert "errors on input" not in done.stdout
    first, *rows = solution.read_text().splitlines()
    if "nfeasible" in first:
        return None, []
    assert first.startswith("Optimal"), first
    values = {words[1]: float(words[2]) for words in map(str.split, rows)}
    return float(first.split()[-1]), [name for name, value in values.items() if abs(value) > 1e-6]


@cache
def _gurobi_environment() -> Any:
    present("gurobi")
    import gurobipy

    return gurobipy.Env(params={"OutputFlag": 0, "MIPGap": 0, "IntFeasTol": TIGHT, "FeasibilityTol": TIGHT})


def _gurobi(file: Path) -> Answer:
    present("gurobi")
    import gurobipy

    with gurobipy.read(str(file), _gurobi_environment()) as model:
        model.setParam("DualReductions", 0)  # infeasible and unbounded told apart
        model.optimize()
        if model.Status == gurobipy.GRB.INFEASIBLE:
            return None, []
        assert model.Status == gurobipy.GRB.OPTIMAL
        return model.ObjVal, [v.VarName for v in model.getVars() if abs(v.X) > 1e-6]


def _highs(file: Path) -> Answer:
    present("highs")
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_feasibility_tolerance", TIGHT)
    highs.setOptionValue("primal_feasibility_tolerance", TIGHT)
    if highs.readModel(str(file)) != highspy.HighsStatus.kOk:
        raise RefusedFileError(file.name)
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None, []
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    values = dict(zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True))
    return highs.getInfo().objective_function_value, [name for name, value in values.items() if abs(value) > 1e-6]


def _scip(file: Path) -> Answer:
    present("scip")
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("numerics/feastol", TIGHT)
    model.readProblem(str(file))
    model.optimize()
    if model.getStatus() == "infeasible":
        return None, []
    assert model.getStatus() == "optimal"
    return model.getObjVal(), [v.name for v in model.getVars() if abs(model.getVal(v)) > 1e-6]


_READERS: dict[str, Callable[[Path], Answer]] = {
    "cbc": _cbc,
    "pulp-cbc": _pulp_cbc,
    "gurobi": _gurobi,
    "highs": _highs,
    "scip": _scip,
}
