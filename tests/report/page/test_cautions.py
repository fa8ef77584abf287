"""What a reader is told to bear in mind, and when; and the answer in sentences."""

from __future__ import annotations

import copy

import pytest

from bfreplay.replay import RunResult
from bfreplay.report.page.answer import answer
from bfreplay.report.page.cautions import books, cautions
from bfreplay.report.page.facts import facts_of
from bfreplay.report.page.soundness import check_run


@pytest.fixture
def told(sample_run):
    """Cautions of the run as plain text, after a change to its record."""

    def of(change=lambda record: None, run=sample_run):
        record = copy.deepcopy(run.record)
        change(record)
        changed = RunResult(record, run.session, run.folder)
        return [each.striptags() for each in cautions(changed, facts_of(changed))]

    return of


def _set(path, value):
    def change(record):
        *way, last = path.split(".")
        for key in way:
            record = record[key]
        record[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("inputs.events.metadata.allocator", {"name": "lowest-id", "seed": 3}, "simulated (lowest-id, seed 3)"),
        ("inputs.events.metadata.node_inventory", "seen", "does not list the nodes of the machine"),
        ("inputs.events.metadata.dropped", {"no end time": 1_234}, "left out (no end time): 1,234."),
        ("config.unlimited_work", True, "Work never ended in this run"),
        ("config.semantics", "published", "the published program's"),
        ("summary.n_jobs_wider_than_the_pool", 2, "2 of the jobs could never run"),
        ("summary.fallbacks", {"timed_out": 7}, "7 decisions fell back (timed out)"),
        ("summary.decisions", {"feasible": 5}, "5 decisions are feasible, but not proven optimal."),
        ("summary.decisions", {"unproven_by_design": 9}, "9 decisions are by a rule that proves nothing."),
        ("versions.bfreplay", "0.0.1", "made by bfreplay 0.0.1, this page by"),
        ("inputs.jobs.source", {"name": "asha"}, "so that no U and no bound are given"),
    ],
)
def test_a_caution_is_there_when_it_holds_and_only_then(told, path, value, words):
    assert not any(words in each for each in told())
    assert sum(words in each for each in told(_set(path, value))) == 1


def test_jobs_that_the_window_cuts_off_are_counted(told, sample_run):
    said = next(each for each in told() if "The window ended before these jobs did" in each)
    left = {status: n for status, n in sample_run.summary["jobs"].items() if n and status != "finished"}
    assert left
    assert all(f"{n} {status.replace('_', ' ')}" in said for status, n in left.items())


def test_holes_cut_by_the_window_are_counted(told, sample_run):
    holes = sample_run.frame("holes")
    assert f"{holes['n_cut'].sum()} of {holes['n_holes'].sum():,} holes are cut" in "".join(told())


def test_a_log_that_outlasts_all_jobs_by_far_is_said(many_jobs_run, told):
    duration_us = round(many_jobs_run.summary["duration_s"] * 1e6)
    start_us = many_jobs_run.record["config"]["window_start_us"]

    def all_left_early(record):
        record["summary"]["last_finish_us"] = start_us + duration_us // 3

    assert any("from then on nothing was there to train" in each for each in told(all_left_early, many_jobs_run))
    assert not any("from then on" in each for each in told(_set("summary.last_finish_us", None), many_jobs_run))


def test_the_books_are_said_to_close_with_the_number_of_sums(sample_run):
    sums = check_run(sample_run)
    assert f"{len(sums)} sums" in books(sums).striptags()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("never_idle_run", "none of the 8 nodes was ever idle"),
        ("all_idle_run", "node-hours were idle, as much as 8 nodes would give"),
        ("no_jobs_run", "There was no job to train"),
        ("sample_run", "of what as many dedicated nodes would have processed"),
        ("other_run", "(equal-share)"),
    ],
)
def test_the_answer_suits_the_run(request, run, words):
    result = request.getfixturevalue(run)
    sentences = [each.striptags() for each in answer(result, facts_of(result))]
    assert len(sentences) == 3
    assert words in " ".join(sentences)
    assert all(sentence.endswith(".") and "None" not in sentence for sentence in sentences)
