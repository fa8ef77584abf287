"""Sweeps over workloads and policies on a cluster of one's own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.sweep import run_sweep, sweep
from bfreplay.experiments.sweep.plan import plan_runs
from bfreplay.experiments.sweep.run_sweep import plan_of
from bfreplay.experiments.sweep.spec import spec_of_options
from bfreplay.experiments.sweep.store import Store
from bfreplay.experiments.sweep.sweep_text import render
from bfreplay.experiments.sweep.worker import work_on
from tests.experiments.small_cluster import CLUSTER, THROUGHPUTS, options, write_files
from tests.experiments.sweep.small_sweeps import Inline

SPEC = """
[run]
cluster = "CLUSTER"
jobs = "{name}.trace"
curves = "throughputs.json"
round = 60
fairness = true
prices = { fast = 1.0, slow = 0.5 }

[vary]
name = ["four"]
policy = ["gavel.max_min_fairness_perf", "gavel.isolated"]
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "sweep.toml").write_text(SPEC.replace("CLUSTER", CLUSTER))
    return write_files(tmp_path)


def _ids(*runs):
    return list(plan_runs(spec_of_options(runs)).ids)


@pytest.mark.slow
def test_processes_make_the_table_with_a_schedulers_figures(files):
    result = sweep(files / "sweep.toml", files / "out", processes=1)
    rows = result.results.to_pylist()
    assert [(row["name"], row["policy"], row["status"]) for row in rows] == [
        ("four", "gavel.max_min_fairness_perf", "finished"),
        ("four", "gavel.isolated", "finished"),
    ]
    for row, run in zip(rows, result.runs.values(), strict=True):
        told = run.summary["scheduling"]
        assert row["n_measured_jobs"] == row["n_measured_completed"] == 4
        for column in ("average_jct_s", "makespan_s", "utilisation", "cost"):
            assert row[column] == told[column] > 0
        assert row["average_rho"] == told["finish_time_fairness"]["average_rho"]
    assert rows[1]["average_rho"] == rows[1]["largest_rho"] == 1
    assert rows[1]["share_of_rho_above_1"] == 0
    lines = render(result).splitlines()
    title = lines[2]
    for column in ("average JCT", "utilisation", "cost", "average rho"):
        assert column in title
    assert "makespan" in next(line for line in lines if line.startswith("The same in all runs"))
    assert "samples" not in title
    assert "deadlines" not in title
    again = sweep(files / "sweep.toml", files / "out", processes=1)
    assert again.n_reused == 2


def test_generated_workloads_are_drawn_for_each_point(files, monkeypatch):
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    run = {"cluster": "v100=2,k80=2", "curves": "sample", "policy": "gavel.fifo_perf", "round": 3600}
    spec = {
        "run": {**run, "jobs": "gavel(n={many}, seed={draw}, jobs_per_hour=1)"},
        "vary": {"draw": [0, 1], "many": [2, 3]},
    }
    result = sweep(spec, files / "out")
    rows = result.results.to_pylist()
    assert [(row["draw"], row["many"], row["n_measured_completed"]) for row in rows] == [
        (0, 2, 2),
        (0, 3, 3),
        (1, 2, 2),
        (1, 3, 3),
    ]
    assert len({row["average_jct_s"] for row in rows}) == 4
    (paths,) = {json.dumps(each["paths"]["curves"]) for each in result.record["runs"].values()}
    assert json.loads(paths) == "sample"
    assert {each["job_source"] for each in result.record["runs"].values()} == {None}
    other = {**spec, "run": {**spec["run"], "jobs": "gavel(jobs_per_hour=1.0, seed={draw}, n={many})"}}
    assert sweep(other, files / "out").n_reused == 4


def test_what_runs_are_of_is_in_the_record_without_a_log(files, monkeypatch):
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    record = sweep([options(files)], files / "out").record
    (run,) = record["runs"].values()
    assert set(run["paths"]) == {"jobs", "curves"}
    assert run["options"]["cluster"] == CLUSTER
    assert run["options"]["max-parallel"] == 4
    assert len(run["events"]) == 1
    assert run["highspy"]
    assert run["solver"] is None


def test_the_throughputs_count_and_the_way_options_are_written_does_not(files):
    run = options(files)
    before = _ids(run)
    same = [
        replace(run, cluster=" fast=2 , slow=4"),
        replace(run, max_parallel=4),
        replace(run, t_fwd=60),
        replace(run, solver="cbc", threads=2),
        replace(run, efficiency=False),
        replace(run, bound=False),
        replace(run, policy="gavel.max_min_fairness_perf(seed=0)"),
    ]
    assert set(_ids(run, *same)) == set(before)
    for changed in (
        {"cluster": "fast=4,slow=2"},
        {"round": 120},
        {"measure": (0, 2)},
        {"fairness": True},
        {"prices": {"fast": 1.0}},
        {"max_parallel": 2},
        {"policy": "gavel.fifo_perf"},
    ):
        assert _ids(replace(run, **changed)) != before, changed
    faster = {**THROUGHPUTS, "fast": {**THROUGHPUTS["fast"], "('A3C', 1)": {"null": 4.5}}}
    (files / "throughputs.json").write_text(json.dumps(faster))
    assert _ids(run) != before


def test_throughputs_that_change_during_a_sweep_are_noticed(files):
    plan = plan_runs(spec_of_options([options(files)]))
    store = Store.create(files / "out")
    (files / "throughputs.json").write_text(json.dumps(THROUGHPUTS, indent=1))
    failure = work_on(plan.task(plan.ids[0], store.folder)).failure
    assert failure is not None
    assert failure.problem == "the file of the jobs has changed since the sweep began"


def test_points_keep_their_order_whatever_the_order_in_which_jobs_are_read(files):
    (files / "more.trace").write_text((files / "four.trace").read_text() * 1 + (files / "four.trace").read_text()[-1:])
    (files / "two.trace").write_text("".join((files / "four.trace").read_text().splitlines(keepends=True)[:2]))
    run = options(files)
    points = [
        replace(run, jobs=files / f"{name}.trace", policy=f"gavel.{policy}")
        for policy in ("fifo_perf", "isolated")
        for name in ("four", "two")
    ]
    plan = plan_runs(spec_of_options(points))
    assert [str(plan.runs[each].options.jobs).rpartition("/")[2] for each in plan.ids] == [
        "four.trace",
        "two.trace",
    ] * 2
    assert [plan.runs[each].content["options"]["max-parallel"] for each in plan.ids] == [4, 2, 4, 2]
    assert list(plan.runs) == list(plan.ids)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"policy": "equal-share", "round": None}, "nodes of one type"),
        ({"measure": (0, 9)}, "fewer jobs exist than are to be measured"),
        ({"policy": "equal-share"}, "does not decide in rounds"),
    ],
)
def test_what_can_be_known_at_once_is_refused_before_anything_runs(files, changed, says):
    with pytest.raises(InputError, match=says):
        _ids(options(files), options(files, **changed))


def test_a_spec_with_a_log_and_a_cluster_is_refused_with_its_place(files):
    text = (files / "sweep.toml").read_text().replace("[vary]\n", '[vary]\nevents = ["sample"]\n')
    (files / "both.toml").write_text(text)
    with pytest.raises(InputError, match="a log and a cluster") as caught:
        plan_of(files / "both.toml")
    assert "both.toml" in str(caught.value)
