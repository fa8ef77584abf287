"""Warnings of an import are in every result that is made from the log."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.experiments.sweep import run_sweep
from tests.experiments.sweep.small_sweeps import Inline

# from 600 s to 3600 s job 2 lacks 3 nodes, which is 2.5 node-hours; 1 node is idle for 600 s, then 4 for an hour
SWF = """; MaxNodes: 4
; MaxProcs: 4
; UnixStartTime: 1700000000
1 0 0 3600 3 -1 -1 3 -1 -1 1 1 1 -1 1 1 -1 -1
2 600 0 3000 4 -1 -1 4 -1 -1 1 1 1 -1 1 1 -1 -1
3 7200 0 600 4 -1 -1 4 -1 -1 1 1 1 -1 1 1 -1 -1
"""
JOBS = """name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve
a,1,2,1,1,1e9,0:0 1:10 2:18
b,1,4,1,1,1e9,0:0 1:10 4:30
"""
SWEEP = """[run]
events = "events.parquet"
jobs = "jobs.csv"
[vary]
t-fwd = [60, 120]
"""
VERDICT = "The idle nodes of this log cannot be believed: "
WARNING = (
    "1 x jobs needed more nodes than were free; they got the nodes that were free, and the others as they became free "
    "(2.50 node-hours, 60 % of the idle ones)"
)


def run(*arguments):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log whose idle nodes cannot be believed, and two runs on it."""
    folder = tmp_path_factory.mktemp("warned")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(run_sweep, "ProcessExecutor", Inline)
        for name, text in (("log.swf", SWF), ("jobs.csv", JOBS), ("sweep.toml", SWEEP)):
            (folder / name).write_text(text)
        run("ingest", "swf", "log.swf", "--full-window", "--empty-machine", "idle", "-o", "events.parquet")
        for t_fwd in ("60", "120"):
            run("replay", "events.parquet", "--jobs", "jobs.csv", "--t-fwd", t_fwd, "--out", f"run-{t_fwd}", "--quiet")
        yield folder


@pytest.mark.parametrize(
    "command",
    [
        "describe events.parquet",
        "replay events.parquet --jobs jobs.csv --quiet",
        "explain run-60 --quiet",
        "explain run-60 --job a --quiet",
        "explain run-60 --job a --at +4000 --quiet",
        "regret run-60 run-120 --effort quick --quiet",
        "compare runs run-60 run-120 --quiet --no-pictures",
        "sweep sweep.toml --out sweep --processes 1 --quiet",
        "compare formulations events.parquet --jobs jobs.csv --backends highs --formulations choices --quiet",
    ],
)
def test_a_text_begins_with_the_verdict_and_the_warnings(folder, command):
    text = run(*command.split())
    lines = " ".join(text.split())
    assert text.startswith(f"Warning: {VERDICT}")
    assert f"Warning: {WARNING} Warning: Which node a job had is simulated (lowest-id): " in lines
    assert lines.count("cannot be believed") == 1


@pytest.mark.slow
def test_a_tuning_warns_below_its_recommendation(folder):
    command = "tune events.parquet --jobs jobs.csv --t-fwd 60,120 --max-parallel 2 --processes 1 --quiet --out tuned"
    text, record = run(*command.split()), json.loads(run(*command.split(), "--json"))
    assert f"\n\nWarning: {VERDICT}" in text
    assert record["warnings"][1] == WARNING


def test_a_finish_warns_below_its_answer(folder):
    (folder / "short.csv").write_text(JOBS.replace("1e9", "100"))
    text = run(*["finish", "events.parquet", "--jobs", "short.csv", "--starts", "2", "--processes", "1", "--quiet"])
    assert f"\n\nWarning: {VERDICT}" in text
    assert f"Warning: {WARNING}\n" in text


@pytest.mark.parametrize(
    ("command", "warnings_in"),
    [
        ("compare runs run-60 run-120 --quiet --no-pictures", lambda told: told["warnings"]),
        (
            "compare formulations events.parquet --jobs jobs.csv --backends highs --formulations choices --quiet",
            lambda told: told["warnings"],
        ),
        ("regret run-60 --effort quick --quiet", lambda told: told[0]["warnings"]),
        ("explain run-60 --quiet", lambda told: told["warnings"]),
        ("explain run-60 --job a --quiet", lambda told: told["warnings"]),
        ("explain run-60 --job a --at +4000 --quiet", lambda told: told["warnings"]),
        ("sweep sweep.toml --out sweep --processes 1 --quiet", lambda told: told[1]["warnings"]),
    ],
)
def test_programs_find_the_sentences_under_warnings(folder, command, warnings_in):
    verdict, warning, simulated = warnings_in(json.loads(run(*command.split(), "--json")))
    assert verdict.startswith(VERDICT)
    assert warning == WARNING
    assert simulated.startswith("Which node a job had is simulated")


@pytest.mark.parametrize(
    ("command", "log_warnings_in"),
    [
        ("describe events.parquet --json", lambda told: told["log_warnings"]),
        (
            "describe events.parquet --json --window 2023-11-14T23:00 2023-11-14T23:30",
            lambda told: told["log_warnings"],
        ),
        ("replay events.parquet --jobs jobs.csv --quiet --json", lambda told: told["summary"]["log_warnings"]),
    ],
)
def test_programs_find_verdict_and_share_under_log_warnings(folder, command, log_warnings_in):
    found = log_warnings_in(json.loads(run(*command.split())))
    assert (found["verdict"], found["node_assignment"]) == ("cannot be believed", "lowest-id")
    assert found["idle_node_hours"] == pytest.approx(4 + 1 / 6)
    assert [(each["count"], each["node_hours"]) for each in found["warnings"]] == [(1, 2.5)]
    assert found["warnings"][0]["share"] == pytest.approx(0.6)


def test_a_sweep_has_verdict_and_sentences_in_columns(folder):
    rows = json.loads(run(*["sweep", "sweep.toml", "--out", "sweep", "--processes", "1", "--quiet", "--json"]))
    assert [row["log_verdict"] for row in rows] == ["cannot be believed"] * 2
    runs = json.loads((folder / "sweep" / "sweep.json").read_text())["runs"].values()
    assert [each["log_warnings"]["verdict"] for each in runs] == ["cannot be believed"] * 2


@pytest.mark.parametrize("runs", ["run-60", "run-60 run-120"])
def test_a_page_says_it_in_its_answer_and_first_of_what_to_bear_in_mind(folder, runs):
    run("report", *runs.split(), "-o", "page.html", "--force")
    page = (folder / "page.html").read_text()
    answer = page[page.index('id="answer-title"') :]
    assert answer.index("<strong data-verbatim>The idle nodes of this log cannot be believed") < answer.index(
        'class="cards"'
    )
    assert "as they became free (2.50 node-hours" in answer[answer.index("<aside") :][:1_500]
