"""``bfreplay explain`` as a user types it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import bfreplay
from bfreplay.cli import main
from bfreplay.datasets.times import iso_utc

WINDOW = ("--window", "2024-07-01T00:00", "2024-07-01T06:00")
JOB = "image-classifier-05"
CAMPAIGN = """
[campaign]
name = "hpo"
kind = "hpo"
trials = 12
arrival = "at-once"

[campaign.budget]
node_hours = 100

[trial]
epochs = 4
samples_per_epoch = 300000
min_nodes = 1
max_nodes = 8
scale_up_cost_s = 20
scale_down_cost_s = 10
curve = "net"

[pruner]
kind = "asha"

[curves.net]
nodes = [0, 1, 8]
values = [0.0, 500.0, 3200.0]
"""


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def _explain(run: Path, *options: object) -> Result:
    return _run("explain", run, "--quiet", *options)


def _told(run: Path, *options: object) -> dict:
    result = _explain(run, *options, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "campaign.toml").write_text(CAMPAIGN)
    for name, options in {
        "exact": ("--jobs", "sample"),
        "campaign": ("--jobs", folder / "campaign.toml"),
        "equal-share": ("--jobs", "sample", "--policy", "equal-share"),
        "learned": ("--jobs", "sample", "--learn-curves", "model", "--objective", "speed-up"),
    }.items():
        result = _run("replay", "sample", *options, *WINDOW, "--no-efficiency", "--quiet", "--out", folder / name)
        assert result.exit_code == 0, result.output
    return folder


@pytest.mark.slow
def test_a_run_is_told_by_its_models(runs):
    result = _explain(runs / "exact")
    assert result.exit_code == 0, result.output
    for words in (
        "40 jobs of 5 models",
        "image-classifier-large",
        "not submitted",
        "completion",
        "Finished     1 after",
    ):
        assert words in result.stdout
    assert "Best score" not in result.stdout
    told = _told(runs / "exact")
    run = bfreplay.RunResult.load(runs / "exact")
    assert sum(model["samples"] for model in told["models"]) == pytest.approx(run.summary["ledger"]["samples"])
    assert [each["job"] for each in told["jobs"]] == run.jobs["job"].tolist()
    assert all(each["slowdown"] >= 1 for each in told["jobs"] if each["status"] == "finished")
    assert told["campaign"]["source"] is None


@pytest.mark.slow
def test_a_campaign_is_told_with_its_scores_its_endings_and_its_budget(runs):
    text = _explain(runs / "campaign").stdout
    for words in (
        "12 jobs of 1 model",
        "pruned",
        "Best score",
        "(higher is better) of hpo-00",
        "Ended early",
        "of 100 used",
    ):
        assert words in text
    told = _told(runs / "campaign")
    scores = bfreplay.RunResult.load(runs / "campaign").summary["scores"]
    assert told["campaign"]["best"]["score"][-1] == scores["best_score"]
    assert told["campaign"]["best"]["job"] == scores["best_job"]
    assert all(each["efficiency"] is not None for each in told["jobs"] if each["held_s"])


def test_a_job_is_told_from_its_submission_to_its_end(runs):
    result = _explain(runs / "exact", "--job", JOB)
    assert result.exit_code == 0, result.output
    for words in (JOB, "started after", "dedicated nodes would process", "preempted", "window end"):
        assert words in result.stdout
    told = _told(runs / "exact", "--job", JOB)
    row = bfreplay.RunResult.load(runs / "exact").jobs.set_index("job").loc[JOB]
    reasons = [step["reason"] for step in told["steps"]]
    assert reasons.count("preempted") == row["n_preemptions"] == told["n_preemptions"]
    assert (reasons[0], reasons[-1]) == ("submitted", "window end")
    few = _explain(runs / "exact", "--job", JOB, "--most", 4).stdout
    assert f"... {len(reasons) - 4} changes omitted ..." in few


def test_a_trial_is_told_with_its_reports(runs):
    told = _told(runs / "campaign")["jobs"]
    pruned = next(each for each in told if each["status"] == "pruned" and each["n_reports"])
    text = _explain(runs / "campaign", "--job", pruned["job"]).stdout
    assert "best score" in text
    assert text.splitlines()[-1].split()[1] == "pruned"


@pytest.mark.parametrize("name", ["exact", "campaign", "learned"])
def test_every_change_of_a_job_by_a_decision_can_be_explained(runs, name):
    run = runs / name
    job = JOB if name != "campaign" else "hpo-0000"
    steps = [
        s
        for s in _told(run, "--job", job)["steps"]
        if s["reason"] in ("started", "restarted", "scaled up", "scaled down")
    ]
    assert steps
    for step in steps[:5]:
        told = _told(run, "--job", job, "--at", step["time"])
        assert (told["decision"], told["before"], told["after"]) == (step["decision"], step["before"], step["after"])
        assert told["is_optimal"]
        assert told["runner_up"]["difference"] >= 0
        assert told["rescale_cost_samples"] == step["cost_samples"]
        assert told["is_believed"] == (name == "learned")
        assert told["objective_spec"] == ("speed-up" if name == "learned" else "own")


def test_a_time_may_be_iso_epoch_seconds_or_seconds_since_the_start(runs):
    run = runs / "exact"
    start_us = bfreplay.RunResult.load(run).record["config"]["window_start_us"]
    at_us = start_us + 7_200_500_000
    answers = [_explain(run, "--job", JOB, "--at", at).stdout for at in (iso_utc(at_us), at_us / 1e6, "+7200.5")]
    assert answers[0] == answers[1] == answers[2]
    assert "Whole decisions (all jobs together)" in answers[0]
    late = _explain(run, "--job", JOB, "--at", "+72x")
    assert late.exit_code == 2
    assert "+SECONDS after the start of the window" in late.stderr


def test_a_policy_without_an_objective_asks_for_a_look_ahead(runs):
    job = "image-classifier-00"
    refused = _explain(runs / "equal-share", "--job", job, "--at", "+1000")
    assert refused.exit_code == 2
    assert "--t-fwd" in refused.stderr
    told = _told(runs / "equal-share", "--job", job, "--at", "+1000", "--t-fwd", 60)
    assert told["t_fwd_s"] == 60
    assert told["notes"]
    assert _explain(runs / "equal-share").exit_code == _explain(runs / "equal-share", "--job", job).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--job", JOB)])
def test_a_picture_is_drawn_and_replaced_only_with_force(runs, tmp_path, options):
    file = tmp_path / "run.svg"
    assert _explain(runs / "exact", *options, "--picture", file).exit_code == 0
    first = file.read_bytes()
    assert b"<svg" in first
    refused = _explain(runs / "exact", *options, "--picture", file)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert _explain(runs / "exact", *options, "--picture", file, "--force").exit_code == 0
    assert file.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["run.svg"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--job", "image-classifier-5"), "did you mean 'image-classifier-"),
        (("--at", "+10"), "--at needs --job"),
        (("--job", JOB, "--at", "2024-06-01"), "no decision of the run is in force"),
        (("--job", JOB, "--at", "7054"), "+7054 for seconds after the start of the window"),
        (("--job", JOB, "--at", "noon"), "--at"),
        (("--job", JOB, "--at", "+10", "--picture", "x.png"), "remove --at"),
        (("--job", JOB, "--t-fwd", 5), "--t-fwd is for one decision"),
        (("--job", JOB, "--at", "+10", "--t-fwd", 0), "forward-looking time"),
        (("--picture", "x.pdf"), ".png or .svg"),
        (("--job", JOB, "--events", "nowhere.csv"), "nowhere.csv"),
        (("--job", "molecule-graph-39", "--at", "+10"), "never admitted (not submitted)"),
    ],
)
def test_what_cannot_be_is_refused(runs, tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    result = _explain(runs / "exact", *options)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    result = _explain(tmp_path)
    assert result.exit_code == 2
    assert "not a run folder" in result.stderr


def test_a_run_whose_inputs_are_gone_is_told_as_far_as_its_tables_go(tmp_path):
    for what, path in (("events", "log.parquet"), ("jobs", "jobs.csv")):
        source = bfreplay.sample_events_path() if what == "events" else bfreplay.sample_jobs_path()
        shutil.copy(source, tmp_path / path)
    run = tmp_path / "run"
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
    whole = _told(run, "--job", JOB)
    (tmp_path / "log.parquet").unlink()
    (tmp_path / "jobs.csv").unlink()
    result = _run("explain", run, "--job", JOB)
    assert result.exit_code == 0, result.output
    assert "Note: " in result.stderr
    assert "--events" in result.stderr
    part = _told(run, "--job", JOB)
    assert (part["efficiency"], part["slowdown"]) == (None, None)
    assert {step["cost_samples"] for step in part["steps"][2:-1]} == {None}
    assert part["held_node_hours"] == whole["held_node_hours"]
    assert _told(run)["jobs"][0]["efficiency"] is None
    refused = _explain(run, "--job", JOB, "--at", "+7200")
    assert refused.exit_code == 2
    assert "--events FILE" in refused.stderr
    assert _told(run, "--job", JOB, "--events", "sample", "--jobs", "sample") == whole
    wrong = _explain(run, "--job", JOB, "--events", "sample")
    assert wrong.exit_code == 2
    assert "--jobs FILE" in wrong.stderr


def test_the_page_shows_what_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _run("replay", "sample", "--jobs", "sample", "--out", "run", "--no-efficiency", "--quiet").exit_code == 0
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    shown = re.findall(r"^```console\n\$ bfreplay (explain [^\n]*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(shown) == 3
    for command, said in shown:  # pages leave lines out
        printed = iter(_run(*shlex.split(command)).stdout.splitlines())
        assert [line for line in said.splitlines() if line not in printed] == []


def test_help_has_examples():
    text = CliRunner().invoke(main, ["explain", "--help"]).output
    for word in ("Examples", "--job", "--at", "--picture", "trial-0012", "+SECONDS"):
        assert word in text
