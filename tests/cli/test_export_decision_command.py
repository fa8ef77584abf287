"""``bfreplay export-decision`` as a user types it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import bfreplay
from bfreplay.cli import main
from bfreplay.milp.files.decision_json import read_decision
from bfreplay.milp.formulations import FORMULATIONS
from bfreplay.runs import saved_decisions
from tests.milp.files.readers import read_by
from tests.milp.formulations.checking import BY_COUNT
from tests.milp.small_problems import by_count

WINDOW = ("--window", "2024-07-01T06:00", "2024-07-01T10:00")
RUNS = {
    "exact": (),
    "equal-share": ("--policy", "equal-share"),
    "published": ("--semantics", "published", "--seed", "3"),
    "published by equal-share": ("--semantics", "published", "--policy", "equal-share"),
    "published limit": ("--solver", "exact", "--formulation", "published"),
    "unlimited work": ("--unlimited-work", "--max-parallel", "5"),
}


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def _export(run: Path, *options: object) -> Result:
    return _run("export-decision", run, "--quiet", *options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, options in RUNS.items():
        result = _run(
            "replay",
            "sample",
            "--jobs",
            "sample",
            *WINDOW,
            *options,
            "--no-efficiency",
            "--quiet",
            "--out",
            folder / name,
        )
        assert result.exit_code == 0, result.output
    return folder


def _decidable(run: Path) -> list[int]:
    table = bfreplay.RunResult.load(run).decisions
    return np.flatnonzero((table["n_jobs"] > 0) & (table["n_idle"] > 0)).tolist()


@pytest.mark.often("published", "equal-share", "unlimited work", "published limit", "published by equal-share")
@pytest.mark.parametrize("name", RUNS)
def test_every_decision_of_a_run_becomes_a_file_that_says_what_was_decided(runs, tmp_path, name):
    run, out = runs / name, tmp_path / "out"
    indices = _decidable(run)
    assert len(indices) > 20
    t_fwd = ("--t-fwd", 60) if "equal-share" in name else ()
    result = _export(run, *(word for index in indices for word in ("--decision", index)), *t_fwd, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [
        str(out / f"decision-{index:06d}{end}") for index in indices for end in (".json", "-choices.mps", "-choices.lp")
    ]
    table = bfreplay.RunResult.load(run).decisions
    compared = 0
    for index in indices:
        about = json.loads((out / f"decision-{index:06d}.json").read_text())["about"]
        problem = read_decision(out / f"decision-{index:06d}.json")
        row = table.iloc[index]
        assert (about["run"], about["decision"]) == (name, index)
        assert about["counts"] == row["counts"].tolist()
        assert len(about["jobs"]) == problem.n_jobs == row["n_jobs"]
        assert problem.capacity == row["n_idle"]
        if row["solver"].startswith("exact"):
            compared += 1
            solution = bfreplay.solve(problem, formulation="published" if name == "published limit" else None)
            assert solution.counts is not None
            assert solution.counts.tolist() == about["counts"]
            assert solution.objective == about["answer"]["objective"] == about["objective_of_counts"]
    assert "equal-share" in name or compared > 20


@pytest.mark.parametrize("solver", ["cbc", "gurobi", "highs", "scip"])
def test_other_solvers_find_the_recorded_objective_in_the_files(runs, tmp_path, solver):
    indices = _decidable(runs / "exact")[::25]
    _export(runs / "exact", *(word for index in indices for word in ("--decision", index)), "--out", tmp_path)
    table = bfreplay.RunResult.load(runs / "exact").decisions
    for index in indices:
        best = pytest.approx(table["objective"][index], rel=1e-6)
        assert read_by(solver, tmp_path / f"decision-{index:06d}-choices.lp")[0] == best
        assert -(read_by(solver, tmp_path / f"decision-{index:06d}-choices.mps")[0] or 0) == best


def test_formulations_may_be_named_or_all_be_taken(runs, tmp_path):
    index = _decidable(runs / "exact")[0]
    result = _export(runs / "exact", "--decision", index, "--out", tmp_path / "all", "--formulation", "all")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "all").iterdir()} == {
        f"decision-{index:06d}.json",
        *(f"decision-{index:06d}-{name}.{form}" for name in FORMULATIONS.names() for form in ("mps", "lp")),
    }
    _export(
        runs / "exact",
        "--decision",
        index,
        "--out",
        tmp_path / "two",
        "--formulation",
        "published",
        "--formulation",
        "bfreplay.milp.formulations.choices:Choices",
        "--formulation",
        "published",
    )
    assert len(list((tmp_path / "two").iterdir())) == 5
    more = _export(
        runs / "exact",
        "--decision",
        index,
        "--out",
        tmp_path / "more",
        "--formulation",
        "all",
        "--formulation",
        "no.such:Thing",
    )
    assert more.exit_code == 2
    assert "no.such" in more.stderr


def test_all_formulations_are_those_that_take_losses_by_count(runs, tmp_path, monkeypatch):
    original = saved_decisions.recorded_decisions

    def by_count_decisions(*arguments, **options):
        return [
            replace(decision, problem=by_count(decision.problem, decision.problem.loss))
            for decision in original(*arguments, **options)
        ]

    monkeypatch.setattr(saved_decisions, "recorded_decisions", by_count_decisions)
    index = _decidable(runs / "exact")[0]
    result = _export(runs / "exact", "--decision", index, "--out", tmp_path / "all", "--formulation", "all")
    assert result.exit_code == 0, result.output
    assert "losses depend on the new count, so there is no model of published\n" in result.stderr
    assert {path.name for path in (tmp_path / "all").iterdir()} == {
        f"decision-{index:06d}.json",
        *(f"decision-{index:06d}-{name}.{form}" for name in BY_COUNT for form in ("mps", "lp")),
    }
    assert not read_decision(tmp_path / "all" / f"decision-{index:06d}.json").has_constant_losses
    named = _export(runs / "exact", "--decision", index, "--out", tmp_path / "named", "--formulation", "published")
    assert named.exit_code == 3
    assert "published takes one loss of a job that gains nodes" in named.stderr
    assert not (tmp_path / "named").exists()


def test_the_decision_in_force_at_a_time_can_be_asked_for(runs, tmp_path):
    table = bfreplay.RunResult.load(runs / "exact").decisions
    index = _decidable(runs / "exact")[5]
    between = table["time"][index] + (table["time"][index + 1] - table["time"][index]) / 2
    since_start = (between - pd.Timestamp(WINDOW[1], tz="UTC")).total_seconds()
    for at in (between.isoformat(), str(between.timestamp()), f"+{since_start}"):
        result = _export(runs / "exact", "--at", at, "--out", tmp_path, "--force")
        assert result.exit_code == 0, result.output
        assert f"decision-{index:06d}.json" in result.stdout


def test_the_same_decision_gives_the_same_bytes(runs, tmp_path):
    index = _decidable(runs / "exact")[0]
    for name in ("a", "b"):
        _export(runs / "exact", "--decision", index, "--out", tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
        assert str(tmp_path) not in file.read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "either --decision"),
        (("--decision", 0, "--at", "2024-07-01T07:00"), "either --decision"),
        (("--decision", 10**6), "expected: 0 to "),
        (("--decision", -1), "expected: 0 to "),
        (("--at", "2024-06-01"), "no decision of the run is in force"),
        (("--at", "noon"), "--at"),
        (("--at", "+soon"), "+SECONDS after the start"),
        (("--decision", 3, "--formulation", "choises"), "did you mean 'choices'"),
        (
            (
                "--decision",
                3,
                "--formulation",
                "choices",
                "--formulation",
                "tests.milp.faulty_formulations:RaisesInBuild",
            ),
            "two formulations would have the same file",
        ),
        (("--decision", 3, "--t-fwd", 0), "forward-looking time"),
        (("--decision", 3, "--events", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_an_option_that_cannot_be_is_refused_and_nothing_is_written(runs, tmp_path, options, says):
    result = _export(runs / "exact", *options, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    result = _export(tmp_path, "--decision", 0, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "not a run folder" in result.stderr


def test_a_policy_without_look_ahead_asks_for_one(runs, tmp_path):
    result = _export(runs / "equal-share", "--decision", 3, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "--t-fwd" in result.stderr


def test_inputs_that_moved_or_changed_are_named_with_the_option_to_give(runs, tmp_path):
    run = tmp_path / "run"
    for what, path in (("events", "log.parquet"), ("jobs", "jobs.csv")):
        source = bfreplay.sample_events_path() if what == "events" else bfreplay.sample_jobs_path()
        shutil.copy(source, tmp_path / path)
    _run(
        "replay",
        tmp_path / "log.parquet",
        "--jobs",
        tmp_path / "jobs.csv",
        *WINDOW,
        "--no-efficiency",
        "--quiet",
        "--out",
        run,
    )
    index = _decidable(run)[0]
    (tmp_path / "jobs.csv").write_text((tmp_path / "jobs.csv").read_text().replace("0.5", "0.25") + "\n")
    changed = _export(run, "--decision", index, "--out", tmp_path / "out")
    assert changed.exit_code == 2
    assert "the jobs are not those of the run" in changed.stderr
    (tmp_path / "log.parquet").unlink()
    missing = _export(run, "--decision", index, "--out", tmp_path / "out")
    assert missing.exit_code == 2
    assert "no longer at their recorded path" in missing.stderr
    assert "--events FILE" in missing.stderr
    assert not (tmp_path / "out").exists()
    found = _export(run, "--decision", index, "--out", tmp_path / "out", "--events", "sample", "--jobs", "sample")
    assert found.exit_code == 0, found.output


def test_files_that_are_there_are_replaced_only_with_force_and_others_are_left_alone(runs, tmp_path):
    index = _decidable(runs / "exact")[0]
    stem = f"decision-{index:06d}"
    (tmp_path / "precious.txt").write_text("mine")
    (tmp_path / f"{stem}-choices.lp").write_text("mine as well")
    refused = _export(runs / "exact", "--decision", index, "--out", tmp_path)
    assert refused.exit_code == 2
    assert f"{stem}-choices.lp" in refused.stderr
    assert "--force" in refused.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"precious.txt", f"{stem}-choices.lp"}
    assert _export(runs / "exact", "--decision", index, "--out", tmp_path, "--force").exit_code == 0
    assert (tmp_path / f"{stem}-choices.lp").read_text().startswith("\\")
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_formulation_that_fails_leaves_nothing_behind(runs, tmp_path):
    first, second = _decidable(runs / "exact")[:2]
    result = _export(
        runs / "exact",
        "--decision",
        first,
        "--decision",
        second,
        "--out",
        tmp_path / "new" / "out",
        "--formulation",
        "published",
        "--formulation",
        "tests.milp.faulty_formulations:RaisesInBuild",
    )
    assert result.exit_code == 3
    assert "failed in build()" in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused(runs, tmp_path):
    (tmp_path / "out").write_text("mine")
    index = _decidable(runs / "exact")[0]
    for out in (tmp_path / "out", tmp_path / "out" / "below"):
        result = _export(runs / "exact", "--decision", index, "--out", out)
        assert result.exit_code == 2, result.output
    assert (tmp_path / "out").read_text() == "mine"


def test_help_has_examples():
    text = CliRunner().invoke(main, ["export-decision", "--help"]).output
    for word in ("Examples", "--decision", "--at", "MPS", "choices"):
        assert word in text
