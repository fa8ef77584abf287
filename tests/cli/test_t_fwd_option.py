"""``--t-fwd auto`` as a user types it, and what can be asked of such a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import bfreplay
from bfreplay.cli import main
from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.option_checks import amount

WINDOW = ("--window", "2024-07-01T00:00", "2024-07-01T12:00")


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def auto(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "auto"
    result = _run("replay", "sample", "--jobs", "sample", *WINDOW, "--t-fwd", "auto", "--quiet", "--out", folder)
    assert result.exit_code == 0, result.output
    assert "T_fwd auto" in result.stdout
    return folder


def _late_decision(run: Path) -> tuple[int, dict]:
    rows = bfreplay.RunResult.load(run).table("decisions").to_pylist()
    index = max(k for k, row in enumerate(rows) if row["solver"] == "exact" and row["t_fwd_s"] not in (None, 120.0))
    return index, rows[index]


def test_the_record_has_the_parameters_and_every_decision_its_time(auto):
    policy = bfreplay.RunResult.load(auto).record["config"]["policy"]
    assert policy["forward_time"]["name"] == "auto"
    assert "t_fwd_s" not in policy
    assert _late_decision(auto)[0] > 20


def test_explain_tells_the_decision_with_the_time_it_was_made_with(auto):
    index, row = _late_decision(auto)
    run = bfreplay.RunResult.load(auto)
    now = row["time"]
    active = [
        each["job"]
        for each in run.table("jobs").to_pylist()
        if each["admitted"] is not None and each["admitted"] <= now and (each["ended"] is None or each["ended"] > now)
    ]
    job = active[0]
    at = iso_utc(int(row["time"].timestamp() * 1e6))
    told = _run("explain", auto, "--quiet", "--job", job, "--at", at, "--json")
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["decision"] == index
    assert answer["t_fwd_s"] == row["t_fwd_s"]
    assert not any("does not maximise an objective" in note for note in answer["notes"])


def test_an_exported_decision_has_the_time_and_the_objective_of_the_run(auto, tmp_path):
    index, row = _late_decision(auto)
    done = _run("export-decision", auto, "--quiet", "--decision", index, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    (file,) = (tmp_path / "out").rglob("*.json")
    about = json.loads(file.read_text())["about"]
    assert about["t_fwd_s"] == row["t_fwd_s"]
    assert about["objective_of_counts"] == pytest.approx(row["objective"], rel=1e-12)


@pytest.mark.parametrize("command", [("replay", "sample"), ("compare", "formulations", "sample")])
@pytest.mark.parametrize("word", ["automatic", "Auto", "2 months"])
def test_a_word_that_is_no_time_is_refused_with_what_is_one(command, word):
    refused = _run(*command, "--jobs", "sample", "--quiet", "--t-fwd", word)
    assert refused.exit_code == 2
    assert f"'{word}' is neither a number of seconds nor 'auto'" in " ".join(refused.stderr.replace("│", "").split())


@pytest.mark.parametrize("number", ["0", "-5", "nan", "inf"])
def test_a_number_that_is_no_time_is_refused(number):
    refused = _run("replay", "sample", "--jobs", "sample", "--quiet", "--t-fwd", number)
    assert refused.exit_code != 0
    assert "forward-looking time" in refused.stderr
    assert "auto" in refused.stderr


def test_formulations_are_compared_on_the_decisions_of_an_auto_run():
    done = _run(
        "compare",
        "formulations",
        "sample",
        "--jobs",
        "sample",
        *WINDOW,
        "--t-fwd",
        "auto",
        "--sample",
        3,
        "--formulations",
        "choices_reduced",
        "--backends",
        "highs",
        "--quiet",
        "--json",
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["config"]["t_fwd_s"] == "auto"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--t-fwd", "2m"], "T_fwd 120 s"),
        (["--t-fwd", "0.05h"], "T_fwd 180 s"),
        (["--t-fwd", "90"], "T_fwd 90 s"),
        (["--policy", "gavel.fifo_perf", "--round", "2min"], "rounds of 2 min"),
        (["--min-age", "0.000001"], "T_fwd 120"),
        (["--t-fwd", "\u0663"], "is neither a number of seconds"),
        (["--t-fwd", "1_0"], "is neither a number of seconds"),
        (["--clear", "\u0663s"], "is no length of time"),
        (["--round", "\u0663"], "is no number"),
    ],
)
def test_lengths_of_time_have_units_and_ascii_digits(arguments, said):
    window = ["--window", "2024-07-01", "2024-07-01T02:00"]
    done = CliRunner().invoke(main, ["replay", "sample", "--jobs", "sample", "--quiet", *window, *arguments])
    assert said in " ".join(done.output.replace("│", "").split())


@pytest.mark.parametrize(("word", "wanted"), [("0s", 0.0), ("30s", 0.5), ("2", 2.0), ("1h", 60.0)])
def test_a_length_with_a_unit_is_turned_into_that_of_its_option(word, wanted):
    assert amount(word, 60.0) == wanted
