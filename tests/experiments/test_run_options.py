"""One run as data."""

from __future__ import annotations

from dataclasses import fields, replace
from inspect import signature
from pathlib import Path

import pytest
import rich_click as click

from bfreplay.commands.replay import replay
from bfreplay.errors import InputError
from bfreplay.experiments.option_checks import CHECKS
from bfreplay.experiments.run_options import OPTION_NAMES, RunOptions
from bfreplay.replay import RunResult

WINDOW = ("2024-07-01T06:00", "2024-07-01T07:00")
SAMPLE = {"events": "sample", "jobs": "sample", "window": list(WINDOW)}


def test_its_options_and_defaults_are_those_of_the_command():
    assert isinstance(replay, click.Command)
    made = RunOptions(events="sample", jobs="sample")
    context = replay.make_context("replay", ["sample", "--jobs", "sample"])
    command = {option.opts[0].removeprefix("--"): context.params[option.name] for option in replay.params}
    of_the_command_alone = {"save-failures", "out", "force", "json", "quiet", "allow-code"}
    assert set(command) - of_the_command_alone == set(OPTION_NAMES)
    for name in set(OPTION_NAMES) - {"events", "jobs"}:
        assert getattr(made, name.replace("-", "_")) == command[name], name


def test_every_field_is_checked():
    assert list(CHECKS) == [field.name for field in fields(RunOptions)]


def test_what_is_written_is_read_back():
    made = RunOptions.from_mapping({**SAMPLE, "t-fwd": 300, "memory-limit": 500, "learn-curves": "model"})
    assert made.t_fwd == 300
    assert made.window == WINDOW
    assert made.to_json()["t-fwd"] == 300.0
    assert "objective" not in made.to_json()
    assert RunOptions.from_mapping(made.to_json()) == made
    assert len({made, RunOptions.from_mapping(made.to_json())}) == 1
    assert replace(made, t_fwd="auto").t_fwd == "auto"


def test_paths_may_be_paths():
    assert RunOptions(events=Path("a.csv"), jobs=Path("b.csv")) == RunOptions(events="a.csv", jobs="b.csv")


def test_relative_paths_count_from_the_folder_but_words_and_classes_stay():
    given = {"events": "sample", "jobs": "mine:Source", "curves": "c.csv"}
    made = RunOptions.from_mapping(given, folder="/data", allow_code=True)
    assert (made.events, made.jobs, made.curves) == ("sample", "mine:Source", "/data/c.csv")
    assert RunOptions.from_mapping({"events": "/x.csv", "jobs": "j.csv"}, folder="/data").events == "/x.csv"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"t-fwd": "fast"}, "neither a number nor 'auto'"),
        ({"t-fwd": True}, "neither a number nor 'auto'"),
        ({"t-fwd": float("nan")}, "not a positive number"),
        ({"tfwd": 60}, "did you mean 't-fwd'?"),
        ({"window": ["2024-07-01"]}, "no pair of times"),
        ({"learn-curves": "jobs"}, "did you mean 'job'?"),
        ({"time-limit": 0}, "time-limit is out of range"),
        ({"time-limit": float("inf")}, "the time limit of a decision is not finite"),
        ({"gap": 1}, "gap is out of range"),
        ({"measurement-noise": 1.5}, "measurement-noise is out of range"),
        ({"threads": 1.5}, "threads is no whole number"),
        ({"record-nodes": "yes"}, "neither true nor false"),
        ({"policy": 5}, "policy is no text"),
    ],
)
def test_values_that_no_run_could_use_are_refused_with_their_place(changed, says):
    with pytest.raises(InputError) as caught:
        RunOptions.from_mapping({**SAMPLE, **changed}, file="sweep.toml", row="[run]")
    assert says in str(caught.value)
    assert "sweep.toml" in str(caught.value)
    assert "[run]" in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"events": "nowhere.csv"}, "no such file"),
        ({"policy": "bftrianer"}, "unknown policy"),
        ({"solver": "cplex"}, "unknown solver"),
        ({"objective": "thruput"}, "unknown objective"),
        ({"window": ["yesterday", "today"]}, "--window"),
    ],
)
def test_what_is_wrong_with_names_and_files_is_said_before_the_replay(changed, says):
    with pytest.raises(InputError, match=says):
        RunOptions.from_mapping({**SAMPLE, **changed}).prepare()


def test_a_run_can_be_made_and_read_again(tmp_path):
    made = RunOptions.from_mapping({**SAMPLE, "max-parallel": 3, "t-fwd": 60, "efficiency": False})
    result = made.run(tmp_path / "run", session={"note": "mine"})
    saved = RunResult.load(tmp_path / "run")
    assert saved.record == result.record
    assert saved.record["config"]["max_parallel"] == 3
    assert saved.record["config"]["policy"]["t_fwd_s"] == 60
    assert saved.session.more["note"] == "mine"
    assert saved.session["load_s"] > 0
    assert saved.summary["efficiency"] is None
    assert all(Path(file).exists() for file in saved.session["files"].values())


def test_options_that_are_not_asked_for_leave_their_parts_out():
    summary = RunOptions.from_mapping({**SAMPLE, "bound": False, "efficiency": False}).run().summary
    assert summary["bound"] is None
    assert summary["efficiency"] is None
    assert RunOptions.from_mapping(SAMPLE).run().summary["bound"]["share"] > 0


def test_every_option_can_be_given_by_name_alone():
    assert all(p.kind is p.KEYWORD_ONLY for p in signature(RunOptions).parameters.values())
