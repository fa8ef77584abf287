"""What a reader is told to bear in mind, and when; and the answer in sentences."""

from __future__ import annotations

import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.report.page.document import answer, cautions, ledger_check
from bfreplay.runs.metrics import key_figures
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.run_records import changed, setting
from tests.runs.explain.little_source import LittleHalving

_ENDED = "The window ended before these jobs"
_LEARNING = {
    "samples": 400.0,
    "known_samples": 400.0,
    "last_finish_us": None,
    "known_last_finish_us": None,
    "known_jobs": {},
    "known_best_score": None,
    "lost": None,
}


@pytest.fixture
def told(sample_run):
    """Cautions of the run as plain text, after a change to its record."""

    def of(change=lambda record: None, run=sample_run):
        made = changed(run, change)
        return [each.striptags() for each in cautions(made, key_figures(made))]

    return of


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("inputs.events.metadata.allocator", {"name": "lowest-id", "seed": 3}, "simulated (lowest-id, seed 3)"),
        ("inputs.events.metadata.node_inventory", "seen", "does not list the nodes of the machine"),
        ("inputs.events.metadata.skipped", {"no end time": 1_234}, "skipped (no end time): 1,234."),
        ("config.unlimited_work", True, "Work never ended in this run"),
        ("config.semantics", "published", "the published program's"),
        ("summary.n_jobs_wider_than_the_pool", 2, "2 of 40 jobs could never run: too few nodes"),
        ("summary.n_jobs_wider_than_the_pool", 1, "1 of 40 jobs could never run: too few nodes"),
        ("summary.fallbacks", {"timed_out": 7}, " decisions: 7 timed out, the first: "),
        ("summary.fallbacks", {"timed_out": 1}, " decisions: 1 timed out, the first: "),
        ("summary.decisions", {"feasible": 5}, "5 decisions are feasible, but not proven optimal."),
        ("summary.decisions", {"feasible": 1}, "1 decision is feasible, but not proven optimal."),
        ("summary.decisions", {"unproven_by_design": 9}, "9 decisions are by a rule, without a proof."),
        ("summary.decisions", {"wrong": 1}, "1 time the allocation was unchanged, although that breaks a bound."),
        ("summary.decisions", {"none": 2}, "2 times there was no answer, and the allocation was unchanged."),
        ("versions.bfreplay", "0.0.1", "made by bfreplay 0.0.1, this page by"),
        ("inputs.jobs.source", {"name": "asha"}, "so there is neither U nor an upper bound"),
    ],
)
def test_a_caution_is_there_when_it_holds_and_only_then(told, path, value, words):
    assert not any(words in each for each in told())
    assert sum(words in each for each in told(setting(path, value))) == 1


def test_jobs_that_the_window_cuts_off_are_counted(told, sample_run):
    said = next(each for each in told() if _ENDED in each)
    jobs = sample_run.jobs
    cut = jobs[jobs["first_start"].notna() & jobs["ended"].isna()]["status"].value_counts()
    never = jobs["first_start"].isna() & jobs["status"].isin(["waiting", "queued"])
    assert (cut > 0).any()
    assert all(f"{n} {status}" in said for status, n in cut.items() if n)
    assert (f"{never.sum()} not started" in said) == never.any()


def test_jobs_that_come_later_or_are_too_wide_are_not_cut_off(tmp_path):
    def said(*jobs):
        run = replay_log(log(4, [], 60, idle_first=range(3)), JobSet(jobs), EqualSharePolicy(), ReplaySettings(3))
        return [each.striptags() for each in cautions(run, key_figures(run)) if _ENDED in each.striptags()]

    never = _ENDED + ", so their times are censored: "
    wide, late = job("wide", rates=(0.0, 0.0, 0.0, 0.0, 1.0), min_nodes=4), job("late", submit_s=90)
    assert said(job("short", work=10.0), wide, late) == []
    assert said(job("long"), wide, late) == [f"{never}1 running."]
    assert said(*(job(name) for name in "abcde"), wide) == [f"{never}1 running, 4 not started."]
    wide_later = job("wide", submit_s=90, rates=(0.0, 0.0, 0.0, 0.0, 1.0), min_nodes=4)
    assert said(*(job(name) for name in "abcde"), wide_later) == [f"{never}1 running, at least 3 not started."]


def test_idle_intervals_cut_by_the_window_are_counted(told, sample_run):
    idle_intervals = sample_run.frame("idle_intervals")
    said = (
        f"{idle_intervals['n_censored'].sum()} of {idle_intervals['n_intervals'].sum():,} idle intervals "
        "are censored by an edge of the window: they may have been longer than the window shows."
    )
    assert said in told()


def test_one_idle_interval_is_told_in_the_singular(told):
    run = replay_log(log(1, [], 60, idle_first=[0]), JobSet([job("a")]), EqualSharePolicy())
    assert (
        "1 of 1 idle interval is censored by an edge of the window: it may have been longer than the window shows."
        in told(run=run)
    )


