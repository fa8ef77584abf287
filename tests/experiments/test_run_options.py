"""One run as data."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path

import pytest
import rich_click as click
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.commands.option_flags import MILP_OPTIONS, RARE
from bfreplay.commands.replay import replay
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import GROUPS, OPTIONS
from bfreplay.experiments.run_options import RunOptions
from bfreplay.options import option_name
from bfreplay.runs import RunResult

WINDOW = ("2024-07-01T06:00", "2024-07-01T07:00")
SAMPLE = {"events": "sample", "jobs": "sample", "window": list(WINDOW)}


OF_THE_COMMAND_ALONE = {"save_failures", "out", "force", "checkpoint_every", "resume", "as_json", "quiet"}


def _parameters() -> dict[str, click.Parameter]:
    assert isinstance(replay, click.Command)
    return {parameter.name: parameter for parameter in replay.params}


def test_every_option_is_on_the_command_line_and_nothing_else_is():
    assert set(_parameters()) == {*OPTIONS} | OF_THE_COMMAND_ALONE
    for name, parameter in _parameters().items():
        if name in OPTIONS and not OPTIONS[name].is_argument:
            assert parameter.opts == [f"--{option_name(name)}"]


def test_the_command_has_the_defaults_of_the_options():
    made = RunOptions(events="sample", jobs="sample")
    context = replay.make_context("replay", ["sample", "--jobs", "sample"])
    for name in set(OPTIONS) - {"events", "jobs"}:
        assert getattr(made, name) == context.params[name] == OPTIONS[name].default, name


def test_every_field_is_declared_in_a_group_with_a_text():
    assert list(OPTIONS) == [field.name for field in fields(RunOptions)]
    for name, declared in OPTIONS.items():
        assert declared.group in GROUPS, name
        assert declared.help.endswith("."), name
    assert {declared.group for declared in OPTIONS.values()} == set(GROUPS)


def test_help_shows_every_option_under_a_heading_and_the_rare_ones_apart():
    text = CliRunner().invoke(main, ["replay", "--help"]).output
    at = [text.index(f"\u2500 {heading} \u2500") for heading in (*GROUPS, RARE)]
    assert at == sorted(at)
    for name, parameter in _parameters().items():
        if parameter.param_type_name == "option":
            in_groups, among_rare = text[at[0] : at[-1]], text[at[-1] :]
            is_rare = name == "save_failures" or (name in OPTIONS and OPTIONS[name].is_rare)
            assert parameter.panel == RARE if is_rare else parameter.panel in GROUPS, name
            assert re.search(rf"\u2502[* ]+{parameter.opts[0]}\b", among_rare if is_rare else in_groups), name


def test_an_option_can_be_given_to_the_command_in_a_file_and_in_python():
    values = {
        "events": "e.csv",
        "jobs": "j.csv",
        "curves": "c.csv",
        "node_type": "v100",
        "window": WINDOW,
        "pool": "idle",
        "partition": "gpu",
        "only_nodes": "cn[1-4]",
        "without": "cn3",
        "measure": (1, 3),
        "policy": "equal-share",
        "round": 60.0,
        "objective": "max-min",
        "t_fwd": "auto",
        "max_parallel": 3,
        "learn_curves": "job",
        "measurement_noise": 0.1,
        "solver": "cbc",
        "formulation": "choices",
        "fallback": "keep",
        "time_limit": 3.0,
        "gap": 0.1,
        "threads": 2,
        "solver_seed": 4,
        "warm_start": False,
        "reformulate_sets": True,
        "memory_limit": 500,
        "semantics": "published",
        "seed": 5,
        "restart_cost": "0:20 4:29",
        "work_saved_every": 600.0,
        "saves": "on-notice",
        "record_nodes": True,
        "batch_jobs": "b.parquet",
        "clear": 5.0,
        "notice": True,
        "prices": "k80=0.2,v100=0.5",
        "fairness": True,
        "efficiency": False,
        "bound": False,
    }
    assert set(OPTIONS) - set(values) == {
        "cluster",
        "ideal",
        "unlimited_work",
        "allow_code",
        "reserve",
        "min_age",
        "placement",
        "settle",
        "until_done",
    }  # do not go with the others
    words = []
    for name, value in values.items():
        flag = f"--{option_name(name)}"
        if name == "events":
            words.append(value)
        elif isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif name == "measure":
            words += [flag, "1:3"]
        else:
            words += [flag, *map(str, value if isinstance(value, tuple) else [value])]
    made = RunOptions(**values)
    typed = {name: value for name, value in replay.make_context("replay", words).params.items() if name in OPTIONS}
    assert RunOptions(**typed) == made
    assert RunOptions.from_mapping({option_name(name): value for name, value in values.items()}) == made


def test_the_docstring_has_every_option_with_its_help():
    for name, declared in OPTIONS.items():
        assert f"\n    {name}\n        {declared.help.split()[0]}" in RunOptions.__doc__


WITHOUT_EFFECT = [
    ({"policy": "equal-share"}, "with --policy equal-share", {"solver", "formulation", "fallback", *MILP_OPTIONS}),
    ({}, "with --solver exact", {"fallback", *MILP_OPTIONS}),
    ({"policy": "gavel.fifo", "efficiency": False}, "with --policy gavel.fifo", {"t_fwd"}),
    ({}, "without --learn-curves", {"measurement_noise"}),
    ({}, "with --semantics continuous and without --measurement-noise", {"seed"}),
    ({"measurement_noise": 0.1}, "with --semantics continuous and without --measurement-noise", {"seed"}),
    ({"measure": (0, 1)}, "with --measure: U and the upper bound are not computed", {"efficiency", "bound"}),
    (
        {"events": None, "cluster": "v100=2"},
        "with --cluster: U and the upper bound are not computed",
        {"efficiency", "bound"},
    ),
]


@pytest.mark.parametrize(("given", "why", "names"), WITHOUT_EFFECT)
def test_options_without_effect_say_why(given, why, names):
    made = RunOptions(**{"events": "sample", "jobs": "sample", **given})
    reasons = made.without_effect()
    assert {name for name in names if reasons.get(name) == why} == names


@pytest.mark.parametrize(
    "given",
    [
        {"semantics": "published"},
        {"learn_curves": "job", "measurement_noise": 0.1},
        {"solver": "cbc"},
        {"policy": "gavel.fifo"},
    ],
)
def test_options_with_an_effect_are_not_among_them(given):
    reasons = RunOptions(events="sample", jobs="sample", **given).without_effect()
    expected = {
        "semantics": {"seed"},
        "learn_curves": {"seed", "measurement_noise"},
        "solver": {"fallback", *MILP_OPTIONS},
        "policy": {"t_fwd", "efficiency", "bound"},
    }
    assert not expected[next(iter(given))] & set(reasons)


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
        ({"time-limit": float("inf")}, "time-limit is not finite"),
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


def test_options_of_a_mapping_may_have_dashes_or_underscores():
    one = RunOptions.from_mapping({"events": "sample", "jobs": "sample", "t_fwd": 60, "max-parallel": 3})
    assert one == RunOptions.from_mapping({"events": "sample", "jobs": "sample", "t-fwd": 60, "max_parallel": 3})
    with pytest.raises(InputError, match="t-fwd is given twice"):
        RunOptions.from_mapping({"events": "sample", "jobs": "sample", "t-fwd": 60, "t_fwd": 90})
