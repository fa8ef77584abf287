"""What is peculiar to one back end each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bfreplay.milp.backends import ModelRefusedError, SolveOptions, backend_of
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.solution import ProcessStatus, SolverStatus
from bfreplay.testing.models import INF, linear
from tests.milp.backends.present import present

OPTIONS = SolveOptions(30.0)
SIMPLE = linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10])


@pytest.fixture(scope="module")
def cp_sat():
    present("cp-sat")
    with IsolatedBackend("cp-sat") as isolated:
        yield isolated


class TestGurobi:
    @pytest.fixture(autouse=True)
    def _installed(self):
        present("gurobi")

    @pytest.mark.parametrize(
        ("model", "size"),
        [
            (linear([1.0] * 2001, [(-INF, dict.fromkeys(range(2001), 1.0), 3)], upper=1), "2,001 columns and 1 rows"),
            (linear([1, 1], [(-INF, {0: 1, 1: 1}, float(r)) for r in range(1, 2002)]), "2 columns and 2,001 rows"),
        ],
        ids=["columns", "rows"],
    )
    def test_a_model_beyond_the_free_licence_is_refused_with_every_way_out(self, model, size):
        with IsolatedBackend("gurobi") as isolated:
            ran = isolated.solve(model, OPTIONS)
        if ran.answer is not None:
            pytest.skip("this machine has a full licence of Gurobi")
        assert ran.process_status is ProcessStatus.REFUSED
        for part in (size, "2,000", "full licence is picked up by itself", "gurobi.lic", "choices_reduced"):
            assert part in ran.message

    def test_refusals_are_recognised_by_gurobis_own_error(self, monkeypatch):
        import gurobipy

        def too_large(**_: object):
            raise gurobipy.GurobiError(gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED, "Model too large")

        monkeypatch.setattr(gurobipy, "loadModel", too_large)
        with pytest.raises(ModelRefusedError, match="2 columns and 1 rows"):
            backend_of("gurobi").solve(SIMPLE, OPTIONS)

    def test_other_errors_are_not_taken_for_refusals(self, monkeypatch):
        import gurobipy

        def broken(**_: object):
            raise gurobipy.GurobiError(gurobipy.GRB.Error.UNKNOWN_ATTRIBUTE, "no such attribute")

        monkeypatch.setattr(gurobipy, "loadModel", broken)
        with pytest.raises(gurobipy.GurobiError, match="no such attribute"):
            backend_of("gurobi").solve(SIMPLE, OPTIONS)

    def test_one_environment_serves_every_solve_of_a_process(self, monkeypatch):
        from bfreplay.milp.backends import gurobi as module

        backend_of("gurobi").solve(SIMPLE, OPTIONS)
        monkeypatch.setattr(module, "_start_environment", lambda: pytest.fail("a second environment"))
        assert backend_of("gurobi").solve(SIMPLE, OPTIONS).objective == pytest.approx(11.0)
        assert backend_of("gurobi").available() == ""

    def test_a_licence_that_does_not_work_is_told_in_gurobis_words(self, monkeypatch, tmp_path):
        from bfreplay.milp.backends import gurobi as module

        (tmp_path / "gurobi.lic").write_text("TYPE=NODE\nHOSTNAME=elsewhere\n")
        monkeypatch.setenv("GRB_LICENSE_FILE", str(tmp_path / "gurobi.lic"))
        monkeypatch.setattr(module, "_environments", {})
        assert backend_of("gurobi").available().startswith("Gurobi does not start: ")


class TestPulp:
    @pytest.fixture(autouse=True)
    def _installed(self):
        present("pulp-cbc")

    def test_a_machine_that_pulps_command_is_not_made_for_is_named(self, monkeypatch):
        monkeypatch.setattr("platform.machine", lambda: "ppc64le")
        assert "no CBC command for ppc64le" in backend_of("pulp-cbc").available()

    def test_no_file_is_left(self, monkeypatch, tmp_path):
        for variable in ("TMPDIR", "TMP", "TEMP"):
            monkeypatch.setenv(variable, str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        assert backend_of("pulp-cbc").solve(SIMPLE, OPTIONS).objective == pytest.approx(11.0)
        assert backend_of("pulp-cbc").solve(replace(SIMPLE, row_lower=np.array([14.0])), OPTIONS).x is None
        assert list(tmp_path.iterdir()) == []

    def test_a_crash_of_the_command_is_an_error_and_leaves_no_file(self, monkeypatch, tmp_path):
        from pulp import PulpSolverError

        from bfreplay.milp.backends import cbc as module

        def dies(options):
            command = made(options)
            command.path = str(tmp_path / "cbc")
            return command

        made = module._command
        (tmp_path / "cbc").write_text("#!/bin/sh\nkill -SEGV $$\n")
        (tmp_path / "cbc").chmod(0o755)
        (tmp_path / "files").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "files"))
        monkeypatch.setattr(module, "_command", dies)
        with pytest.raises(PulpSolverError):
            backend_of("pulp-cbc").solve(SIMPLE, OPTIONS)
        assert list((tmp_path / "files").iterdir()) == []

    @pytest.mark.parametrize(
        ("first_line", "status"),
        [
            ("Optimal - objective value 1.0", SolverStatus.OPTIMAL),
            ("Optimal (within gap tolerance) - objective value 1.0", SolverStatus.OPTIMAL),
            ("Stopped on time - objective value 1.0", SolverStatus.FEASIBLE),
            ("Stopped on time (no integer solution - continuous used) - objective value 1.0", SolverStatus.NO_SOLUTION),
            ("Infeasible - objective value 0.0", SolverStatus.INFEASIBLE),
            ("Integer infeasible - objective value 0.0", SolverStatus.INFEASIBLE),
            ("Unbounded - objective value 0.0", SolverStatus.UNBOUNDED),
            ("Something new - objective value 0.0", SolverStatus.UNKNOWN),
        ],
    )
    def test_only_what_cbc_calls_optimal_is_optimal(self, monkeypatch, tmp_path, first_line, status):
        """A command that answers with this first line, and column values after it."""
        from bfreplay.milp.backends import cbc as module

        script = tmp_path / "cbc"
        script.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"open(sys.argv[-1], 'w').write({first_line!r} + '\\n      0 c0   3   1\\n      1 c1   1   1\\n')\n"
        )
        script.chmod(0o755)
        made = module._command

        def scripted(options):
            command = made(options)
            command.path = str(script)
            return command

        monkeypatch.setattr(module, "_command", scripted)
        answer = backend_of("pulp-cbc").solve(SIMPLE, OPTIONS)
        assert answer.solver_status is status
        assert (answer.x is None) is (status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE))
        assert np.isfinite(answer.bound) == (status is SolverStatus.OPTIMAL)


class TestHighs:
    @pytest.mark.parametrize(
        ("start", "status"),
        [([2.0, 1.0], SolverStatus.FEASIBLE), ([9.0, 9.0], SolverStatus.NO_SOLUTION), (None, SolverStatus.NO_SOLUTION)],
        ids=["feasible", "infeasible", "none"],
    )
    def test_what_is_there_when_time_is_up_is_an_answer_only_if_it_is_feasible(self, start, status):
        present("highs")
        model = replace(SIMPLE, start=None if start is None else np.array(start))
        answer = backend_of("highs").solve(model, SolveOptions(1e-9))
        assert (answer.solver_status, answer.message) == (status, "HiGHS says kTimeLimit")
        assert (None if answer.x is None else answer.x.tolist()) == (start if status is SolverStatus.FEASIBLE else None)

    def test_a_point_that_highs_itself_calls_infeasible_is_no_answer(self, monkeypatch):
        present("highs")
        import highspy

        def infeasible(highs):
            info = getInfo(highs)
            info.primal_solution_status = 1
            return info

        getInfo = highspy.Highs.getInfo
        monkeypatch.setattr(highspy.Highs, "getInfo", infeasible)
        answer = backend_of("highs").solve(replace(SIMPLE, start=np.array([2.0, 1.0])), SolveOptions(1e-9))
        assert (answer.solver_status, answer.x) == (SolverStatus.NO_SOLUTION, None)


class TestCpSat:
    @pytest.mark.parametrize(
        ("model", "said"),
        [
            (linear([1, 1], whole=[True, False]), "takes integer columns only, and x1 is continuous"),
            (linear([1, 1], [(0, {1: 0.5}, 2)]), "takes whole coefficients only, and row row0 has 0.5 times x1"),
            (linear([1, 1], upper=[1, INF]), "takes finite bounds only, and x1 goes from 0 to inf"),
            (linear([1, 1], [(0, {0: 1e12}, 2e18)], upper=1e9), "the sum of row row0 could exceed the 64 bits"),
        ],
        ids=["continuous", "fraction", "infinite", "too large"],
    )
    def test_what_is_not_whole_is_refused_by_name(self, cp_sat, model, said):
        ran = cp_sat.solve(model, OPTIONS)
        assert ran.process_status is ProcessStatus.REFUSED
        assert said in ran.message
        assert "choices_reduced" in ran.message

    def test_sides_that_are_not_whole_go_to_the_whole_numbers_between(self, cp_sat):
        model = linear([1, -1], [(0.5, {1: 1}, 9), (-INF, {0: 2, 1: 1}, 7.9)])
        np.testing.assert_array_equal(cp_sat.solve(model, OPTIONS).answer.x, [3, 1])

    def test_objectives_are_told_apart_to_a_billionth_of_the_largest_coefficient(self, cp_sat):
        worth = 1e7 * (1.0 + 1e-9 * np.random.default_rng(1).permutation(40))
        model = linear(worth.tolist(), [(-INF, dict.fromkeys(range(40), 1.0), 1)], upper=1)
        answer = cp_sat.solve(model, OPTIONS).answer
        assert answer.objective == worth.max()
        assert answer.objective <= answer.bound <= worth.max() * (1 + 1e-7)

    def test_bounds_that_are_wide_make_the_steps_coarser_not_wrong(self, cp_sat):
        """The sum over all columns would leave 64 bits with steps of a 2^-32nd."""
        model = linear([3, 2], [(-INF, {0: 1, 1: 1}, 1e12)], upper=9e11)
        answer = cp_sat.solve(model, OPTIONS).answer
        assert answer.solver_status is SolverStatus.OPTIMAL
        assert answer.objective == pytest.approx(2.9e12, rel=1e-9)
        assert answer.bound >= answer.objective


@pytest.mark.slow
def test_a_worker_that_never_loaded_or_tools_can_still_be_asked_for_cbc():
    """Each back end in its own worker: no order of them matters."""
    present("cp-sat")
    present("cbc")
    found = {}
    for name in ("cbc", "cp-sat", "highs", "cbc"):
        with IsolatedBackend(name) as isolated:
            found[name] = isolated.solve(SIMPLE, OPTIONS).answer.objective
    assert found == pytest.approx(dict.fromkeys(found, 11.0)), json.dumps(found)


def test_what_a_library_prints_when_it_is_made_does_not_reach_our_output(tmp_path):
    """In Python and in C, where it stays in a buffer until the end of a process whose output is no terminal."""
    (tmp_path / "highspy.py").write_text(
        "import ctypes\n"
        "class Highs:\n"
        "    def __init__(self):\n"
        "        print('banner of python')\n"
        "        ctypes.CDLL(None).printf(b'banner of C\\n')\n"
        "    def setOptionValue(self, *_):\n"
        "        pass\n"
    )
    script = "from bfreplay.milp.linear_program import new_highs; print('{'); new_highs(); print('}')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).resolve().parents[3]}"},
    )
    assert done.stdout == "{\n}\n"
