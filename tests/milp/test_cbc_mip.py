"""CBC by python-mip: statuses, scaling, silence."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.milp.backends import Backend, SolveOptions, backend_of
from bfreplay.milp.backends import cbc_mip as module
from bfreplay.milp.backends.backend import objective_scale
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.model import LinearModel, SpecialOrderedSet
from bfreplay.milp.solution import SolverStatus
from tests.milp.small_problems import problem_of_two

CBC = backend_of("cbc")
OPTIONS = SolveOptions(30.0)


def two_columns(**changes) -> LinearModel:
    """Maximise 3 a + 2 b with a + b between 1 and 4, a at most 3, both whole."""
    model = LinearModel(
        objective=np.array([3.0, 2.0]),
        objective_constant=0.0,
        column_lower=np.zeros(2),
        column_upper=np.array([3.0, np.inf]),
        is_integer=np.ones(2, dtype=bool),
        column_names=("a", "b"),
        row_lower=np.array([1.0]),
        row_upper=np.array([4.0]),
        row_names=("sum",),
        entry_row=np.array([0, 0]),
        entry_column=np.array([0, 1]),
        entry_value=np.array([1.0, 1.0]),
    )
    return replace(model, **changes)


def test_the_back_end_is_what_its_protocol_says():
    assert isinstance(CBC, Backend)
    assert CBC.available() == ""
    assert CBC.capabilities.sos
    assert not CBC.capabilities.warm_start


def test_the_optimum_comes_back_in_the_models_own_objective():
    answer = CBC.solve(two_columns(objective_constant=100.0), OPTIONS)
    assert answer.solver_status is SolverStatus.OPTIMAL
    np.testing.assert_allclose(answer.x, [3, 1])
    assert answer.objective == pytest.approx(111.0)
    assert answer.bound == pytest.approx(111.0)
    assert answer.build_s >= 0
    assert answer.solve_s > 0


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e9])
def test_the_size_of_the_objective_does_not_matter(factor):
    answer = CBC.solve(two_columns(objective=np.array([3.0, 2.0]) * factor), OPTIONS)
    assert answer.objective == pytest.approx(11.0 * factor)


def test_a_row_with_two_sides_holds_on_both():
    low = CBC.solve(two_columns(objective=np.array([-3.0, -2.0])), OPTIONS)
    np.testing.assert_allclose(low.x, [0, 1])


def test_an_objective_of_zeros_is_no_division_by_zero():
    assert objective_scale(two_columns(objective=np.zeros(2))) == 1.0
    assert CBC.solve(two_columns(objective=np.zeros(2)), OPTIONS).solver_status is SolverStatus.OPTIMAL


def test_an_infeasible_model_is_called_infeasible_without_an_answer():
    answer = CBC.solve(two_columns(row_lower=np.array([5.0]), row_upper=np.array([4.5])), OPTIONS)
    assert answer.solver_status is SolverStatus.INFEASIBLE
    assert answer.x is None
    assert math.isnan(answer.objective)
    assert math.isinf(answer.bound)


def test_an_empty_row_that_demands_something_is_infeasible():
    """What ``choices`` builds for a job whose change limit allows no count at all."""
    model = two_columns(entry_row=np.zeros(0, int), entry_column=np.zeros(0, int), entry_value=np.zeros(0))
    assert CBC.solve(model, OPTIONS).solver_status is SolverStatus.INFEASIBLE


def test_an_unbounded_model_is_never_success():
    answer = CBC.solve(two_columns(row_upper=np.array([np.inf])), OPTIONS)
    assert answer.solver_status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)


def test_at_most_two_neighbours_of_an_sos2_are_used():
    """Weights on (0, 0), (1, -1), (2, 3): at 1 the curve is worth -1; without the set it would be 1.5."""
    model = LinearModel(
        objective=np.array([0.0, -1.0, 3.0]),
        objective_constant=0.0,
        column_lower=np.zeros(3),
        column_upper=np.ones(3),
        is_integer=np.zeros(3, dtype=bool),
        column_names=("w0", "w1", "w2"),
        row_lower=np.array([1.0, 1.0]),
        row_upper=np.array([1.0, 1.0]),
        row_names=("convex", "at"),
        entry_row=np.array([0, 0, 0, 1, 1]),
        entry_column=np.array([0, 1, 2, 1, 2]),
        entry_value=np.array([1.0, 1.0, 1.0, 1.0, 2.0]),
        sets=(SpecialOrderedSet(2, np.arange(3), np.arange(3.0)),),
    )
    assert CBC.solve(model, OPTIONS).objective == pytest.approx(-1.0)


def test_differences_of_a_millionth_are_still_told_apart():
    """With CBC's own increment of 1e-5 the first of these columns found would be called optimal."""
    n = 40
    model = LinearModel(
        objective=1.0 + 2e-6 * np.random.default_rng(1).permutation(n),
        objective_constant=0.0,
        column_lower=np.zeros(n),
        column_upper=np.ones(n),
        is_integer=np.ones(n, dtype=bool),
        column_names=tuple(f"y{i}" for i in range(n)),
        row_lower=np.array([-np.inf]),
        row_upper=np.array([1.0]),
        row_names=("one",),
        entry_row=np.zeros(n, dtype=int),
        entry_column=np.arange(n),
        entry_value=np.ones(n),
    )
    assert CBC.solve(model, OPTIONS).objective == pytest.approx(float(model.objective.max()), rel=1e-7)


