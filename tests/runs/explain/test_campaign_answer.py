"""A campaign of four trials, worked by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import bfreplay
from bfreplay import replay_log
from bfreplay.campaigns.campaign import Budget, Retries
from bfreplay.campaigns.parts import TrialState
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs.explain.answers import render_run
from bfreplay.runs.explain.campaign import EARLY, best_so_far, campaign_answer
from bfreplay.runs.explain.job_story import job_story
from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers
from bfreplay.runs.explain.saved_tables import nodes_over_time_by_model
from bfreplay.workload import Ending, JobSet
from tests.campaigns.small_campaigns import campaign, source
from tests.replay.tiny import SECOND, job, log
from tests.run_records import changed, setting
from tests.runs.explain.little_source import LittleHalving, Scripted, pausing_job


@pytest.fixture(scope="module")
def run():
    # four nodes for the first in the queue, 40 samples/s: t0 is at the rung at 2.5 s and pauses; t1 crashes at 3.75 s;
    # t2 and t3, two nodes each, are at the rung at 8.75 s, where t0 is pruned; they are done at 23.75 s
    return replay_log(log(4, [], 60, range(4)), LittleHalving(), EqualSharePolicy(), efficiency=False, bound=False)


@pytest.fixture(scope="module")
def answer(run):
    return campaign_answer(run, job_answers(run))


def test_trials_are_counted_by_their_endings_with_their_node_hours(run, answer):
    assert answer.by_status == {"finished": 2, "pruned": 1, "failed": 1}
    held = job_answers(run).set_index("job")["held_node_hours"]
    assert answer.node_hours["failed"] == pytest.approx(held["t1"]) == pytest.approx(5 / 3600)
    assert answer.early_node_hours == pytest.approx(held["t1"] + held["t0"]) == pytest.approx(15 / 3600)
    assert sum(answer.node_hours.values()) == pytest.approx(held.sum())


def test_the_kth_finished_trial_has_its_time(answer):
    assert answer.finished_s.tolist() == [23.75, 23.75]


def test_the_best_score_only_ever_gets_better(run, answer):
    reports = run.frame("reports").dropna(subset=["score"])
    # t0 scores 0.5 and 1 at the rung; t2 and t3 4.5 and 1.5, then 5 and 2 at the rung, and 8 and 5 at the end
    assert answer.best_score.tolist() == [0.5, 1.0, 4.5, 5.0, 8.0]
    assert answer.best_s.tolist() == [1.25, 2.5, 6.25, 8.75, 23.75]
    assert answer.best_job == "t2"
    assert answer.best_score[-1] == reports["score"].max() == run.summary["scores"]["best_score"]


def test_lower_is_better_where_the_source_says_so(run):
    other = changed(run, setting("inputs.jobs.source.higher_is_better", False))
    answer = campaign_answer(other, job_answers(other))
    assert answer.best_score.tolist() == [0.5]
    assert answer.best_job == "t0"


@pytest.mark.parametrize(("is_higher", "job", "scores"), [(True, "d", [0.3, 0.4]), (False, "a", [0.1])])
def test_of_scores_at_one_instant_only_the_best_counts(run, monkeypatch, is_higher, job, scores):
    time = pd.to_datetime([1, 1, 1, 2], unit="s", utc=True)
    reports = pd.DataFrame({"time": time, "job": [*"abcd"], "score": [0.1, 0.3, 0.2, 0.4]})
    monkeypatch.setattr("bfreplay.runs.explain.campaign.reports_frame", lambda run: reports)
    time_us, best, best_job = best_so_far(run, is_higher)
    assert (time_us.tolist(), best.tolist(), best_job) == ([1_000_000, 2_000_000][: len(scores)], scores, job)


def test_of_equal_scores_the_first_is_the_best():
    # one node: a scores 1 at its report at 10 s and at its end at 20 s, b the same at 30 and 40 s
    jobs = [pausing_job(name, work=200.0) for name in "ab"]
    run = replay_log(
        log(1, [], 60, [0]), Scripted(jobs), EqualSharePolicy(), ReplaySettings(1), efficiency=False, bound=False
    )
    answer = campaign_answer(run, job_answers(run))
    assert run.frame("reports")["score"].tolist() == [1.0] * 4
    assert (answer.best_job, answer.best_s.tolist(), answer.best_score.tolist()) == ("a", [10.0], [1.0])
    told = run.summary["scores"]
    assert (told["best_job"], told["best_time_us"], told["best_finished_job"]) == ("a", 10 * SECOND, "a")


def test_the_budget_is_told_with_its_use(run, answer):
    held = float(job_answers(run)["held_node_hours"].sum())
    assert answer.budget == {"node_hours": {"limit": 1.0, "used": pytest.approx(held)}}


def test_a_plain_set_is_a_campaign_without_scores():
    jobs = JobSet([job("a", work=100.0), job("b", work=1e9)])
    run = replay_log(log(1, [], 30, [0]), jobs, EqualSharePolicy(), ReplaySettings(1), efficiency=False, bound=False)
    answer = campaign_answer(run, job_answers(run))
    assert (answer.higher_is_better, answer.best_job, answer.budget, answer.source) == (None, None, {}, None)
    assert answer.finished_s.tolist() == [10.0]
    assert answer.by_status == {"finished": 1, "running": 1}


def test_all_of_it_is_json_and_text(run, answer):
    told = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert told["n_jobs"] == 4
    assert told["best"]["score"] == [0.5, 1.0, 4.5, 5.0, 8.0]
    text = render_run(run, model_answers(job_answers(run)), answer)
    for words in ("4 jobs of 1 model", "pruned", "8 (higher is better) of t2", "1 failed (", "node hours:"):
        assert words in text
    assert "waiting" not in text


def test_every_ending_is_an_early_one():
    assert set(EARLY) == set(Ending)


@pytest.mark.parametrize(("source_of_none", "n_decisions"), [(Scripted([job("a")], start_s=99), 1), (Scripted(), 0)])
def test_a_campaign_that_begins_after_the_window_has_no_job(source_of_none, n_decisions):
    run = replay_log(log(2, [], 60, [0, 1]), source_of_none, EqualSharePolicy(), efficiency=False, bound=False)
    assert len(run.decisions) == n_decisions
    answers = job_answers(run)
    models, answer = model_answers(answers), campaign_answer(run, answers)
    assert (len(answers), len(models)) == (0, 0)
    one = replay_log(log(1, [], 30, [0]), JobSet([job("a")]), EqualSharePolicy(), efficiency=False, bound=False)
    assert models.columns.tolist() == model_answers(job_answers(one)).columns.tolist()
    assert (answer.by_status, answer.ended_s.tolist(), answer.early_node_hours) == ({}, [], 0.0)
    assert nodes_over_time_by_model(run) == {}
    with pytest.raises(InputError, match="did you mean 'job'"):
        bfreplay.explain(run, jb="a")
    with pytest.raises(InputError, match="the run has no such job") as caught:
        job_story(run, "a", jobs=source_of_none)
    assert "a run with jobs" in str(caught.value)
    text = render_run(run, models, answer)
    assert text.startswith("no job from 1970-01-01T00:00:00Z to ")
    assert "Finished     no job" in text
    assert "queue:" not in text
    json.dumps(answer.to_dict(), allow_nan=False)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_budget_of_failed_trials_counts_those_that_failed_for_good(most):
    made = source(
        campaign(30, retries=Retries(0.4, most), budget=Budget(failed_trials=29), name="c-retry-1"), [1.0] * 30
    )
    run = replay_log(log(8, [], 4000, range(8)), made, EqualSharePolicy(), efficiency=False, bound=False)
    for_good = sum(trial.state is TrialState.FAILED for trial in made.trials)
    crashed = int((run.jobs["status"] == "failed").sum())
    assert for_good > 0
    assert (for_good < crashed) == (most > 0)
    answer = campaign_answer(run, job_answers(run))
    assert answer.budget == {"failed_trials": {"limit": 29.0, "used": float(for_good)}}
    text = render_run(run, model_answers(job_answers(run)), answer)
    assert f"failed trials: {for_good} (" in text
