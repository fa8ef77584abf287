"""The Python API: options from the one declaration, inputs in any form, reprs, and data frames."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import fields

import numpy as np
import pytest

import bfreplay
from bfreplay import (
    AllocationProblem,
    BFTrainerPolicy,
    EqualSharePolicy,
    InputError,
    ReplaySettings,
    compare,
    describe,
    explain,
    regret,
    replay_log,
    solve,
    solver_of,
)
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.policies import PolicyState
from tests.replay.tiny import job, log

QUICK = {"efficiency": False, "bound": False}
INPUTS = ("events", "jobs", "policy")


@pytest.fixture(scope="module")
def window():
    start_us = bfreplay.load_events("sample").window_start_us
    return str(start_us // 1_000_000), str(start_us // 1_000_000 + 7200)


@pytest.fixture(scope="module")
def run(window):
    return replay_log("sample", "sample", window=window, max_parallel=3, **QUICK)


def small():
    return log(4, [(10, 1, True), (50, 0, False)], 100, idle_first=[0, 2, 3]), [job("a", work=200.0), job("b")]


def test_every_option_of_the_command_line_is_a_documented_keyword_with_its_default():
    parameters = inspect.signature(replay_log).parameters
    assert {name: parameters[name].default for name in OPTIONS if name not in INPUTS} == {
        name: each.default for name, each in OPTIONS.items() if name not in INPUTS
    }
    documented = re.findall(r"^    (\w+)\n        ", inspect.getdoc(replay_log).replace("\n", "\n    "), re.MULTILINE)
    assert [name for name in parameters if name not in documented] == []


def test_a_path_a_name_and_an_object_give_the_same_run(run, window):
    events = bfreplay.load_events("sample")
    jobs = bfreplay.load_jobs("sample")
    others = (
        replay_log(events, jobs, BFTrainerPolicy(120.0), window=window, max_parallel=3, **QUICK),
        replay_log(bfreplay.sample_events_path(), list(jobs), "bftrainer", window=window, max_parallel=3, **QUICK),
        replay_log(
            events.between(*(int(each) * 1_000_000 for each in window)),
            bfreplay.sample_jobs_path(),
            None,
            ReplaySettings(3),
            **QUICK,
        ),
    )
    for other in others:
        assert other.summary.ledger.to_json() == run.summary.ledger.to_json()
        assert other.record.config.policy == run.record.config.policy


def test_policies_and_clusters_are_named_as_on_the_command_line():
    run = replay_log(jobs="gavel(n=4)", curves="sample", policy="gavel.max_min_fairness", cluster="v100=2,p100=2,k80=2")
    assert run.record.config.policy_description.name == "gavel.max_min_fairness"
    assert run.summary.jobs["finished"] == 4
    events, jobs = small()
    noisy = replay_log(events, jobs, EqualSharePolicy(), learn_curves="job", measurement_noise=0.1, **QUICK)
    assert noisy.record.config.policy["learning"]["noise"] == 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t_fwd_s": 120}, "did you mean 't_fwd'"),
        ({"with_bound": True}, "did you mean 'bound'"),
        ({"max_parallel": 0}, "max_parallel is below 1"),
        ({"policy": "no-such"}, "no-such"),
        (
            {"policy": BFTrainerPolicy(60.0), "t_fwd": 30},
            "t_fwd is given twice: as an option and by an object as policy",
        ),
        (
            {"policy": EqualSharePolicy(), "objective": "own"},
            "objective is given twice: as an option and by an object as policy",
        ),
        (
            {"settings": ReplaySettings(2), "max_parallel": 3},
            "max_parallel is given twice: as an option and by a ReplaySettings",
        ),
        (
            {"policy": EqualSharePolicy(), "save_failures": "failed"},
            "save_failures is given twice: as an option and by an object",
        ),
        ({"curves": "curves.csv"}, "curves is given twice: as an option and by an object as jobs"),
        ({"jobs": None}, "the option 'jobs' is missing: the training jobs to replay"),
        ({"events": 5}, "events is of type int"),
        ({"events": None}, "neither a log nor a cluster"),
        ({"cluster": "v100=2"}, "both a log and a cluster are given"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_with_what_to_write_instead(options, message):
    events, jobs = small()
    with pytest.raises(InputError, match=re.escape(message)):
        replay_log(**{"events": events, "jobs": jobs, **options})


@pytest.mark.parametrize("name", [field.name for field in fields(ReplaySettings) if field.name != "seed_map"])
def test_no_option_is_ignored_beside_the_settings_that_have_it(name):
    option = {"measured": "measure"}.get(name, name.removesuffix("_s"))
    with pytest.raises(InputError, match=f"{option} is given twice: as an option and by a ReplaySettings"):
        replay_log(*small(), settings=ReplaySettings(), **{option: 1})


def test_an_option_without_effect_is_warned_of():
    with pytest.warns(UserWarning, match="threads has no effect with --solver exact") as warned:
        replay_log(*small(), threads=2, **QUICK)
    assert warned[0].filename == __file__, "it names the line of the user"


def test_hours_stand_beside_the_exact_integers_and_not_on_disk(run):
    jobs = run.jobs
    for exact in (name for name in jobs if name.endswith("_node_us")):
        assert jobs[exact.replace("_node_us", "_node_hours")].tolist() == (jobs[exact] / 3.6e9).tolist()
    assert "useful_node_hours" in jobs
    assert "useful_node_hours" not in run.table("jobs").column_names


def test_sets_of_things_are_data_frames(run):
    events, jobs = small()
    frame = events.to_frame()
    assert frame["node"].tolist()[:4] == list(events.nodes)
    assert frame["state"].tolist() == ["idle", "busy", "idle", "idle", "idle", "busy"]
    assert frame["time"].astype("int64").is_monotonic_increasing
    assert bfreplay.JobSet(jobs).to_frame()[["name", "max_nodes"]].to_dict("list") == {
        "name": ["a", "b"],
        "max_nodes": [each.max_nodes for each in jobs],
    }
    idle = describe(events)
    assert idle.to_frame()["idle_node_us"].sum() == idle.idle_node_us == idle.to_dict()["idle_node_us"]
    comparison = compare(run, run, resamples=100)
    assert comparison.to_frame()["run"].tolist() == ["B"]
    assert f"B against A</th><td>{comparison.answers[0]}" in comparison._repr_html_()
    unlimited = replay_log(*small(), unlimited_work=True, efficiency=False)
    assert explain(unlimited, job="a").to_frame()["after"].max() <= 4


def test_the_explanation_of_a_run_a_job_and_a_decision_are_their_texts(run):
    whole = explain(run)
    assert "node-hours" in repr(whole)
    assert len(whole.to_frame()) == len(run.jobs)
    assert set(whole.to_dict()) == {"models", "campaign", "jobs"}
    name = run.jobs.sort_values("useful_node_us")["job"].iloc[-1]
    story = explain(run, job=name)
    assert repr(story).startswith(name)
    assert story.to_dict()["job"] == name
    assert repr(explain(run, name, "+3600")).startswith(name)
    with pytest.raises(InputError, match="at=TIME needs a job"):
        explain(run, at="+3600")
    with pytest.raises(InputError, match="pose one decision"):
        explain(run, name, t_fwd=60.0)


def test_a_job_of_a_run_in_memory_is_told_from_its_tables_with_a_warning():
    run = replay_log(*small(), **QUICK)
    with pytest.warns(UserWarning, match="remain unknown"):
        assert repr(explain(run, job="a")).startswith("a: ")


def test_regret_is_a_text_and_a_table(run):
    found = regret([run], effort="quick")
    assert "in memory" in repr(found)
    assert found.to_frame()[["run", "samples"]].to_dict("records") == [
        {"run": "in memory", "samples": run.summary.ledger.samples}
    ]


def _problem():
    of_two = np.array([0, 1]), np.array([1, 1]), np.array([2, 2]), np.array([[0.0, 3.0, 4.0], [0.0, 2.0, 5.0]])
    return AllocationProblem(*of_two, np.zeros(2), np.zeros(2), 3)


def test_reprs_say_what_a_thing_is():
    events, jobs = small()
    problem = _problem()
    shown = {
        repr(problem): "<AllocationProblem: 2 jobs hold 1 of 3 idle nodes>",
        repr(solve(problem)): "<Solution: counts [1 2], objective 8, proven by exact>",
        repr(solver_of("exact")): "<ExactSolver: exact>",
        repr(BFTrainerPolicy(120.0)): "<BFTrainerPolicy: t_fwd_s 120.0, solver exact, objective own>",
        repr(EqualSharePolicy()): "<EqualSharePolicy>",
        repr(bfreplay.Decision(np.array([1, 2]), t_fwd_s=60.0)): "<Decision: counts [1 2], t_fwd 60 s>",
        repr(jobs[0]): "<ElasticJob a: 1 to 4 nodes, 200 samples, scale up 0 s, down 0 s>",
        repr(jobs[0].throughput): "<TabulatedCurve: 5 points up to 4 nodes, at most 40>",
        repr(bfreplay.JobSet(jobs)): "<JobSet: 2 jobs: a, b>",
        repr(
            bfreplay.milp.formulations.formulation_of("choices").build(problem)
        ): "<LinearModel: 6 columns (6 integer), 3 rows, 10 entries, 0 sets>",
    }
    assert list(shown) == list(shown.values())
    assert repr(events).startswith("<NodeEvents: 4 nodes, ")

    seen = []

    class Watch(EqualSharePolicy):
        def decide(self, state: PolicyState) -> bfreplay.Decision:
            seen.append(repr(state))
            return super().decide(state)

    run = replay_log(events, jobs, Watch(), **QUICK)
    assert seen[0] == "<PolicyState: 2 jobs hold 0 of 3 idle nodes at 0 us>"
    assert repr(run).startswith("<RunResult: ")
    assert re.search(r" decisions, U \d.\d{3}, in memory>$", repr(replay_log(events, jobs)))
    done = replay_log(events, jobs[:1])
    assert (done.u, ", U " in repr(done)) == (1.0, False)
    assert "idle node-hours" in repr(describe(events))
    with closing(solver_of("highs")) as solver:
        assert repr(solver) == "<MilpSolver: choices_reduced on highs, fallback exact>"


def test_answers_have_short_reprs_dicts_and_frames(run):
    assert repr(run.summary).startswith(f"<Summary: {run.summary.n_decisions:,} decisions in 2.0 h; jobs: ")
    assert run.summary.to_dict() == run.summary.to_json() == run.to_dict()["summary"]


def test_a_campaign_shows_its_trials_and_their_reports(tmp_path):
    from tests.campaigns.small_campaigns import source

    campaign = source()
    run = replay_log(log(4, [], 100, idle_first=[0, 1, 2, 3]), campaign, **QUICK)
    frame = campaign.to_frame()
    assert frame["name"].tolist() == [trial.name for trial in campaign.trials]
    assert repr(campaign).startswith("<CampaignSource ")
    assert repr(campaign.trials[0]).startswith(f"<Trial {campaign.trials[0].name}: ")
    assert len(run.reports) == len(run.frame("reports"))


def test_inputs_that_are_none_and_misspelt_names_say_what_is_meant():
    events, jobs = small()
    for call, message in (
        (lambda: replay_log("sample", {"a": 1}), r"these are no jobs[\s\S]*load_campaign makes a campaign of a dict"),
        (lambda: replay_log("sample", 5), "these are no jobs"),
        (lambda: replay_log("sample", "sample", t_fwd="soon"), r"t_fwd is neither[\s\S]*option: +t_fwd"),
        (lambda: replay_log("sample", "sample", max_paralel=3), "replay_log has no option 'max_paralel'"),
        (lambda: replay_log(events, jobs, BFTrainerPolicy), r"give an object: BFTrainerPolicy\(\)"),
        (lambda: bfreplay.finish(events, jobs, dedicatd=3), "did you mean 'dedicated'"),
        (lambda: bfreplay.finish(events, jobs, start=3), r"expected: +events, jobs, [\s\S]*did you mean 'starts'"),
        (lambda: bfreplay.tune(events, jobs, tolerence=0.1), "did you mean 'tolerance'"),
        (
            lambda: bfreplay.tune(events, jobs, policy=EqualSharePolicy()),
            "give a name, or module:Class, as text",
        ),
        (lambda: bfreplay.RunOptions(events=events, jobs=jobs, polcy=1), "RunOptions has no option 'polcy'"),
        (lambda: bfreplay.sweep({}, "out", events="sample"), "sweep has no option 'events'"),
        (lambda: compare("a", "b", bins=3), "did you mean 'bin'"),
        (lambda: compare(EqualSharePolicy(), "b"), "run is of type EqualSharePolicy"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    with pytest.raises(AttributeError, match="no attribute 'replay_logs'; did you mean 'replay_log'"):
        bfreplay.replay_logs  # noqa: B018


def test_a_subpackage_is_an_attribute_of_the_package():
    code = "import bfreplay, sys; assert 'bfreplay.milp' not in sys.modules; bfreplay.milp.Expression"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("function", [bfreplay.finish, bfreplay.tune, bfreplay.open_session])
def test_functions_of_replays_document_their_options_too(function):
    parameters = inspect.signature(function).parameters
    assert parameters["objective"].default is None
    assert "cluster" not in parameters or function is bfreplay.open_session
    assert "\n    objective\n        Objective of decisions: " in function.__doc__