def test_a_time_limit_of_nothing_gives_no_optimum_that_was_not_proven():
    model = formulation_of("published").build(problem_of_two())
    answer = CBC.solve(model, SolveOptions(1e-9))
    if answer.solver_status is SolverStatus.OPTIMAL:
        assert answer.objective == pytest.approx(12.0)
    else:
        assert answer.solver_status in (SolverStatus.NO_SOLUTION, SolverStatus.FEASIBLE)


def test_the_same_model_gives_the_same_answer():
    model = formulation_of("node_level").build(problem_of_two())
    first, second = CBC.solve(model, OPTIONS), CBC.solve(model, OPTIONS)
    np.testing.assert_array_equal(first.x, second.x)


def test_a_model_can_be_collected_while_cffi_holds_its_lock():
    """In a fresh process, where nothing was looked up before: a collection there used to hang for ever."""
    script = """
import gc
from bfreplay.milp.backends.cbc_mip import _cbc_module
cbc = _cbc_module()
import mip
mip.Model(solver_name=mip.CBC)
with cbc.ffi._lock:
    gc.collect()
print("collected")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["collected"], done.stderr


def test_nothing_reaches_standard_output(capfd):
    for name in ("published", "node_level", "choices"):
        CBC.solve(formulation_of(name).build(problem_of_two()), OPTIONS)
    assert capfd.readouterr().out == ""


def test_a_status_that_python_mip_may_invent_is_unknown():
    assert module.STATUSES.get("CUTOFF", SolverStatus.UNKNOWN) is SolverStatus.UNKNOWN


@pytest.mark.parametrize(
    ("mip", "cbcbox"), [("2.0.0", "2.935"), ("1.17.5", "2.935"), ("1.15.0", "2.927"), ("dev", "x")]
)
def test_builds_that_are_known_to_be_unsound_are_refused_with_the_fix(monkeypatch, mip, cbcbox):
    monkeypatch.setattr(module, "version", {"mip": mip, "cbcbox": cbcbox}.__getitem__)
    assert "pip install 'mip>=1.17,<2' 'cbcbox>=2.913,<2.929'" in CBC.available()


def test_a_missing_package_is_named_with_the_fix(monkeypatch):
    def missing(package: str) -> str:
        raise module.PackageNotFoundError(package)

    monkeypatch.setattr(module, "version", missing)
    assert CBC.available().startswith("mip is not installed; pip install")


def test_an_unknown_back_end_is_refused_with_what_exists():
    with pytest.raises(InputError, match="did you mean 'cbc'"):
        backend_of("cbc_mip")
