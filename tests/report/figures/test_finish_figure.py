"""The picture of a finish: its data, and its panels."""

import msgspec
import numpy as np
import pytest

from bfreplay.experiments.finish_text import answer_of
from bfreplay.report.figures.finish import finish_figure, finish_times, medians, page
from bfreplay.result_folders.finish import Against, Start
from bfreplay.result_folders.tuning import InputFile
from tests.experiments.test_finish_text import HOUR, record

MONDAY_US = 1_714_348_800_000_000  # 2024-04-29 UTC


def started(*pairs, **given):
    starts = [
        Start(time="", time_us=MONDAY_US + round(hours * 3.6e9), duration_s=length * HOUR, is_done=done, run="r")
        for hours, length, done in pairs
    ]
    return msgspec.structs.replace(record(**given), starts=starts)


def test_starts_are_by_the_clock_of_the_time_zone():
    found = started((0, 30, True), (47.5, 40, False))
    times = finish_times(found)
    assert times.weekday.tolist() == pytest.approx([0, 1 + 23.5 / 24])
    assert times.hour.tolist() == pytest.approx([0, 23.5])
    assert (times.unit, times.time.tolist(), times.is_done.tolist()) == ("h", [30, 40], [True, False])
    paris = finish_times(started((0, 30, True), (47.5, 400, False), zone="Europe/Paris"))
    assert paris.weekday.tolist() == pytest.approx([2 / 24, 2 + 1.5 / 24])


def test_axes_labels_and_the_answer_have_the_unit_of_the_median():
    found = started((0, 30, True), (1, 60, True), (2, 400, False), quartiles=(31, 60, 90))
    assert finish_times(found).time.tolist() == pytest.approx([1.25, 2.5, 400 / 24])
    answer = "after 2.50 days (half of the starts within 1.29 to 3.75 days), against 0.829 days on 32 nodes"
    assert answer in answer_of(found)
    axes = finish_figure(found).axes[0]
    assert axes.get_xlabel() == "time since the start, days"
    assert {"median: 2.50 days", "32 dedicated nodes: 0.829 days"} <= set(axes.get_legend_handles_labels()[1])


def test_a_group_has_a_median_if_it_has_several_starts_and_half_are_known_to_be_done():
    found = finish_times(started(*((k, 10 + k, k < 4) for k in range(7))))
    assert medians(found, np.array([0, 0, 0, 1, 1, 1, 1])) == {0: 11}


def test_a_log_without_a_calendar_has_the_shares_only():
    pairs = [(5 * k, 31 + k, k < 40) for k in range(48)]
    assert len(finish_figure(started(*pairs)).axes) == 3
    assert len(finish_figure(started(*pairs, zone=None)).axes) == 1


def test_dedicated_nodes_and_the_worth_are_lines_with_their_times():
    found = started((0, 30, True), (1, 36, True), (2, 50, False), worth=("exactly", 32))
    labels = finish_figure(found).axes[0].get_legend_handles_labels()[1]
    assert "32 dedicated nodes: 19.9 h" in labels
    assert "worth 32 dedicated nodes: 19.9 h" in labels
    assert "unfinished when the log ends (1)" in labels
    unknown = started((0, 50, False), quartiles=(None, None, None), worth=("more than", 32), asked=None)
    labels = finish_figure(unknown).axes[0].get_legend_handles_labels()[1]
    assert labels == ["idle nodes: starts done", "unfinished when the log ends (1)"]


def test_the_other_jobs_have_a_line_of_their_own_in_the_same_unit():
    found, other = started((0, 30, True), (1, 36, True)), started((0, 20, True), (1, 90, False))
    files = [InputFile(name="narrow.toml", sha256="c" * 64)]
    found = msgspec.structs.replace(
        found, against=Against(jobs=files, starts=other.starts, quantiles=other.quantiles, later_s=None)
    )
    name = f"{found.names[1]}: starts done"
    (trace,) = [trace for trace in page(found).traces if trace["name"] == name]
    assert (trace["x"], trace["y"]) == ([0, 20, 90], [0, 50, 50])
    axes = finish_figure(found).axes[0]
    assert name in axes.get_legend_handles_labels()[1]
    assert axes.get_xlim()[1] > 90
