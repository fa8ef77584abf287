"""CBC by python-mip: what its C interface needs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.backends import cbc as module
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.solution import SolverStatus
from bfreplay.testing.models import INF, linear
from tests.milp.backends.present import present
from tests.milp.small_problems import problem_of_two

OPTIONS = SolveOptions(30.0)


@pytest.fixture(scope="module")
def cbc():
    return present("cbc")


def test_the_whole_matrix_arrives(cbc):
    """Coefficients, sides, bounds and integrality as CBC itself has them."""
    model = linear(
        [8, -2, 4],
        [(1, {0: 1.5, 2: -2}, 4), (-INF, {1: 3}, 7), (2, {0: 1, 1: 1, 2: 1}, 2)],
        lower=[-1, 0, -INF],
        upper=[5, INF, 9],
        whole=[True, False, True],
    )
    built = module._build(model, 8.0)
    library, pointer = module._cbc_module().cbclib, built.solver._model
    assert [built.solver.constr_get_rhs(r) for r in (1, 2)] == [7, 2]
    assert [library.Cbc_getRowSense(pointer, r) for r in range(3)] == [b"R", b"L", b"E"]
    assert [library.Cbc_getRowCoeffs(pointer, 0)[e] for e in range(library.Cbc_getRowNz(pointer, 0))] == [1.5, -2]
    assert [library.Cbc_getColObj(pointer, c) for c in range(3)] == [1.0, -0.25, 0.5]
    assert [library.Cbc_getColLB(pointer, c) for c in range(2)] == [-1, 0]
    assert [library.Cbc_getColUB(pointer, c) for c in (0, 2)] == [5, 9]
    assert [library.Cbc_isInteger(pointer, c) for c in range(3)] == [1, 0, 1]


def test_a_start_is_left_out_where_there_are_sets(cbc, monkeypatch):
    """Together they give wrong optima."""
    with_start = formulation_of("node_level").build(problem_of_two())
    with_start = replace(with_start, start=np.full(with_start.n_columns, 0.5))
    answer = cbc.solve(with_start, OPTIONS)
    assert answer.objective == pytest.approx(12.0)
    without = cbc.solve(replace(with_start, start=None), OPTIONS)
    np.testing.assert_array_equal(answer.x, without.x)


def test_a_model_can_be_collected_while_cffi_holds_its_lock(cbc):
    """In a fresh process, where nothing was looked up before: a collection there used to hang for ever."""
    script = """
import gc
from bfreplay.milp.backends.cbc import _cbc_module
cbc = _cbc_module()
import mip
mip.Model(solver_name=mip.CBC)
with cbc.ffi._lock:
    gc.collect()
print("collected")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.split() == ["collected"], done.stderr


def test_nothing_reaches_standard_output(cbc, capfd):
    for name in ("published", "node_level", "choices"):
        cbc.solve(formulation_of(name).build(problem_of_two()), OPTIONS)
    assert capfd.readouterr().out == ""


def test_a_status_that_python_mip_may_invent_is_unknown():
    assert module.CbcMip.statuses.get("CUTOFF", SolverStatus.UNKNOWN) is SolverStatus.UNKNOWN
