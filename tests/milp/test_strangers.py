"""What strangers' classes do wrong costs a decision or is an error in one line; it never is a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError, SolverUnavailableError
from bfreplay.milp import ExactSolver, MilpSolver, ProcessStatus, Quality, SolverStatus, solver_entries, solver_of
from bfreplay.milp.backends import BACKENDS, backend_of
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from bfreplay.milp.verify import objective_of, violation
from bfreplay.policies import BFTrainerPolicy
from bfreplay.workload import JobSet
from tests.milp import faulty_backends, faulty_formulations
from tests.milp.small_problems import problem_of_two
from tests.replay.tiny import job, log

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests.milp.faulty_formulations:"


def answered(formulation, **options):
    solver = MilpSolver(formulation, **{"referee": ExactSolver(), "isolated": False, **options})
    try:
        return solver.solve(problem_of_two())
    finally:
        solver.close()


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("RaisesInBuild", r"failed in build\(\): ZeroDivisionError: division by zero \(faulty_formulations.py, line "),
        ("RaisesInRead", r"failed in read\(\): KeyError: 'no\\nsuch job' \(faulty_formulations.py"),
        ("ChangesValues", r"failed in build\(\): it changed problem.value in place: change a copy"),
        ("ChangesMuch", r"failed in read\(\): it changed problem.max_nodes, problem.gain in place"),
        ("ChangesValuesAndRaises", r"failed in read\(\): RuntimeError: stopped"),
        ("BuildsNothing", r"failed in build\(\): it returned None, not a bfreplay.milp.LinearModel"),
        ("BuildsLists", "objective is no one-dimensional array"),
        ("BuildsShortBounds", "column_upper has 3 elements, objective has 9"),
        ("BuildsOutside", "entry_column points outside 0 to 8"),
        ("BuildsNan", "objective holds a number that is not finite"),
        ("BuildsOddNames", "column_names is no tuple of strings"),
        ("ReadsCountsOnly", r"failed in read\(\): it returned an array of int64, not \(counts, node map or None\)"),
        ("ReadsAList", "its counts are a list"),
        ("ReadsFloats", "its counts are an array of float64"),
        ("ReadsTooMany", r"its counts have shape \(3,\), expected \(2,\)"),
        ("ReadsNodesOutside", "something else than nodes 0 to 4"),
        ("ReadsOneNode", "its node map is a int, not a tuple of tuples"),
    ],
)
def test_a_formulation_that_fails_costs_the_decision_and_the_fallback_answers(fault, says):
    solution = answered(getattr(faulty_formulations, fault)())
    assert solution.quality is Quality.PROVEN
    assert solution.counts.tolist() == [3, 2]
    failed = solution.rejected
    assert re.match(r"formulation '(choices|node_level)' ", failed.message)
    assert re.search(says, failed.message)
    assert "\n" not in failed.message
    assert failed.counts is None
    assert (failed.process_status, failed.solver_status) == (ProcessStatus.OK, SolverStatus.ERROR)
    assert failed.quality is Quality.NONE


def test_without_or_with_another_fallback_a_failed_formulation_is_as_any_failure():
    assert answered(faulty_formulations.RaisesInBuild(), fallback="keep").counts.tolist() == [1, 2]
    assert answered(faulty_formulations.RaisesInRead(), fallback="none").counts is None


def test_a_node_map_of_other_sizes_than_the_counts_is_wrong():
    failed = answered(faulty_formulations.ReadsAnotherMap()).rejected
    assert failed.quality is Quality.WRONG
    assert "job 0 gets 3 nodes, but its node map names 1" in failed.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("solver_status", "optimal"),
        ("solver_status", "FEASIBLE"),
        ("solver_status", None),
        ("solver_status", ["optimal"]),
        ("objective", None),
        ("bound", "high"),
        ("build_s", "soon"),
        ("solve_s", None),
        ("x", "abc"),
    ],
)
def test_a_back_end_that_answers_the_wrong_types_is_wrong(field, value, tmp_path):
    from dataclasses import replace

    class Mistyped(faulty_backends.CbcMip):
        def solve(self, model, options):
            return replace(super().solve(model, options), **{field: value})

    solution = answered("choices", backend=Mistyped(), save_failures=tmp_path / "failed")
    assert solution.quality is Quality.PROVEN
    assert f"the back end's {field} is" in solution.rejected.message
    said = SolverStatus.ERROR if field == "solver_status" else SolverStatus.OPTIMAL
    assert (solution.rejected.solver_status, solution.rejected.quality) == (said, Quality.WRONG)
    assert len(list((tmp_path / "failed").glob("*.json"))) == 1


def test_a_replay_counts_the_answers_of_a_back_end_whose_status_is_text():
    from dataclasses import replace

    class SaysText(faulty_backends.CbcMip):
        def solve(self, model, options):
            return replace(super().solve(model, options), solver_status="optimal")

    solver = MilpSolver("choices", SaysText(), referee=ExactSolver(), isolated=False)
    idle = log(2, [(50, 1, True)], 100, idle_first=(0,))
    run = replay_log(idle, JobSet([job()]), BFTrainerPolicy(60.0, solver), efficiency=False)
    assert run.summary["fallbacks"] == {"wrong": 2}
    assert run.table("decisions").to_pydict()["solver_status"] == ["optimal", "optimal"]  # of the fallback
    assert run.table("decisions").to_pydict()["rejected_solver_status"] == ["error", "error"]


@pytest.mark.parametrize(
    "counts", [[3, 2], np.array([3.0, 2.0]), np.array(["a", "b"]), np.array([True, True]), None, np.array([None, 1])]
)
def test_what_is_no_array_of_whole_numbers_is_a_violation_not_an_exception(counts):
    assert violation(problem_of_two(), counts).startswith("counts are ")
    assert objective_of(problem_of_two(), counts) == -np.inf


@pytest.mark.parametrize(
    ("name", "says"), [("NeedsArguments", "missing 1 required positional argument"), ("RaisesWhenMade", "RuntimeError")]
)
def test_a_class_that_cannot_be_made_is_refused_in_one_line(name, says):
    with pytest.raises(InputError, match=says) as caught:
        formulation_of(HERE + name)
    assert "\n" not in caught.value.problem
    assert "called without arguments" in str(caught.value)


@pytest.mark.parametrize("text", ["1 / 0", "import sys\nsys.exit(3)", "def f(:", "import no_such_module", "x = 1"])
def test_a_module_that_fails_on_import_is_refused_with_what_it_raised(tmp_path, monkeypatch, text):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "theirs_to_import.py").write_text(text + "\n")
    monkeypatch.delitem(sys.modules, "theirs_to_import", raising=False)
    for maker in (formulation_of, backend_of):
        with pytest.raises(InputError, match=r"cannot be imported: [A-Z][A-Za-z]+: ") as caught:
            maker("theirs_to_import:Class")
        assert "\n" not in caught.value.problem
        fix = "the module has no such name" if text == "x = 1" else "correct this error, which the module raises"
        assert fix in caught.value.fix
        if text == "1 / 0":
            assert "ZeroDivisionError: division by zero (theirs_to_import.py, line 1)" in caught.value.problem


def test_a_back_end_whose_check_raises_does_not_work_here():
    class Odd(faulty_backends.Faulty):
        def available(self):
            raise OSError("no licence server")

    with pytest.raises(SolverUnavailableError, match=r"available\(\) failed: OSError: no licence server"):
        MilpSolver("choices", Odd(), referee=ExactSolver(), isolated=False)


@pytest.mark.slow
def test_a_broken_package_does_not_hide_the_other_solvers(monkeypatch):
    monkeypatch.setattr("bfreplay.registry._entry_points_by_name", lambda group, path: {"broken": "no.such:Thing"})
    entries = {entry.name: entry for entry in solver_entries()}
    assert list(entries) == ["exact", *BACKENDS.built_in, "broken", "formulation broken"]
    assert entries["cbc"].formulations == tuple(FORMULATIONS.built_in)
    assert "published" not in entries["highs"].formulations  # it takes no special ordered sets
    assert entries["highs"].reformulated == ("published", "node_level", "counts_sos2")
    assert entries["cbc"].reformulated == ()
    theirs = entries["broken"]
    assert "cannot be imported" in theirs.problem
    assert "cannot be imported" in entries["formulation broken"].problem


@pytest.mark.slow
def test_a_back_end_that_is_installed_and_cannot_be_imported_does_not_work_here(tmp_path, monkeypatch):
    package = tmp_path / "highspy"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libhighs.so: no such file\\nsecond line')")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = next(entry for entry in solver_entries() if entry.name == "highs")
    assert found.problem == "ImportError: libhighs.so: no such file second line"
    assert found.version == ""


@pytest.mark.parametrize("name", ["exact", "cbc"])
def test_an_option_that_no_solver_has_is_refused(name):
    solver_of(name, threads=1).close()
    with pytest.raises(InputError, match="did you mean 'time_limit_s'"):
        solver_of(name, tme_limit_s=1)


def test_an_unknown_solver_is_refused_with_all_that_exist_and_the_nearest():
    with pytest.raises(InputError) as caught:
        solver_of("cbcc")
    assert str(caught.value).splitlines() == [
        "unknown solver 'cbcc'",
        f"  expected: one of {', '.join(['exact', *BACKENDS.built_in])}; or package.module:Class",
        "  fix:      did you mean 'cbc'?",
    ]
    with pytest.raises(InputError, match="did you mean 'exact'"):
        solver_of("exat")


@pytest.mark.parametrize(
    ("solver", "formulation", "says", "fix"),
    [
        ("exact", "publishd", "unknown formulation 'publishd'", "did you mean 'published'?"),
        ("exact", "node_level", "is a MILP: a back end must", "such as 'cbc', with this formulation"),
        ("exact", "mine:Mine", "is a MILP: a back end must", "such as 'cbc', with this formulation"),
        ("cbc", "counts", "is the exact solver's", "take the solver 'exact'"),
        ("cbc", "publishd", "unknown formulation 'publishd'", "did you mean 'published'?"),
    ],
)
def test_a_formulation_for_another_solver_is_refused_with_the_way_out(solver, formulation, says, fix):
    with pytest.raises(InputError, match=says) as caught:
        solver_of(solver, formulation)
    assert fix in caught.value.fix


@pytest.mark.slow
def test_the_example_in_the_docs_runs_by_its_command_line(tmp_path):
    page = (ROOT / "docs" / "algorithm-developers.md").read_text()
    (example,) = [text for text in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "class Mine" in text]
    (command,) = re.findall(r"^\$ bfreplay (.*mine:Mine)$", page, re.M)
    (tmp_path / "mine.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "bfreplay.cli", *command.split(), "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert '"mine on cbc"' in done.stdout
    assert re.search(r'"fallbacks": \{\}', done.stdout)


def test_the_room_opens_without_tables():
    script = "import sys, bfreplay.milp; assert not {'pandas', 'pyarrow'} & set(sys.modules), 'loaded'"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
