"""``bfreplay replay --cluster`` as a user types it, and its progress."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.progress import Progress

from bfreplay.cli import main
from bfreplay.commands.progress import JobsProgress, progress_of
from bfreplay.runs import Output
from tests.experiments.small_cluster import CLUSTER, options, write_files


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_files(tmp_path)


def _replay(*words: str) -> Result:
    given = ["replay", "--jobs", "four.trace", "--curves", "throughputs.json", *words]
    return CliRunner().invoke(main, given)


ON_CLUSTER = ("--cluster", CLUSTER, "--policy", "gavel.max_min_fairness_perf", "--round", "60")


def test_a_trace_is_replayed_on_a_cluster(files):
    result = _replay(
        *ON_CLUSTER, "--measure", "0:3", "--prices", "fast=1,slow=0.5", "--fairness", "--json", "--out", "run"
    )
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["config"]["measured"] == [0, 3]
    assert record["config"]["policy"]["round_s"] == 60
    told = record["summary"]["scheduling"]
    assert told["n_completed"] == 3
    assert told["cost"] == pytest.approx(told["node_hours_by_type"]["fast"] + told["node_hours_by_type"]["slow"] / 2)
    assert told["finish_time_fairness"]["policy"] == "gavel.isolated"
    assert "Note" not in result.stderr
    again = CliRunner().invoke(main, ["explain", "run"])
    assert again.exit_code == 0
    assert "4 jobs of 2 models" in again.stdout


def test_options_without_effect_are_noted(files):
    said = _replay(
        *ON_CLUSTER, "--t-fwd", "60", "--solver", "cbc", "--threads", "2", "--no-bound", "--efficiency"
    ).stderr
    assert said.splitlines() == [
        "Note: --t-fwd has no effect with --policy gavel.max_min_fairness_perf.",
        "Note: --solver has no effect with --policy gavel.max_min_fairness_perf.",
        "Note: --threads has no effect with --policy gavel.max_min_fairness_perf.",
        "Note: --efficiency has no effect with --cluster: U and the upper bound are not computed.",
        "Note: --no-bound has no effect with --cluster: U and the upper bound are not computed.",
    ]
    assert _replay(*ON_CLUSTER, "--t-fwd", "60", "--quiet").stderr == ""


def test_prices_of_types_that_there_are_not_are_noted(files):
    said = _replay(*ON_CLUSTER, "--prices", "fast=1,slwo=0.5").stderr
    assert said == "Note: --prices has types without nodes: slwo. Node types: fast, slow.\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "neither a log nor a cluster"),
        (("sample", "--cluster", "fast=1"), "a log and a cluster"),
        (("--cluster", "fast"), "has no number of nodes"),
        (("--cluster", "fast=1", "--window", "0", "1"), "--window cannot be combined with --cluster"),
        (("--cluster", "fast=1", "--round", "60"), "does not decide in rounds"),
        (("--cluster", "fast=1", "--measure", "3"), "no range of jobs"),
        (("--cluster", "fast=1", "--measure", "3:9"), "fewer jobs exist than are to be measured"),
        (("--cluster", "fast=1", "--prices", "fast"), "fast has no price"),
        (("--cluster", "fast=2,slow=1", "--policy", "equal-share"), "nodes of one type"),
    ],
)
def test_what_cannot_be_is_refused(files, words, says):
    result = _replay(*words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_progress_is_told_in_jobs_where_the_run_ends_with_them(files, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    run = options(files, measure=(1, 3)).prepare()
    with progress_of(run, hidden=False) as progress:
        assert progress is not None
        run.replay(Output(progress=progress))
    assert "2 of 2 jobs" in terminal.getvalue()
    assert "day 0.0" in terminal.getvalue()


def test_a_bar_has_no_length_before_the_first_job_is_done():
    bar = Progress(console=Console(file=io.StringIO()))
    shown = JobsProgress(bar, 0, (10, 14))
    shown(86_400_000_000, 7)
    (task,) = bar.tasks
    assert (task.total, task.completed, task.fields["jobs"], task.fields["day"]) == (None, 0, "", 1.0)
    for number in (9, 10, 13, 14):
        shown.job_left(number)
    shown.show()
    assert (task.total, task.completed, task.fields["jobs"], task.fields["events"]) == (4, 2, "2 of 4 jobs", 7)
    unknown = JobsProgress(bar, 0, None)
    unknown.job_left(5)
    unknown.show()
    assert (bar.tasks[1].total, bar.tasks[1].fields["jobs"]) == (None, "1 jobs")


def test_progress_on_a_log_is_the_share_of_the_window(files, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    run = options(files, cluster=None, events="sample", node_type="fast").prepare()
    with progress_of(run, hidden=False) as progress:
        assert progress is None  # no terminal
    run.policy.close()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gavel(n=4, jobs_per_hour=1e-300)", "submit_us is beyond the year 9999"),
        ("elasticflow(n=4, gap_s=1e18)", "submit_us is beyond the year 9999"),
        ("shockwave(n=3, gap_s=1e15)", "submit_us is beyond the year 9999"),
        ("gavel(n=1, duration_s=1e9)", "the replay has too many rounds"),
        ("gavel(n=1, duration_s=1e12)", "the job 'job0000' cannot end on a cluster"),
        ("shockwave(n=3, max_hours=1e15)", "epochs is above 1000000"),
    ],
)
def test_generated_workloads_beyond_the_limits_are_refused(spec, said):
    arguments = ["--cluster", "v100=8", "--jobs", spec, "--curves", "sample", "--policy", "gavel.fifo", "--quiet"]
    done = CliRunner().invoke(main, ["replay", *arguments])
    assert done.exit_code == 2
    assert said in done.output
