"""The picture of a sweep: what its points are, and that all of them are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bfreplay.errors import InputError
from bfreplay.report.figures.figure import figures_of
from bfreplay.report.figures.picture_files import save_picture
from bfreplay.report.figures.sweep_picture import draw_sweep_lines, page, swept_lines, words
from tests.report.figures.drawn import check_page

HOUR = 3600.0


def table(*rows, columns=("rate", "draw", "policy")):
    """Rows of (what varies ..., mean JCT in hours, utilisation, jobs that did not complete)."""
    every = pd.DataFrame([row[: len(columns)] for row in rows], columns=list(columns))
    results = pd.DataFrame(
        {
            "id": [f"run{k}" for k in range(len(rows))],
            "average_jct_s": [np.nan if row[-3] is None else row[-3] * HOUR for row in rows],
            "utilisation": [row[-2] for row in rows],
            "n_measured_jobs": [10] * len(rows),
            "n_measured_completed": [10 - row[-1] for row in rows],
            "log_verdict": ["good"] * len(rows),
        }
    )
    return pd.concat([every, results], axis=1)


SWEEP = table(
    (2.0, 0, "slow", 5.0, 0.9, 0),
    (1.0, 0, "slow", 2.0, 0.5, 0),
    (1.0, 1, "slow", 4.0, 0.5, 0),
    (4.0, 0, "slow", 90.0, 0.999, 0),
    (1.0, 0, "fast", 1.0, 0.5, 0),
    (2.0, 0, "fast", 1.5, 0.8, 1),
    (4.0, 0, "fast", None, 0.9, 0),
)


def test_rows_that_differ_in_a_seed_share_a_point_and_lines_go_up_the_axis():
    found = swept_lines(SWEEP, "rate", ["average_jct_s"], ["policy"])
    (panel,) = found.panels
    slow, fast = panel.lines
    assert (slow.label, fast.label) == ("slow", "fast")
    assert slow.x == (1.0, 2.0, 4.0)
    assert slow.mean.tolist() == [3.0, 5.0, 90.0]
    assert [each.tolist() for each in slow.span] == [[2.0, 5.0, 90.0], [4.0, 5.0, 90.0]]
    assert found.is_number
    assert found.averaged_over == {"draw": 2}
    assert panel.words.endswith(", h")
    assert swept_lines(SWEEP[SWEEP["draw"] == 0], "rate", ["average_jct_s"], ["policy"]).averaged_over == {}


def test_points_of_saturated_runs_are_marked_whatever_the_reason_and_failed_runs_left_out():
    found = swept_lines(SWEEP, "rate", ["average_jct_s"], ["policy"])
    slow, fast = found.panels[0].lines
    assert slow.is_saturated.tolist() == [False, False, True]  # utilisation of 99.9 %
    assert fast.is_saturated.tolist() == [False, True]  # a job did not complete
    assert fast.x == (1.0, 2.0)
    assert found.n_skipped == 1
    never = swept_lines(SWEEP, "rate", ["average_jct_s"], ["policy"], saturated_above=None)
    assert not any(line.is_saturated.any() for line in never.panels[0].lines)


def test_the_axis_may_be_a_parameter_in_a_text_and_lines_are_told_apart_by_several():
    rows = [
        (f"gavel(n=9, jobs_per_hour={rate})", seed, f"p(profiled={p})", hours, 0.5, 0)
        for rate, seed, p, hours in ((0.5, 1, 0.2, 3.0), (0.5, 2, 0.2, 5.0), (2, 1, 0.2, 7.0), (2, 1, 1, 6.0))
    ]
    given = table(*rows, columns=("jobs", "draw", "policy"))
    found = swept_lines(given, "jobs.jobs_per_hour", ["average_jct_s"], ["policy.profiled", "draw"])
    assert found.panels[0].lines[0].x == (0.5, 2)
    assert [line.label for line in found.panels[0].lines] == [
        "policy.profiled 0.2, draw 1",
        "policy.profiled 0.2, draw 2",
        "policy.profiled 1, draw 1",
    ]
    # the column that the axis is taken from does not count as averaged over: policy and jobs vary besides
    assert found.averaged_over == {"jobs": 2, "policy": 2}


def test_texts_on_the_axis_are_categories_in_the_order_of_the_table_with_a_panel_for_each_metric():
    found = swept_lines(SWEEP, "policy", ["utilisation", "average_jct_s"])
    assert not found.is_number
    assert [panel.column for panel in found.panels] == ["utilisation", "average_jct_s"]
    (line,) = found.panels[0].lines
    assert line.x == ("slow", "fast")
    assert line.mean[1] == pytest.approx(100 * (0.5 + 0.8 + 0.9) / 3)  # percent
    assert line.label == ""


@pytest.mark.parametrize(
    ("x", "y", "by", "column"),
    [
        ("rat", ["average_jct_s"], [], "rat"),
        ("rate", ["average_jct"], [], "average_jct"),
        ("rate", ["log_verdict"], [], "log_verdict"),
        ("rate", ["average_jct_s"], ["seed"], "seed"),
        ("policy.profiled", ["average_jct_s"], [], "policy.profiled"),
        ("rate", [], [], "y"),
    ],
)
def test_a_column_that_cannot_be_shown_is_named(x, y, by, column):
    with pytest.raises(InputError) as error:
        swept_lines(SWEEP, x, y, by)
    assert error.value.column == column
    assert error.value.expected


def test_a_metric_that_no_row_has_is_refused():
    with pytest.raises(InputError, match="no row of the sweep has a value"):
        swept_lines(SWEEP[SWEEP["average_jct_s"].isna()], "rate", ["average_jct_s"])


def lines_drawn(axes):
    return [line for line in axes.get_lines() if len(line.get_xdata())]


def test_lines_bands_and_hollow_points_are_drawn_and_the_scale_is_logarithmic_where_it_helps():
    figure = draw_sweep_lines(swept_lines(SWEEP, "rate", ["average_jct_s"], ["policy"]))
    (axes,) = figure.axes
    through, solid, hollow = lines_drawn(axes)[:3]
    assert through.get_ydata().tolist() == [3.0, 5.0, 90.0]
    assert solid.get_ydata().tolist() == [3.0, 5.0]
    assert hollow.get_ydata().tolist() == [90.0]
    assert hollow.get_markerfacecolor() == "white"
    assert len(axes.collections) == 1  # one band: only one line has a spread
    assert axes.get_yscale() == "log"  # 1 to 90 hours
    assert axes.get_xscale() == "log"  # 1, 2, 4
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:2] == ["slow", "fast"]
    assert any("saturated" in text for text in legend)
    plain = draw_sweep_lines(swept_lines(SWEEP, "rate", ["average_jct_s"], ["policy"]), log_x=False, log_y=False).axes[
        0
    ]
    assert (plain.get_xscale(), plain.get_yscale()) == ("linear", "linear")
    assert plain.get_ylim()[0] == 0.0


def test_bars_are_as_long_as_means_with_a_whisker_and_hatched_where_saturated():
    figure = draw_sweep_lines(swept_lines(SWEEP, "policy", ["average_jct_s", "utilisation"], ["draw"]))
    first, second = figure.axes
    lengths = sorted(round(bar.get_width(), 6) for bar in first.patches if bar.get_width() > 0)
    assert lengths == [round((1 + 1.5) / 2, 6), 4.0, round((5 + 2 + 90) / 3, 6)]
    assert [label.get_text() for label in first.get_yticklabels()] == ["slow", "fast"]
    assert sorted(bar.get_hatch() for bar in first.patches if bar.get_width() > 0) == ["", "///", "///"]
    assert second.get_xlabel().endswith("%")


@pytest.mark.slow
def test_a_picture_of_a_sweep_has_the_same_bytes_each_time_and_is_in_the_catalogue(tmp_path):
    (figure,) = figures_of("sweep")
    for k in range(2):
        save_picture(
            figure.draw_from(SWEEP, "rate", ["average_jct_s", "utilisation"], ["policy"]), tmp_path / f"{k}.svg"
        )
    assert (tmp_path / "0.svg").read_bytes() == (tmp_path / "1.svg").read_bytes()


def test_the_page_has_the_means_their_spread_and_hollow_points_of_saturated_runs():
    found = swept_lines(SWEEP, "rate", ["average_jct_s"], ["policy"])
    figure = check_page(page(found))
    slow, _ = figure.traces
    assert (slow["x"], slow["y"]) == ([1.0, 2.0, 4.0], [3.0, 5.0, 90.0])
    assert (slow["error_y"]["arrayminus"], slow["error_y"]["visible"]) == ([1.0, 0.0, 0.0], True)
    assert slow["marker"]["symbol"] == [0, 0, 100]
    assert figure.layout["xaxis"]["type"] == "log"
    assert words(found).startswith("Against rate: submit to finish, mean, h. ")
    assert "differ in draw (2 values)" in words(found)
    rows = check_page(page(swept_lines(SWEEP, "policy", ["average_jct_s", "utilisation"], ["rate"])))
    assert [trace["y"] for trace in rows.traces[:3]] == [["slow", "fast"], ["slow", "fast"], ["slow"]]
    assert rows.layout["yaxis2"]["type"] == "category"
