"""The picture of a tuning: what is drawn is what the record has."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace

from bfreplay.errors import InputError
from bfreplay.report import draw_tuning
from bfreplay.report.figures.tuning import flat_range, forward_time_lines, number_lines, relative_to_best, tuning_figure
from bfreplay.result_folders.tuning import (
    Column,
    GridValues,
    RecommendedPair,
    TunedPart,
    TuningConfig,
    TuningInputs,
    TuningRecord,
)
from bfreplay.result_folders.writing import record_json


def _part(share, measure="samples"):
    return TunedPart(
        window=("2024-07-01T00:00:00Z", "2024-07-02T00:00:00Z"),
        window_us=(0, 86_400_000_000),
        duration_s=86_400.0,
        idle_nodes=3.0,
        n_pool_events=100,
        measure=measure,
        share=share,
        value=share,
        rescales=[],
        share_of_bound=[],
    )


def _column(number, *flat):
    return Column(max_parallel=number, t_fwd=60.0, best_t_fwd=60.0, share=1.0, flat=flat)


@pytest.fixture
def record():
    return TuningRecord(
        schema_version=1,
        versions={},
        config=TuningConfig(options={}, train=0.67, tolerance=0.01, flat=(0.005, 0.01)),
        inputs=TuningInputs(events=[], jobs=[], n_jobs=None),
        grid=GridValues(t_fwd=[60.0, 120.0, 300.0, "auto"], max_parallel=[5, 20]),
        recommended=RecommendedPair(t_fwd=120.0, max_parallel=20),
        columns=[_column(5, (60.0, 60.0), (60.0, 60.0)), _column(20, (60.0, 120.0), (60.0, 120.0))],
        parts={
            "tuning": _part([[0.5, 0.996], [0.4, 1.0], [0.3, 0.9], [0.45, 0.99]]),
            "validation": _part([[0.6, 1.0], [0.3, 0.98], [0.3, 0.9], [0.3, 0.8]]),
        },
        validation=None,
        answer=["Use it."],
        warnings=[],
        notes=[],
    )


def test_a_line_for_each_part_and_number_relative_to_its_own_best(record):
    lines = forward_time_lines(record)
    assert [(line.part, line.max_parallel) for line in lines] == [
        ("tuning", 5),
        ("tuning", 20),
        ("validation", 5),
        ("validation", 20),
    ]
    assert lines[0].t_fwd_s.tolist() == [60, 120, 300]
    assert lines[0].share == pytest.approx([100, 80, 60])
    assert lines[0].auto == pytest.approx(90)
    assert lines[3].share == pytest.approx([100, 98, 90])
    assert lines[3].every == pytest.approx([100, 98, 90, 80])


def test_a_column_of_nothing_is_nothing():
    assert relative_to_best(np.array([[0.0, 2.0], [0.0, 1.0]])).tolist() == [[0, 1], [0, 0.5]]


def test_numbers_of_jobs_are_compared_at_the_recommended_t_fwd_over_the_whole_grid(record):
    tuned, validated = number_lines(record)
    assert tuned.max_parallel.tolist() == [5, 20]
    assert tuned.share == pytest.approx([40, 100])
    assert validated.share == pytest.approx([30, 98])


def test_what_is_drawn_is_what_the_lines_have(record):
    left, right = tuning_figure(record).axes
    drawn = [line for line in left.lines if len(line.get_xdata()) == 3]
    for line, expected in zip(drawn, forward_time_lines(record), strict=True):
        assert line.get_xdata().tolist() == expected.t_fwd_s.tolist()
        assert line.get_ydata().tolist() == expected.share.tolist()
        assert line.is_dashed() == (expected.part == "validation")
    assert drawn[0].get_color() == drawn[2].get_color() != drawn[1].get_color()
    assert drawn[0].get_marker() != drawn[1].get_marker()  # told apart without colour
    assert [line.get_ydata().tolist() for line in right.lines[:2]] == [
        line.share.tolist() for line in number_lines(record)
    ]
    low, high = left.get_ylim()
    assert low < 60
    assert high == 100


def test_the_recommendation_is_marked_and_the_flat_range_shaded(record):
    left, right = tuning_figure(record).axes
    stars = [line for axes in (left, right) for line in axes.lines if line.get_marker() == "*"]
    assert [(*star.get_xdata(), *star.get_ydata()) for star in stars] == [(120, 100), (20, 100)]
    assert flat_range(record) == (60.0, 120.0)
    (shade,) = left.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (60.0, 120.0)


def test_auto_stands_apart_at_the_right_and_may_be_recommended(record):
    recommended = RecommendedPair(t_fwd="auto", max_parallel=20)
    left, right = tuning_figure(replace(record, recommended=recommended)).axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["60", "120", "300", "auto"]
    (star,) = [line for line in left.lines if line.get_marker() == "*"]
    assert star.get_xdata()[0] > 300
    assert star.get_ydata()[0] == pytest.approx(99)
    assert "auto" in right.get_xlabel()


def test_grids_of_a_single_value_are_drawn(record):
    for t_fwd, flat in ((60.0, (60.0, 60.0)), ("auto", None)):
        small = replace(
            record,
            grid=GridValues(t_fwd=[t_fwd], max_parallel=[20]),
            recommended=RecommendedPair(t_fwd=t_fwd, max_parallel=20),
            columns=[_column(20, flat, flat)],
            parts={name: _part([[1.0]], "finish") for name in ("tuning", "validation")},
        )
        figure = tuning_figure(small)
        figure.draw_without_rendering()
        assert "speed" in figure.axes[0].get_ylabel()


def test_a_validation_of_nothing_is_drawn(record):
    parts = {**record.parts, "validation": _part([[0.0, 0.0]] * 4)}
    tuning_figure(replace(record, parts=parts)).draw_without_rendering()


@pytest.mark.slow
def test_a_folder_gets_png_and_svg_with_the_same_bytes_each_time(record, tmp_path):
    with pytest.raises(InputError, match="not a tuning folder"):
        draw_tuning(tmp_path)
    (tmp_path / "tuning.json").write_text(record_json(record, "it"))
    written = draw_tuning(tmp_path)
    assert [path.name for path in written] == ["tuning.png", "tuning.svg"]
    before = [path.read_bytes() for path in written]
    assert before[0].startswith(b"\x89PNG")
    assert b"<?xml" in before[1][:200]
    assert [path.read_bytes() for path in draw_tuning(tmp_path)] == before


def test_matplotlib_is_loaded_only_to_draw():
    code = "import sys, bfreplay.report, bfreplay.commands.tune\nassert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
