"""What the pictures of a comparison of runs show, by numbers, and that they are drawn."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.experiments import compare
from bfreplay.report import draw_comparison
from bfreplay.report.figures.run_comparison import differences_over_time, draw_causes, draw_over_time, waterfalls
from bfreplay.result_folders.comparison import CAUSES, RunComparison
from bfreplay.runs.comparison_tables import CAUSE_WORDS
from tests.experiments.run_comparison.little_runs import HOUR, busy_days, endless_jobs, run
from tests.replay.tiny import log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs against a third, two days, an hour a bin."""
    place = tmp_path_factory.mktemp("compared")
    runs = [run(busy_days(), endless_jobs(), t_fwd=t_fwd, out=place / f"t{t_fwd:g}") for t_fwd in (120.0, 20.0, 600.0)]
    compare(*runs, out=place / "found", resamples=200)
    return place / "found"


def test_bars_add_up_to_the_difference_and_the_line_ends_there(folder):
    comparison = RunComparison.load(folder)
    found = differences_over_time(comparison)
    assert [each.run for each in found] == ["B", "C"]
    for mine, pair in zip(found, comparison.record["pairs"], strict=True):
        share = 100 * pair["samples"]["difference"] / pair["samples"]["baseline"]
        assert mine.difference.size == 48
        assert mine.difference.sum() == pytest.approx(share)
        assert mine.cumulative[-1] == pytest.approx(share)
        assert mine.low[-1] < share < mine.high[-1]
        assert (mine.edge_us[0], mine.edge_us[-1]) == (0, 48 * 3_600_000_000)


def test_many_bins_share_bars(folder, tmp_path):
    runs = [folder.parent / name for name in ("t120", "t20")]
    compare(*runs, bin="2min", out=tmp_path / "fine", resamples=100)
    (fine,) = differences_over_time(RunComparison.load(tmp_path / "fine"))
    coarse = differences_over_time(RunComparison.load(folder))[0]
    assert fine.difference.size <= 400
    assert fine.edge_us.size == fine.difference.size + 1
    assert fine.difference.sum() == pytest.approx(coarse.difference.sum())


def test_a_waterfall_goes_from_nothing_to_the_whole_difference(folder):
    comparison = RunComparison.load(folder)
    for steps, pair in zip(waterfalls(comparison), comparison.record["pairs"], strict=True):
        *parts, (_, whole_start, whole, _) = steps.bars
        assert parts[0][1] == whole_start == 0.0
        assert parts[-1][1] + parts[-1][2] == pytest.approx(whole) == pytest.approx(steps.total)
        assert steps.total == pytest.approx(100 * pair["samples"]["difference"] / pair["samples"]["baseline"])
    assert tuple(CAUSE_WORDS) == CAUSES


def test_bars_are_drawn_where_the_waterfall_has_them(folder):
    comparison = RunComparison.load(folder)
    found = waterfalls(comparison)
    figure = draw_causes(found)
    for axes, steps in zip(figure.axes, found, strict=True):
        bars = axes.patches
        assert [bar.get_height() for bar in bars] == pytest.approx([size for _, _, size, _ in steps.bars])
        assert [bar.get_y() for bar in bars] == pytest.approx([start for _, start, _, _ in steps.bars])
        low, high = axes.get_ylim()
        tops = [y for bar in bars for y in (bar.get_y(), bar.get_y() + bar.get_height())]
        assert low < min(tops) <= max(tops) < high
        down = [bar.get_hatch() for bar, size in zip(bars, steps.parts.values(), strict=False) if size < 0]
        assert set(down) <= {"///"}  # told apart without colour
        said = [text.get_text() for text in axes.texts]
        assert len(said) == len(bars)
    assert "t20" in figure.axes[0].get_title(loc="left")


def test_the_band_is_drawn_only_where_there_is_one(folder, tmp_path):
    comparison = RunComparison.load(folder)
    figure = draw_over_time(differences_over_time(comparison))
    assert [len(axes.collections) for axes in figure.axes] == [0, 1, 0, 1]
    short = [run(log(2, [], 3 * HOUR, [0, 1]), endless_jobs(), t_fwd=t_fwd) for t_fwd in (120.0, 20.0)]
    compare(*short, run(log(2, [], 3 * HOUR, [0, 1]), endless_jobs(), max_parallel=1), out=tmp_path / "short")
    comparison = RunComparison.load(tmp_path / "short")
    found = differences_over_time(comparison)
    assert np.isfinite(found[0].low).all()  # no difference at all
    assert np.isnan(found[1].low).all()
    figure = draw_over_time(found)
    assert [len(axes.collections) for axes in figure.axes] == [0, 1, 0, 0]


def test_times_of_a_calendar_are_dates_and_others_count_from_the_start(folder, tmp_path):
    comparison = RunComparison.load(folder)
    found = differences_over_time(comparison)
    axes = draw_over_time(found).axes[-1]
    assert axes.get_xlabel().startswith("time (UTC)")
    metadata = comparison.record["inputs"]["events"]["metadata"]
    inputs = {"events": {"metadata": {**metadata, "time_origin": "relative"}}}
    relative = msgspec.structs.replace(comparison.record, inputs=inputs)
    axes = draw_over_time(differences_over_time(replace(comparison, record=relative))).axes[-1]
    assert axes.get_xlabel() == "days since the start of the window"
    assert axes.get_xlim() == (0.0, 2.0)


@pytest.mark.slow
def test_a_comparison_is_drawn_as_png_and_svg_with_the_same_bytes_each_time(folder):
    written = draw_comparison(folder)
    assert sorted(path.name for path in written) == sorted(
        f"{name}.{ending}" for name in ("differences-over-time", "causes") for ending in ("png", "svg")
    )
    before = [path.read_bytes() for path in written]
    assert all(text.startswith(b"\x89PNG") or b"<?xml" in text[:200] for text in before)
    assert [path.read_bytes() for path in draw_comparison(folder)] == before


@pytest.mark.slow
def test_runs_in_which_nothing_happened_are_drawn_all_the_same(tmp_path):
    nothing = run(log(2, [], 20 * HOUR), endless_jobs())
    compare(nothing, nothing, out=tmp_path / "found", pictures=draw_comparison)
    assert len(list((tmp_path / "found").glob("*.png"))) == 2


def test_what_is_no_comparison_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a comparison folder"):
        draw_comparison(tmp_path)


@pytest.mark.slow
def test_drawing_leaves_pyplot_alone_and_matplotlib_is_loaded_only_to_draw(folder):
    code = (
        "import sys, pathlib, bfreplay.report as report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "report.draw_comparison(pathlib.Path(sys.argv[1]))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
