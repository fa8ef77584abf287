"""What the pictures of a run show, by numbers, and that they are drawn."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.campaign import (
    CampaignOverTime,
    JobOverTime,
    best_steps,
    busy_span,
    counting_steps,
    draw_campaign,
    draw_job,
    life_span,
    stack_nodes,
    title_of,
)
from bfreplay.report.figures.picture_files import save_picture
from bfreplay.report.figures.time_axis import TimeSpan
from bfreplay.runs.explain.campaign import campaign_answer
from bfreplay.runs.explain.job_story import job_story_from_tables
from bfreplay.runs.explain.jobs_of_run import job_answers
from bfreplay.runs.explain.saved_tables import nodes_over_time, nodes_over_time_by_model
from bfreplay.runs.step_functions import StepSeries
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log
from tests.run_records import changed, setting
from tests.runs.explain.little_source import LittleHalving

SPAN = TimeSpan(0, 60 * SECOND)
DAY_S = 86_400


@pytest.fixture(scope="module")
def trials():
    """t0 pauses at 2.5 s and is pruned at 8.75 s, t1 fails at 3.75 s, t2 and t3 finish at 23.75 s."""
    return replay_log(log(4, [], 60, range(4)), LittleHalving(), EqualSharePolicy(), efficiency=False, bound=False)


@pytest.fixture(scope="module")
def plain():
    """a is preempted at 10 s, goes on at 25 s and finishes at 30 s; b comes at 40 s."""
    jobs = JobSet([replace(job("a", work=150.0, rates=(0.0, 10.0)), model="net"), job("b", submit_s=40)])
    events = log(2, [(10, 0, False), (25, 1, True)], 60, idle_first=[0])
    return replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)


def steps(*pairs: tuple[float, int], end_s: float = 60) -> StepSeries:
    edges = [round(at * SECOND) for at, _ in pairs]
    return StepSeries.exact(np.array([*edges, round(end_s * SECOND)]), np.array([count for _, count in pairs]))


def test_finished_jobs_are_counted_from_the_start_to_the_end_of_the_window():
    edges, count = counting_steps(np.array([10.0, 10.0, 40.0]), SPAN)
    assert (edges * DAY_S).tolist() == pytest.approx([0, 10, 10, 40, 60])
    assert count.tolist() == [0, 1, 2, 3]
    later, _ = counting_steps(np.array([10.0]), TimeSpan(60 * SECOND, 120 * SECOND))
    assert (later * DAY_S).tolist() == pytest.approx([60, 70, 120])
    relative, _ = counting_steps(np.array([10.0]), TimeSpan(60 * SECOND, 120 * SECOND, is_relative=True))
    assert (relative * DAY_S).tolist() == pytest.approx([0, 10, 60])


def test_the_best_score_begins_with_the_first_and_stays_to_the_end(trials):
    campaign = campaign_answer(trials, job_answers(trials))
    edges, best = best_steps(campaign, SPAN)
    assert (edges * DAY_S).tolist() == pytest.approx([1.25, 2.5, 6.25, 8.75, 23.75, 60])
    assert best.tolist() == [0.5, 1.0, 4.5, 5.0, 8.0]


def test_columns_of_nodes_are_means_and_sum_up_to_all_node_time():
    by_model = {"x": steps((0, 2), (30, 0)), "y": steps((0, 0), (10.0625, 3))}
    stacked = stack_nodes(by_model, SPAN)
    assert stacked.labels == ("x", "y")
    assert stacked.mean.shape == (2, 480)
    assert stacked.mean[0, :240].tolist() == pytest.approx([2.0] * 240)
    assert stacked.mean[1, 80] == pytest.approx(3 * 0.5)  # the column from 10 to 10.125 s
    assert stacked.mean.sum() * 60 / 480 == pytest.approx(2 * 30 + 3 * 49.9375)


def test_the_least_of_many_models_share_one_place():
    by_model = {f"m{k}": steps((0, k + 1)) for k in range(10)}
    stacked = stack_nodes(by_model, SPAN)
    assert stacked.labels == ("m3", "m4", "m5", "m6", "m7", "m8", "m9", "3 other models")
    assert stacked.mean[:, 0].tolist() == pytest.approx([4, 5, 6, 7, 8, 9, 10, 1 + 2 + 3])


def test_a_campaign_has_a_panel_of_scores_and_a_plain_set_has_none(trials, plain):
    figures = {}
    for name, run in (("trials", trials), ("plain", plain)):
        campaign = campaign_answer(run, job_answers(run))
        figures[name] = draw_campaign(
            CampaignOverTime(campaign, nodes_over_time_by_model(run), SPAN, "equal-share, $x$")
        )
    assert [axes.get_ylabel().replace("\n", " ") for axes in figures["trials"].axes] == [
        "of 4 jobs finished",
        "best score so far (higher is better)",
        "nodes held",
    ]
    assert [axes.get_ylabel().replace("\n", " ") for axes in figures["plain"].axes] == [
        "of 2 jobs finished",
        "nodes held",
    ]
    assert figures["plain"].axes[0].get_title(loc="left") == "equal-share, $x$"
    assert [text.get_text() for text in figures["plain"].legends[0].get_texts()] == ["net", "(no model)"]
    of_trials = [text.get_text() for text in figures["trials"].axes[0].get_legend().get_texts()]
    assert of_trials == ["finished", "finished or ended early"]
    assert figures["plain"].axes[0].get_legend() is None  # all that left has finished


def test_a_campaign_is_drawn_until_a_little_after_its_last_job_has_left(trials, plain):
    over = campaign_answer(trials, job_answers(trials))
    assert busy_span(over, SPAN) == TimeSpan(0, round(23.75 * 1.05 * SECOND))
    assert busy_span(over, TimeSpan(0, 24 * SECOND)) == TimeSpan(0, 24 * SECOND)
    assert busy_span(campaign_answer(plain, job_answers(plain)), SPAN) == SPAN  # b has not left
    edges = draw_campaign(CampaignOverTime(over, nodes_over_time_by_model(trials), SPAN)).axes[0].get_xlim()
    assert [edge * DAY_S for edge in edges] == pytest.approx([0, 23.75 * 1.05])


def test_reclaims_are_marked_where_the_job_lost_nodes(plain):
    story = job_story_from_tables(plain, "a")
    figure = draw_job(JobOverTime(nodes_over_time(plain, "a"), story.steps, SPAN, "a"))
    (axes,) = figure.axes
    (marks,) = axes.get_lines()
    assert (marks.get_xdata() * DAY_S).tolist() == pytest.approx([10.0])
    assert marks.get_ydata().tolist() == [1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "nodes held",
        "reclaimed by the batch scheduler",
    ]
    assert [edge * DAY_S for edge in axes.get_xlim()] == pytest.approx([0, 30])  # as long as it was there


def test_a_job_is_drawn_from_its_submission_to_its_end(plain):
    of_a = job_story_from_tables(plain, "a").steps
    assert life_span(of_a, SPAN) == TimeSpan(0, 30 * SECOND)
    submitted_later = [replace(of_a[0], time_us=7 * SECOND), *of_a[1:]]
    assert life_span(submitted_later, SPAN) == TimeSpan(7 * SECOND, 30 * SECOND)
    assert life_span(submitted_later, replace(SPAN, is_relative=True)) == TimeSpan(0, 30 * SECOND, is_relative=True)
    submitted_before = [replace(of_a[0], time_us=-SECOND), *of_a[1:]]
    assert life_span(submitted_before, SPAN) == TimeSpan(0, 30 * SECOND)
    assert life_span(of_a[:1], SPAN) == SPAN  # it came and went at one instant


@pytest.mark.slow
@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.filterwarnings("error")
def test_pictures_are_drawn_as_png_and_svg(trials, tmp_path, is_relative):
    span = replace(SPAN, is_relative=is_relative)
    campaign = campaign_answer(trials, job_answers(trials))
    for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        file = tmp_path / f"run.{ending}"
        save_picture(draw_campaign(CampaignOverTime(campaign, nodes_over_time_by_model(trials), span)), file)
        assert file.read_bytes().startswith(start)
        (axes, *_) = draw_campaign(CampaignOverTime(campaign, nodes_over_time_by_model(trials), span)).axes[-1:]
        assert axes.get_xlabel() == ("seconds since the start of the window" if is_relative else "time (UTC)")


def test_a_picture_is_named_by_what_was_run_where(trials, plain):
    assert title_of(trials.record, "t0") == "t0, little halving, equal-share"
    somewhere = changed(plain, setting("inputs.events.metadata.cluster", "somewhere"))
    assert title_of(somewhere.record) == "equal-share, somewhere"


def test_the_span_of_a_run_is_its_window(plain):
    start_us, end_us = plain.record["config"]["window_start_us"], plain.record["config"]["window_end_us"]
    assert TimeSpan.of_record(plain.record) == TimeSpan(start_us, end_us)
    assert start_us < end_us
    relative = changed(plain, setting("inputs.events.metadata.time_origin", "relative"))
    assert TimeSpan.of_record(relative.record) == TimeSpan(start_us, end_us, is_relative=True)


CODE = """
import sys
from pathlib import Path
from bfreplay.report.figures.campaign import JobOverTime, draw_job
from bfreplay.report.figures.time_axis import TimeSpan
from bfreplay.report.figures.picture_files import save_picture
from bfreplay.runs.step_functions import StepSeries
from bfreplay.runs.explain.job_story import Step
assert "matplotlib" not in sys.modules
import numpy as np
nodes = StepSeries.exact(np.array([0, 10, 60]) * 10**6, np.array([1, 2]))
lost = [Step(0, "started", 0, 2), Step(10**7, "preempted", 2, 1), Step(6 * 10**7, "finished", 1, 0)]
for file in sys.argv[1:]:
    save_picture(draw_job(JobOverTime(nodes, lost, TimeSpan(0, 60 * 10**6), "a")), Path(file))
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.thorough
def test_the_same_job_gives_the_same_bytes_in_another_process(tmp_path):
    files = {ending: [tmp_path / f"{k}.{ending}" for k in (1, 2)] for ending in ("png", "svg")}
    for k in (0, 1):
        outputs = [str(of_ending[k]) for of_ending in files.values()]
        subprocess.run([sys.executable, "-c", CODE, *outputs], check=True, cwd=Path(__file__).parents[3])
    for one, other in files.values():
        assert one.read_bytes() == other.read_bytes()
