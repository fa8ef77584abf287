"""A run says which costs its changes had, and the published clock refuses those that it does not know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bfreplay import replay_log
from bfreplay.bounds import Kind, UpperBound
from bfreplay.errors import InputError
from bfreplay.experiments.regret import Regret
from bfreplay.experiments.regret import render as render_regrets
from bfreplay.experiments.run_comparison.pairing import differing_options
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.policies.learning import LearningPolicy
from bfreplay.policies.reclaims.policy import ReclaimAwarePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.report.page.document import write_report
from bfreplay.runs import RunResult
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet, Orders
from tests.replay.test_job_sources import Scripted
from tests.replay.tiny import job, log

PAUSES = {
    "start_cost_s": 60.0,
    "scale_up_cost_s": 60.0,
    "scale_down_cost_s": 60.0,
    "restart": "pause",
    "work_saved_every_s": 600.0,
}
PAUSES_WORDS = "start 60 s, changes pause it 60 s, work saved every 600 s"


def run_of(*costs: dict[str, Any], **options: Any) -> RunResult:
    """Replay a job for each of ``costs``."""
    jobs = JobSet([replace(job(f"job{k}"), **of_job) for k, of_job in enumerate(costs)])
    return replay_log(log(2, [], 10, idle_first=[0, 1]), jobs, efficiency=False, bound=False, **options)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([PAUSES], f"1 job: {PAUSES_WORDS}"),
        ([PAUSES, PAUSES, {}], f"2 jobs: {PAUSES_WORDS}"),
        ([{"scale_up_cost_s": "0:3 2:5"}, PAUSES, PAUSES], f"2 kinds of costs, most: 2 jobs: {PAUSES_WORDS}"),
        (
            [{"work_saved_every_s": 600.0, "saves": "on-notice"}, {"restart": "pause"}, {"start_cost_s": "0:3 2:5"}],
            "3 kinds of costs, most: 1 job: work saved every 600 s and on notice",
        ),
    ],
)
def test_a_run_says_on_top_which_costs_it_was_made_with(costs, words, tmp_path):
    run = run_of(*costs, out=tmp_path / "run")
    assert f"Costs       {words}\n" in render(run)
    saved = RunResult.load(tmp_path / "run")
    assert saved.record.to_json()["inputs"]["jobs"]["costs"] == words
    assert render(saved).partition("\nCosts ")[2] == render(run).partition("\nCosts ")[2] != ""
    assert words in write_report(saved, tmp_path / "page.html").read_text()


def test_of_published_costs_nothing_is_said(tmp_path):
    run = run_of({"scale_up_cost_s": 30.0}, {"counts": (1, 2, 4)}, out=tmp_path / "run")
    assert "Costs" not in render(run)
    assert "costs" not in run.record.to_json()["inputs"]["jobs"]
    assert "What a change of a job's nodes costs" not in write_report(run, tmp_path / "page.html").read_text()


def test_jobs_that_a_source_made_count_too():
    trials = tuple(replace(job(f"trial{k}", work=50.0), **PAUSES) for k in range(2))
    run = replay_log(log(2, [], 100, idle_first=[0, 1]), Scripted([Orders(trials)]), efficiency=False, bound=False)
    assert run.record.inputs.jobs.costs == f"2 jobs: {PAUSES_WORDS}"


def test_runs_that_are_compared_differ_in_their_costs():
    (row,) = differing_options([run_of({}), run_of(PAUSES)])
    assert (row.option, row.values) == ("jobs.costs", [None, f"1 job: {PAUSES_WORDS}"])
    assert differing_options([run_of(PAUSES), run_of(PAUSES)]) == []


@pytest.mark.parametrize(
    ("costs", "column"),
    [
        ({"start_cost_s": 5.0}, "start_cost_s"),
        ({"start_cost_s": "0:5 2:6"}, "start_cost_s"),
        ({"scale_up_cost_s": {0: 5, 2: 6}}, "scale_up_cost_s"),
        ({"scale_down_cost_s": {0: 5, 2: 6}}, "scale_down_cost_s"),
        ({"restart": "pause"}, "restart"),
        ({"work_saved_every_s": 5.0}, "work_saved_every_s"),
        ({"work_saved_every_s": 5.0, "saves": "on-resize"}, "work_saved_every_s"),
    ],
)
def test_the_published_clock_refuses_costs_that_it_does_not_know(costs, column):
    published = {"settings": ReplaySettings(semantics="published")}
    with pytest.raises(InputError, match="job 'job1' has costs of changes that the published clock") as refusal:
        run_of({"scale_up_cost_s": 5.0}, costs, **published)
    assert refusal.value.column == column
    assert refusal.value.fix == f"remove --semantics published, or {column}"
    run_of({"scale_up_cost_s": 5.0}, {"scale_down_cost_s": {0: 5, 2: 5}}, **published)  # one cost, written as two


def test_options_of_the_run_replace_the_costs_of_all_jobs(tmp_path):
    options: dict[str, Any] = {"restart_cost": "0:60", "work_saved_every": "10min"}
    replaced = run_of({}, {"scale_up_cost_s": 5.0}, out=tmp_path / "replaced", **options)
    as_given = run_of(PAUSES, PAUSES)
    for name in ("decisions", "jobs", "allocations", "losses"):
        assert replaced.table(name).equals(as_given.table(name)), name
    assert f"2 jobs: {PAUSES_WORDS}" in render(replaced)
    config = RunResult.load(tmp_path / "replaced").record.config
    assert (config.restart_cost, config.work_saved_every, config.saves) == (60.0, 600.0, None)
    by_count = run_of({}, restart_cost="0:20 4:29", work_saved_every=0)
    assert by_count.record.config.restart_cost == "0:20 4:29"
    assert "start 0:20 4:29 s, changes pause it 0:20 4:29 s" in render(by_count)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart_cost": "1:20"}, "do not begin at count 0"),
        ({"restart_cost": -1}, "negative"),
        ({"work_saved_every": -1}, "work_saved_every"),
        ({"saves": "on-resize"}, "saves"),
        ({"restart_cost": 60, "semantics": "published"}, "published clock"),
    ],
)
def test_costs_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        run_of({}, **options)


def test_a_source_names_the_costs_of_its_jobs_itself():
    trials = (replace(job("trial", work=50.0), **PAUSES),)
    with pytest.raises(InputError, match="other costs"):
        replay_log(log(2, [], 100, idle_first=[0, 1]), Scripted([Orders(trials)]), restart_cost=60)


@pytest.mark.parametrize(
    ("policy", "knows_costs"),
    [
        (BFTrainerPolicy(), True),
        (BFTrainerPolicy(objective="0.5*throughput + 0.5*speed-up"), True),
        (ReclaimAwarePolicy(), True),
        (LearningPolicy(BFTrainerPolicy()), True),
        (BFTrainerPolicy(price_s=60.0), False),
        (BFTrainerPolicy("auto"), False),
        (BFTrainerPolicy(objective="max-min"), False),
        (LearningPolicy(BFTrainerPolicy(price_s=60.0)), False),
        (EqualSharePolicy(), False),
    ],
)
def test_a_run_warns_of_a_policy_that_does_not_know_its_costs(policy, knows_costs):
    run = run_of(PAUSES, policy=policy)
    assert (f"Costs       1 job: {PAUSES_WORDS}\n" in render(run)) == knows_costs
    assert (f"{PAUSES_WORDS}; the policy does not know them\n" in render(run)) != knows_costs
    sentences = [text for text in run.warnings if "does not know what changes of these jobs cost" in text]
    assert len(sentences) == (not knows_costs)
    assert not run_of({}, policy=policy).summary.ignores_costs


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (1e9, "the upper bound with free rescaling and free choice among the jobs (which knows no starts"),
        (float("inf"), "the upper bound (which knows rescale costs, not starts"),
    ],
)
def test_a_bound_says_which_costs_it_knows(work, words, tmp_path):
    events = log(2, [(50, 1, False), (60, 1, True)], 100, idle_first=[0, 1])

    def run_with(costs):
        jobs = JobSet([replace(job("a", work=work, up_s=3.0, down_s=2.0), **costs)])
        return replay_log(events, jobs, efficiency=False)

    run, published = run_with({"start_cost_s": 5.0}), run_with({})
    words += ", pauses or lost work)"
    assert words in " ".join(render(run).split())
    assert words in " ".join(write_report(run, tmp_path / "page.html").read_text().split())
    assert "which knows" not in render(published)
    assert run.summary.bound.samples == published.summary.bound.samples


def test_the_table_of_regrets_says_which_costs_its_bound_does_not_know():
    run = replay_log(log(2, [], 100, idle_first=[0, 1]), JobSet([job("a")]), efficiency=False)
    bound = UpperBound(run.summary.bound.samples, Kind.WORK, None, None)
    regret = Regret("run", "bftrainer", 10, run.summary.ledger.samples, bound)
    unknown = ", no starts, pauses or lost work known)"
    assert unknown not in render_regrets([regret])
    assert unknown in render_regrets([replace(regret, costs="1 job: start 5 s")])