def test_a_log_that_outlasts_all_jobs_by_far_is_said(many_jobs_run, told):
    duration_us = round(many_jobs_run.summary["duration_s"] * 1e6)
    start_us = many_jobs_run.record["config"]["window_start_us"]

    def all_left_early(record):
        record["summary"]["last_finish_us"] = start_us + duration_us // 3

    assert any("no job was left to train" in each for each in told(all_left_early, many_jobs_run))
    assert not any("no job was left" in each for each in told(setting("summary.last_finish_us", None), many_jobs_run))


def test_the_ledger_is_said_to_close_and_checksums_to_hold_where_there_are_some(sample_run):
    assert "The ledger closes" in ledger_check(sample_run).striptags()
    assert "By their checksums" in ledger_check(sample_run).striptags()
    in_memory = replay_log(log(1, [], 60, idle_first=[0]), JobSet([job("a")]), EqualSharePolicy())
    assert "checksums" not in ledger_check(in_memory).striptags()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("never_idle_run", "The 2 jobs processed 0 samples"),
        ("no_jobs_run", "There was no job to train"),
        ("sample_run", "of the samples of as many dedicated nodes"),
        ("other_run", "(equal-share)"),
    ],
)
def test_the_answer_suits_the_run(request, run, words):
    result = request.getfixturevalue(run)
    sentences = [each.striptags() for each in answer(result, key_figures(result))]
    assert len(sentences) == (3 if result.summary.batch_starts.n_starts and "no job" not in words else 2)
    assert words in " ".join(sentences)
    assert all(sentence.endswith(".") and "None" not in sentence for sentence in sentences)


def _answer(run, change=lambda record: None):
    made = changed(run, change)
    return [each.striptags() for each in answer(made, key_figures(made))]


def test_samples_are_no_measure_where_all_jobs_are_done_in_both():
    jobs = JobSet([job("a", work=400.0), job("b", work=100.0)])
    done = replay_log(log(2, [(10, 1, True)], 600, idle_first=[0]), jobs, EqualSharePolicy())
    assert done.u == 1
    worth = _answer(done)[0]
    assert "(U)" not in worth
    assert "at least" not in worth
    assert "all were done after 30 s, on as many dedicated nodes after 25 s, and no policy can finish before" in worth
    cut = replay_log(log(2, [(10, 1, True)], 20, idle_first=[0]), jobs, EqualSharePolicy())
    assert "(U)" in _answer(cut)[0]


def test_counts_of_one_are_told_in_the_singular():
    run = replay_log(log(1, [], 3_600, idle_first=[0]), JobSet([job("a")]), EqualSharePolicy())
    worth, decided = _answer(run)
    assert worth.startswith("The only job processed")
    assert decided.startswith("Node counts were decided 1 time (equal-share)")


def test_a_campaign_is_told_by_its_best_score_and_a_source_may_make_other_jobs():
    events = log(4, [], 600, idle_first=range(4))
    run = replay_log(events, LittleHalving(), LearningPolicy(EqualSharePolicy(), noise=0.1))
    reports = run.frame("reports")
    best = reports.loc[reports["score"].idxmax()]
    after_s, n_reports = best["time"].timestamp(), int(run.jobs["n_reports"].sum())
    worth = _answer(run)[0]
    score = f"the highest simulated score was {best['score']:g}, by {best['job']} after {after_s:.3g} s"
    assert f"; of {n_reports} reports {score}" in worth
    assert worth.endswith(" s (other trials may be pruned there).")
    assert "(U)" not in worth


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        (0.25, "; learning the curves cost 25 % of the samples with known curves;"),
        (-0.02, "; learned curves happened to give 2 % more than known ones;"),
    ],
)
def test_what_learning_cost_is_told_where_jobs_are_cut_off(all_idle_run, lost, words):
    def learned(record):
        record["summary"]["learning"] = _LEARNING | {"lost": lost}

    assert words in _answer(all_idle_run, learned)[0]
    assert "curves" not in _answer(all_idle_run)[0]


def test_where_all_jobs_are_done_learning_cost_time():
    run = replay_log(log(2, [], 600, idle_first=[0, 1]), JobSet([job("a", work=400.0)]), EqualSharePolicy())

    def learned(record):
        record["summary"]["learning"] = _LEARNING | {"lost": 0.0, "known_last_finish_us": 15_000_000}

    worth = _answer(run, learned)[0]
    assert "it was done after 20 s, with known curves after 15 s, on as many dedicated nodes" in worth
    assert "cost" not in worth


def test_curves_that_were_not_measured_where_jobs_may_run_are_named(told):
    said = "Job a may run on 5 nodes, where the curve was not measured."
    assert said in told(setting("summary.extrapolation", [said]))
