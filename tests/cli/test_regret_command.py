"""``bfreplay regret`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from tests.cli.test_explain_command import CAMPAIGN
from tests.cli.test_replay_command import EVENTS, JOBS

FEW = ("--evaluations", "12")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Folder with the runs ``far`` and ``near``, without end, and ``ends``, whose jobs end."""
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "jobs.csv").write_text(JOBS.replace("1e9", "5000"))
    for name, options in (
        ("far", ("--unlimited-work",)),
        ("near", ("--unlimited-work", "--t-fwd", "5")),
        ("ends", ("--no-efficiency",)),
    ):
        words = ["replay", str(tmp_path / "events.csv"), "--jobs", str(tmp_path / "jobs.csv"), "--quiet"]
        done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / name), *options])
        assert done.exit_code == 0, done.output
    return tmp_path


def _regret(folder: Path, *words: str) -> Result:
    names = [str(folder / word) if (folder / word).exists() else word for word in words]
    return CliRunner().invoke(main, ["regret", *names])


def test_a_person_gets_a_table_best_first_and_the_bounds(runs):
    result = _regret(runs, "near", "far", *FEW)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert " ".join(lines[0].split()) == "run samples of the bound left to gain jobs at once, policy"
    shares = [float(line.split()[2].rstrip("%")) for line in lines[1:3]]
    assert shares == sorted(shares, reverse=True)
    assert lines[1].startswith("far ")
    assert lines[1].endswith("10, bftrainer, decided by exact, T_fwd 120 s")
    assert sum(line.startswith("Bound: ") for line in lines) == 1
    assert result.stderr == ""


def test_json_has_the_bounds_and_quick_is_what_the_runs_tell(runs):
    quick = json.loads(_regret(runs, "far", "ends", "--effort", "quick", "--json").stdout)
    assert [each["run"] for each in quick] == ["far", "ends"]
    for each in quick:
        told = json.loads((runs / each["run"] / "run.json").read_text())["summary"]["bound"]
        assert {**each["bound"], "share": each["share"]} == told
    assert quick[1]["bound"]["kind"] == "work"
    (thorough,) = json.loads(_regret(runs, "far", "--json", *FEW).stdout)
    assert thorough["samples"] <= thorough["bound"]["samples"] <= quick[0]["bound"]["samples"]


def test_inputs_that_were_moved_can_be_named(runs):
    for name in ("events.csv", "jobs.csv"):
        (runs / name).rename(runs / f"moved-{name}")
    lost = _regret(runs, "far", "--effort", "quick")
    assert lost.exit_code == 2
    assert "--events FILE" in lost.stderr
    found = _regret(runs, "far", "--effort", "quick", "--events", "moved-events.csv", "--jobs", "moved-jobs.csv")
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines()[1].startswith("far ")


def test_a_run_of_a_campaign_is_refused(runs):
    (runs / "campaign.toml").write_text(CAMPAIGN)
    words = ["replay", str(runs / "events.csv"), "--jobs", str(runs / "campaign.toml")]
    done = CliRunner().invoke(main, [*words, "--quiet", "--no-efficiency", "--out", str(runs / "campaign")])
    assert done.exit_code == 0, done.output
    assert "Bound" not in done.stdout
    refused = _regret(runs, "far", "campaign")
    assert refused.exit_code == 2
    assert "there is no upper bound for a job source" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere",), "nowhere"),
        (("events.csv",), "events.csv"),
        ((), "RUN"),
        (("far", "--effort", "hard"), "thorough"),
        (("far", "--evaluations", "2"), "x>=3"),
    ],
)
def test_what_cannot_be_done_is_refused(runs, words, told):
    refused = _regret(runs, *words)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert "Traceback" not in refused.output


def test_help_has_examples_and_all_defaults():
    said = CliRunner().invoke(main, ["regret", "--help"])
    assert said.exit_code == 0
    text = " ".join(said.stdout.replace("│", " ").split())
    for words in ("bfreplay regret run", "default: thorough", "default: 350", "default: the recorded path"):
        assert words in text


@pytest.mark.parametrize("policy", ["foresight", "look-ahead"])
def test_policies_that_look_ahead_refuse_auto_in_words_of_their_own(runs, policy):
    words = ["replay", str(runs / "events.csv"), "--jobs", str(runs / "jobs.csv"), "--policy", policy]
    refused = CliRunner().invoke(main, [*words, "--t-fwd", "auto"])
    assert refused.exit_code == 2
    text = " ".join(refused.stderr.replace("│", " ").split())
    assert f"the policy '{policy}' looks ahead itself and takes a number for --t-fwd: how long the last pool" in text


def test_parameters_in_brackets_are_told_and_recorded(runs):
    words = ["replay", str(runs / "events.csv"), "--jobs", str(runs / "jobs.csv"), "--out", str(runs / "seen")]
    done = CliRunner().invoke(main, [*words, "--policy", "look-ahead(events=2, memory=30)", "--quiet"])
    assert done.exit_code == 0, done.output
    assert "look-ahead, events 2, futures 20, memory 30" in done.stdout
    policy = json.loads((runs / "seen" / "run.json").read_text())["config"]["policy"]
    assert {name: policy[name] for name in ("name", "events", "futures", "memory")} == {
        "name": "look-ahead",
        "events": 2,
        "futures": 20,
        "memory": 30,
    }
