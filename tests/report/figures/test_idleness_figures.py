"""What the pictures of idle nodes show, by numbers, and that they are drawn."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import bfreplay
from bfreplay.datasets import EventsMetadata
from bfreplay.datasets.idleness import characterise
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.report import check_idleness_pictures, draw_idleness
from bfreplay.report.figures.axes import log_tick, plain_tick
from bfreplay.report.figures.figure import Figure, as_they_are, figures_of
from bfreplay.report.figures.idleness import (
    bursts_per_day,
    colour_range,
    draw_bursts,
    draw_hour_and_weekday,
    draw_idle_over_time,
    draw_lengths,
    draw_widths,
    hour_table,
    length_curves,
    percent_tick,
    timeline_band,
    width_curves,
)
from tests.datasets.small_logs import BUSY, IDLE, log

HOUR = 3_600
PICTURES = [figure.name for figure in figures_of("log")]


@pytest.fixture(scope="module")
def worked():
    """A day and 12 hours of three nodes from Thursday 1970-01-01 on.

    a is idle from 1 to 3 h, b from 2 to 6 h, c from 24 h to the end (12 h, cut). So two are idle from 2 to 3 h.
    """
    rows = [(1, "a", IDLE), (2, "b", IDLE), (3, "a", BUSY), (6, "b", BUSY), (24, "c", IDLE)]
    return characterise(log([BUSY] * 3, [(h * HOUR, name, state) for h, name, state in rows], end=36 * HOUR))


@pytest.fixture(scope="module")
def never_idle():
    return characterise(log([BUSY] * 3, [], end=36 * HOUR))


@pytest.fixture(scope="module")
def relative():
    metadata = EventsMetadata(time_origin="relative", allocator={"name": "lowest_first"}, cluster="cost $1 or $2")
    return characterise(log([BUSY, IDLE, BUSY], [(HOUR, "a", IDLE)], end=36 * HOUR, metadata=metadata))


def _texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_the_band_over_time_is_that_of_the_timeline_in_days(worked, relative):
    window, band = timeline_band(worked)
    days = window.days(band.edge_us)
    assert (days[0], days[-1], len(days)) == (0.0, 1.5, 1_001)
    assert (band.least.min(), band.most.max()) == (0, 2)
    assert band.mean.mean() == pytest.approx(worked.mean_idle_nodes)
    at_2_30 = int(2.5 / 36 * 1_000)
    assert (band.least[at_2_30], band.mean[at_2_30], band.most[at_2_30]) == (2, 2.0, 2)
    window, band = timeline_band(relative)
    assert window.days(band.edge_us)[-1] == 1.5


def test_days_count_from_1970_for_a_calendar_and_from_the_start_where_times_are_relative():
    def last_half(**metadata):
        events = log([IDLE] * 3, [], end=48 * HOUR, metadata=EventsMetadata(**metadata))
        half = characterise(events.between(24 * HOUR * 1_000_000, 48 * HOUR * 1_000_000))
        window, band = timeline_band(half)
        return window.days(band.edge_us)

    assert last_half()[[0, -1]].tolist() == [1.0, 2.0]
    assert last_half(time_origin="relative")[[0, -1]].tolist() == [0.0, 1.0]


def test_the_table_of_hours_is_nan_where_nothing_is_covered(worked, relative):
    table = hour_table(worked)
    assert table.shape == (7, 24)
    assert table[3, :7].tolist() == [0, 1, 2, 1, 1, 1, 0]  # Thursday
    assert table[4, :12].tolist() == [1] * 12
    assert np.isnan(table[4, 12:]).all()
    assert np.isnan(table[[0, 1, 2, 5, 6]]).all()
    assert hour_table(relative) is None


def test_shares_of_idle_intervals_by_length_sum_to_one_and_the_curve_falls_from_all_to_nothing(worked):
    curves = length_curves(worked)
    # 2 h, 4 h, and 12 h cut, of 18 node-hours
    assert curves.of_intervals.sum() == pytest.approx(1)
    assert sorted(curves.of_node_hours[curves.of_node_hours > 0].tolist()) == pytest.approx([2 / 18, 4 / 18, 12 / 18])
    assert (curves.longer[0], curves.longer[-1]) == (1.0, 0.0)
    assert (np.diff(curves.longer) <= 0).all()
    assert (np.diff(curves.over_s) > 0).all()
    longer = dict(zip(curves.over_s.tolist(), curves.longer.tolist(), strict=True))
    assert [longer[hours * HOUR] for hours in (2, 4, 8)] == pytest.approx([16 / 18, 12 / 18, 12 / 18])


def test_idle_intervals_of_at_most_a_second_have_a_place_on_a_logarithmic_axis():
    curves = length_curves(characterise(log([BUSY] * 3, [(10, "a", IDLE), (10.5, "a", BUSY)])))
    assert curves.edge_s.tolist() == pytest.approx([2**-0.5, 1])
    assert (curves.of_intervals.tolist(), curves.longer.tolist()) == ([1.0], [1.0, 0.0])


def test_widths_that_never_occur_have_no_length(worked, never_idle):
    curves = width_curves(worked)
    assert curves.nodes.tolist() == [1, 2]
    assert curves.share.tolist() == pytest.approx([17 / 36, 1 / 36])
    assert curves.mean_s.tolist() == [8.5 * HOUR, HOUR]
    assert curves.median_s.tolist() == [5 * HOUR, HOUR]
    assert np.isnan(width_curves(never_idle).mean_s).all()


def test_bursts_are_given_per_day_of_the_window(worked, never_idle):
    nodes, per_day = bursts_per_day(worked.join_bursts, worked)
    assert (nodes.tolist(), per_day.tolist()) == ([1], [2.0])  # three in a day and a half
    assert [len(each) for each in bursts_per_day(never_idle.join_bursts, never_idle)] == [0, 0]


def test_the_picture_over_time_shows_the_mean_of_the_window_and_both_scales(worked):
    figure = draw_idle_over_time(worked)
    (axes,) = figure.axes
    (line,) = axes.get_lines()
    assert line.get_ydata()[0] == worked.mean_idle_nodes == 0.5
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "fewest to most",
        "mean",
        "mean of the window: 0.500 nodes",
    ]
    assert axes.get_ylabel() == "idle nodes"
    assert axes.get_xlabel() == "time (UTC)"
    assert "share of 3 nodes" in _texts(figure)
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "00:00\n1 Jan 1970",
        "06:00",
        "12:00",
        "18:00",
        "00:00\n2 Jan",
        "06:00",
        "12:00",
    ]
    assert axes.get_xticks().tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5]


def test_the_axis_of_weeks_says_that_its_ticks_are_mondays():
    (axes,) = draw_idle_over_time(characterise(log([IDLE] * 3, [], end=40 * 24 * HOUR))).axes
    assert axes.get_xlabel() == "time (UTC); ticks on Mondays"
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "5 Jan\n1970",
        "12 Jan",
        "19 Jan",
        "26 Jan",
        "2 Feb",
        "9 Feb",
    ]


@pytest.mark.parametrize(
    ("seconds", "unit", "labels"),
    [
        (90 * 24 * HOUR, "days", ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90"]),
        (36 * HOUR, "hours", ["0", "6", "12", "18", "24", "30", "36"]),
        (1_800, "minutes", ["0", "6", "12", "18", "24", "30"]),
        (6, "seconds", ["0", "1", "2", "3", "4", "5", "6"]),
    ],
)
def test_relative_times_are_read_in_a_unit_that_suits_their_length(seconds, unit, labels):
    events = log([IDLE] * 3, [], end=seconds, metadata=EventsMetadata(time_origin="relative"))
    (axes,) = draw_idle_over_time(characterise(events)).axes
    assert axes.get_xlabel() == f"{unit} since the start of the window"
    assert [label.get_text() for label in axes.get_xticklabels()] == labels
    assert axes.get_xticks()[-1] == pytest.approx(seconds / 86_400)


def test_colours_begin_at_zero_only_where_the_least_is_near_it():
    def colours(*cells):
        return colour_range(np.array([[*cells, np.nan]]))

    assert colours(22.0, 51.0) == (22.0, 51.0)
    assert colours(12.0, 48.0) == (0.0, 48.0)
    assert colours(0.0, 3.0) == (0.0, 3.0)
    assert colours(59.0, 60.0) == (54.0, 60.0)
    assert colours(2.0, 2.0) == (1.8, 2.0)
    assert colours(0.0, 0.0) == (0.0, 1e-9)


def test_the_colour_bar_says_where_it_does_not_begin_at_zero(worked):
    assert "mean idle nodes" in _texts(draw_hour_and_weekday(worked))
    busier = characterise(log([IDLE] * 3, [(HOUR, "a", BUSY)], end=36 * HOUR))
    figure = draw_hour_and_weekday(busier)
    assert "mean idle nodes (from 2, not 0)" in _texts(figure)
    assert figure.axes[1].collections[0].get_clim() == (2.0, 3.0)


def test_the_heat_map_has_a_row_a_weekday_and_says_what_is_hatched(worked, relative):
    figure = draw_hour_and_weekday(worked)
    above, middle, beside = figure.axes[:3]
    assert [label.get_text() for label in middle.get_yticklabels()] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert middle.yaxis_inverted()
    assert "hatched: not in the log" in middle.get_xlabel()
    (mesh,) = middle.collections
    assert np.ma.count(mesh.get_array()) == 36
    assert [bar.get_height() for bar in above.patches][:3] == pytest.approx([0.5, 1.0, 1.5])
    assert beside.patches[3].get_width() == pytest.approx(6 / 24)
    assert "no hour of the day: the times of the log are relative" in _texts(draw_hour_and_weekday(relative))
    week = characterise(log([IDLE] * 3, [], end=7 * 24 * HOUR))
    assert "hatched" not in draw_hour_and_weekday(week).axes[1].get_xlabel()


def test_dots_on_the_curve_of_longer_idle_intervals_are_those_of_the_table(worked):
    _, longer = draw_lengths(worked).axes
    curve, dots = longer.get_lines()
    assert dict(zip(dots.get_xdata(), dots.get_ydata(), strict=True)) == {
        each.over_s: each.share
        for each in worked.longer_idle_intervals
        if each.over_s in (7_200, 14_400, 28_800, 43_200)
    }
    assert curve.get_ydata()[0] == 1.0
    assert longer.get_xscale() == "log"


def test_a_picture_of_simulated_idle_intervals_says_so(worked, relative):
    assert "Idle intervals by length, node assignment simulated, cost $1 or $2" in _texts(draw_lengths(relative))
    assert "Idle intervals by length" in _texts(draw_lengths(worked))


def test_mean_and_median_of_stretches_can_be_told_apart_without_colour(worked):
    _, lasts = draw_widths(worked).axes
    mean, median = lasts.get_lines()
    assert (mean.get_label(), median.get_label()) == ("mean", "median")
    assert mean.get_marker() != median.get_marker()
    assert mean.get_linestyle() != median.get_linestyle()
    assert mean.get_ydata().tolist() == [8.5 * HOUR, HOUR]
    assert [label.get_text() for label in lasts.get_xticklabels()] == ["1", "2"]


def test_bars_of_bursts_are_those_of_the_table(worked):
    sizes, shares = draw_bursts(worked).axes
    heights = [bar.get_height() for bar in shares.patches]
    assert heights[:3] == pytest.approx([each.per_day for each in worked.reclaim_bursts.large])
    assert heights[3:] == pytest.approx([each.per_day for each in worked.join_bursts.large])
    assert [line.get_label() for line in sizes.get_lines()] == ["reclaimed at once", "joining at once"]


def test_joins_show_through_reclaims_that_lie_upon_them(worked):
    reclaims, joins = draw_bursts(worked).axes[0].get_lines()
    assert reclaims.get_zorder() > joins.get_zorder()
    assert reclaims.get_markerfacecolor() == "none"
    assert reclaims.get_markersize() > joins.get_markersize()
    assert (reclaims.is_dashed(), joins.is_dashed()) == (True, False)


def test_bars_stand_on_zero_even_where_no_burst_is_large():
    names = tuple("abcdefghijkl")
    idleness = characterise(log([IDLE] * 12, [(50, "a", BUSY)], nodes=names))  # one of twelve
    _, shares = draw_bursts(idleness).axes
    assert [bar.get_height() for bar in shares.patches] == [0] * 6
    assert shares.get_ylim() == (0.0, 1.0)
    assert [text.get_text() for text in shares.texts] == ["0"] * 6


def test_axes_of_lengths_have_labels_however_short_they_are():
    for seconds in (2, 50, 700, 20_000, 90_000, 3_000_000):
        rows = [(100, "a", IDLE), (100 + seconds, "a", BUSY)]
        idleness = characterise(log([BUSY] * 3, rows, end=4_000_000))
        for axis in (draw_lengths(idleness).axes[1].xaxis, draw_widths(idleness).axes[1].yaxis):
            low, high = sorted(axis.get_view_interval())
            labelled = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
            assert labelled, seconds


@pytest.mark.slow
def test_large_machines_get_fewer_labels_than_powers_of_two():
    n_nodes = 200_000
    idleness = characterise(
        bfreplay.NodeEvents.from_arrays(
            [f"n{i:06}" for i in range(n_nodes)], np.zeros(n_nodes, np.int8), [], [], [], 0, HOUR * 1_000_000
        )
    )
    labels = [label.get_text() for label in draw_widths(idleness).axes[1].get_xticklabels()]
    assert labels == ["1", "4", "16", "64", "256", "1,024", "4,096", "16,384", "65,536"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "which", ["never_idle", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("worked", "relative"))]
)
@pytest.mark.filterwarnings("error")
def test_all_pictures_are_drawn_whatever_the_log(which, request, tmp_path):
    written = draw_idleness(request.getfixturevalue(which), tmp_path / "new" / "folder", ("png", "svg"))
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        path.name for path in written
    )
    assert [path.name for path in written] == [f"{name}.{ending}" for name in PICTURES for ending in ("png", "svg")]
    for path in written:
        start = path.read_bytes()[:200]
        assert start.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in start


@pytest.mark.thorough
def test_the_same_log_gives_the_same_bytes_in_another_process(worked, tmp_path):
    code = (
        "import pathlib, sys, bfreplay\n"
        "from bfreplay.datasets.idleness import characterise\n"
        "from bfreplay.report import draw_idleness\n"
        "assert 'matplotlib' not in sys.modules\n"
        "it = characterise(bfreplay.load_events(bfreplay.sample_events_path()))\n"
        "draw_idleness(it, pathlib.Path(sys.argv[1]), ('png', 'svg'))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


@pytest.mark.slow
def test_pictures_that_are_there_stay_unless_they_are_to_be_replaced(worked, tmp_path):
    (tmp_path / "widths.png").write_text("mine")
    for refused in (draw_idleness, lambda _, folder: check_idleness_pictures(folder)):
        with pytest.raises(OutputExistsError, match=r"widths\.png exists already"):
            refused(worked, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["widths.png"]
    assert (tmp_path / "widths.png").read_text() == "mine"
    check_idleness_pictures(tmp_path, ("svg",))
    check_idleness_pictures(tmp_path, overwrite=True)
    draw_idleness(worked, tmp_path, overwrite=True)
    assert (tmp_path / "widths.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_nothing_is_left_when_a_picture_cannot_be_drawn(worked, tmp_path, monkeypatch):
    def fail(_):
        raise RuntimeError("no ink")

    monkeypatch.setattr("bfreplay.report.figures.idleness.BURSTS", Figure("bursts", "Bursts", as_they_are, fail))
    with pytest.raises(RuntimeError, match="no ink"):
        draw_idleness(worked, tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_one_is_refused(worked, tmp_path):
    (tmp_path / "file").write_text("")
    for refused in (draw_idleness, lambda _, folder: check_idleness_pictures(folder)):
        with pytest.raises(InputError, match="folder of the pictures cannot be made"):
            refused(worked, tmp_path / "file")


def test_another_format_is_refused(worked, tmp_path):
    with pytest.raises(InputError, match="another format"):
        draw_idleness(worked, tmp_path / "new", ("pdf",))
    assert not (tmp_path / "new").exists()


def test_ticks_are_written_as_people_write_numbers():
    assert [plain_tick(x, 0) for x in (0, 0.25, 5, 12.0, 2_000)] == ["0", "0.25", "5", "12", "2,000"]
    assert [log_tick(x, 0) for x in (0.05, 1, 2_000)] == ["0.05", "1", "2,000"]
    assert [percent_tick(x, 0) for x in (0, 0.025, 0.07, 1)] == ["0%", "2.5%", "7%", "100%"]
