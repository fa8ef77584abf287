"""``bfreplay tune`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from bfreplay.commands.tune import tune
from bfreplay.experiments.study_options import TOLERANCE, TRAIN
from bfreplay.experiments.sweep import run_sweep
from bfreplay.experiments.tuning.grid import USUAL_MAX_PARALLEL, USUAL_T_FWD
from tests.experiments.sweep.small_sweeps import Inline
from tests.experiments.tuning.little_logs import write_jobs, write_log


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    write_log(tmp_path / "events.csv")
    write_jobs(tmp_path / "jobs.csv")
    return tmp_path


def _tune(*words: str) -> Result:
    given = ["--jobs", "jobs.csv", "--t-fwd", "20,auto", "--max-parallel", "1,3"]
    return CliRunner().invoke(main, ["tune", "events.csv", *given, *words])


def test_a_person_gets_the_recommendation_first_and_then_what_it_rests_on(files):
    result = _tune()
    assert result.exit_code == 0, result.output
    record = json.loads(_tune("--json").stdout)
    lines = result.stdout.splitlines()
    best = record["recommended"]
    assert lines[0].startswith(f"Use --t-fwd {best['t_fwd']:g} --max-parallel {best['max_parallel']}: ")
    assert lines[:2] == record["answer"]
    assert "Warning: " + record["warnings"][0] in lines
    at = lines.index(next(line for line in lines if line.startswith("Share of the best of the grid")))
    assert lines[at + 1].split() == ["T_fwd", "1", "job", "3", "jobs"]
    assert lines[at + 2].startswith("20 s")
    assert lines[at + 3].startswith("auto")
    assert sum(line.count("*") for line in lines[at + 1 : at + 4]) == 1
    tuned, validated = (100 * record["parts"][part]["share"][0][1] for part in ("tuning", "validation"))
    assert f"{tuned:.2f} / {validated:.2f}" in lines[at + 2]
    assert lines[-1].startswith("In the part validated on, the recommendation loses ")
    assert {path.name for path in files.iterdir()} == {"events.csv", "jobs.csv"}


@pytest.mark.slow
def test_a_folder_holds_record_picture_and_runs_and_is_gone_on_with(files):
    result = _tune("--out", "out", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert {path.name for path in (files / "out").iterdir()} == {
        "tuning.json",
        "tuning.png",
        "tuning.svg",
        "sweep",
        ".tuning",
    }
    assert result.stdout.splitlines()[-1].split() == ["Folder", str(files / "out")]
    runs = {path: path.stat().st_mtime_ns for path in (files / "out" / "sweep" / "runs").glob("*/run.json")}
    assert len(runs) == 8
    assert _tune("--out", "out").stdout == result.stdout
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
    record = json.loads((files / "out" / "tuning.json").read_text())
    assert json.loads(_tune("--out", "out", "--json").stdout) == record


def test_own_work_is_an_option(files):
    assert "time until all work was done" in _tune("--own-work").stdout
    assert json.loads(_tune("--own-work", "--json").stdout)["config"]["options"]["unlimited-work"] is False


def test_a_picture_is_drawn_and_replaced_only_where_that_is_asked_for(files):
    assert _tune("--picture", "mine.png").exit_code == 0
    drawn = (files / "mine.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    refused = _tune("--picture", "mine.png")
    assert refused.exit_code == 2
    assert "exists already" in refused.stderr
    (files / "mine.png").write_bytes(b"")
    assert _tune("--picture", "mine.png", "--force").exit_code == 0
    assert (files / "mine.png").read_bytes() == drawn


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--t-fwd", "60,soon"), "'soon' is neither a number of seconds nor"),
        (("--t-fwd", "60,,120"), "has an empty value"),
        (("--t-fwd", "60,60"), "t-fwd has a duplicate value"),
        (("--t-fwd", "0"), "the forward-looking time is not a positive number"),
        (("--max-parallel", "5,ten"), "'ten' is not a valid integer"),
        (("--max-parallel", "0"), "not in the range x>=1"),
        (("--train", "1"), "train leaves nothing"),
        (("--train", "0"), "not in the range 0<x<=1"),
        (("--tolerance", "1"), "not in the range 0<=x<1"),
        (("--policy", "bftrianer"), "unknown policy"),
        (("--window", "2024-05-01", "2024-06-01"), "the window reaches outside the log"),
        (("--picture", "mine.pdf"), ".png or .svg"),
        (("--processes", "1", "--scheduler", "tcp://x:1"), "remove one of the two"),
        (("--scheduler", "tcp://x:1"), "add --out"),
        (("--out", "."), "not a tuning folder"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(files, words, says, monkeypatch):
    monkeypatch.setattr(Inline, "run_tasks", None)
    result = _tune(*words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_the_help_tells_the_usual_values():
    options = {parameter.name: parameter for parameter in tune.params}
    usual = ",".join(each if isinstance(each, str) else f"{each:g}" for each in USUAL_T_FWD)
    assert f"[default: {usual}]" in options["t_fwd"].help
    assert f"[default: {','.join(map(str, USUAL_MAX_PARALLEL))}," in options["max_parallel"].help
    assert (options["train"].default, options["tolerance"].default) == (TRAIN, TOLERANCE)
    assert CliRunner().invoke(main, ["tune", "--help"]).exit_code == 0
