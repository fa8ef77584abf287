"""What the pictures of a comparison show, by numbers, and that they are drawn."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.formulation_lab.pairs import EXACT
from bfreplay.experiments.formulation_lab.summary import (
    ProfileStep,
    SizeBin,
    performance_profile,
    summarise,
    time_by_size,
)
from bfreplay.experiments.formulation_lab.trials import Outcome
from bfreplay.report import draw_lab
from bfreplay.report.figures import formulation_lab as figures_lab
from bfreplay.report.figures.formulation_lab import (
    ONE_PANEL,
    OUTCOMES,
    draw_outcomes,
    draw_profile,
    draw_time_by_size,
    looks,
    outcome_shares,
    profile_curves,
    time_by_size_curves,
)
from bfreplay.result_folders.lab import LabResult, SummaryRow
from bfreplay.result_folders.records import LAB, table_of
from bfreplay.result_folders.writing import write_result
from tests.experiments.formulation_lab.worked import ANSWERS, PAIRS, answer, lab_record


def _save(folder, answers, pairs):
    folder.mkdir(exist_ok=True)
    sizes = {decision: (3, 5 * (decision + 1)) for decision in {each.decision for each in answers}}
    tables = {
        "summary": table_of(summarise(answers, pairs, 1.0), SummaryRow),
        "profile": table_of(performance_profile(answers, pairs), ProfileStep),
        "time_by_size": table_of(time_by_size(answers, sizes, pairs), SizeBin),
    }
    write_result(folder, lab_record(taken=len(sizes)), tables, LAB)
    return folder


@pytest.fixture
def worked(tmp_path):
    return _save(tmp_path, ANSWERS, PAIRS)


@pytest.fixture
def many(tmp_path):
    """Five formulations on five back ends, which differ in speed; the last back end crashes at times."""
    pairs = ["exact", *(f"f{f} on b{b}" for f in range(5) for b in range(5))]
    answers = [answer(d, "exact", 1e-4) for d in range(4)]
    for k, pair in enumerate(pairs[1:]):
        for d in range(4):
            outcome = "crashed" if k % 5 == 4 and d == 3 else "proven"
            answers.append(answer(d, pair, 1e-3 * (k + 1) * (d + 1), answers[0].outcome.__class__(outcome)))
    return _save(tmp_path, answers, pairs)


def test_profiles_are_those_of_the_table_best_first_and_go_on_to_the_last_ratio(worked):
    curves = profile_curves(LabResult.load(worked))
    assert [curve.pair for curve in curves] == ["a on x", "b on x"]
    a, b = curves
    assert a.x.tolist() == pytest.approx([1, 3, 4])
    assert a.y.tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert b.x.tolist() == pytest.approx([1, 4, 4])
    assert b.y.tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert [curve.pair for curve in profile_curves(LabResult.load(worked), "all")] == ["exact", "a on x", "b on x"]


def test_times_lie_over_the_geometric_middle_of_their_bin(worked):
    curves = {curve.pair: curve for curve in time_by_size_curves(LabResult.load(worked))}
    a = curves["a on x"]  # 15 in 8 to 16, 30 in 16 to 32; nothing proven at 45
    assert a.x.tolist() == pytest.approx([np.sqrt(8 * 16), np.sqrt(16 * 32)])
    assert a.y.tolist() == pytest.approx([0.002, 0.012])
    assert curves["exact"].y.tolist() == pytest.approx([0.001, 0.001, 0.002])


def test_shares_of_outcomes_add_up_and_the_best_come_first(worked, tmp_path):
    backwards = _save(tmp_path / "backwards", ANSWERS, PAIRS[::-1])
    for folder in (worked, backwards):
        pairs, shares, n_decisions = outcome_shares(LabResult.load(folder))
        assert n_decisions == 3
        assert pairs == ["exact", "a on x", "b on x"]
        counts = [
            {name: round(3 * share, 9) for name, share in zip(OUTCOMES, row, strict=True) if share} for row in shares
        ]
        assert counts == [{"proven": 3}, {"proven": 2, "feasible": 1}, {"proven": 2, "crashed": 1}]


def test_pictures_know_every_outcome_and_the_exact_solver():
    assert sorted(OUTCOMES) == sorted(Outcome)
    assert figures_lab.EXACT == EXACT


def test_bars_are_stacked_to_the_whole_and_profiles_are_steps_to_the_edge(worked):
    lab = LabResult.load(worked)
    (axes,) = draw_outcomes(outcome_shares(lab)).axes
    ends: dict[int, float] = {}
    for bar in axes.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        assert bar.get_x() == pytest.approx(ends.get(row, 0.0))
        ends[row] = bar.get_x() + bar.get_width()
    assert list(ends.values()) == pytest.approx([1, 1, 1])
    (axes,) = draw_profile((profile_curves(lab), 3)).axes
    assert {line.get_drawstyle() for line in axes.get_lines()} == {"steps-post"}
    assert {line.get_xdata()[-1] for line in axes.get_lines()} == {axes.get_xlim()[1]}


@pytest.mark.slow
def test_a_lab_is_drawn_as_png_and_svg(worked):
    written = draw_lab(worked)
    assert sorted(path.name for path in written) == sorted(
        f"{name}.{ending}" for name in ("performance-profile", "time-by-size", "outcomes") for ending in ("png", "svg")
    )
    for path in written:
        start = path.read_bytes()[:200]
        assert start.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in start


def test_few_pairs_share_a_panel_and_many_get_one_a_formulation(worked, many):
    lab = LabResult.load(many)
    few = draw_profile((profile_curves(lab)[:ONE_PANEL], 4))
    assert len(few.axes) == 1
    figure = draw_profile((profile_curves(lab), 4))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:5] == [f"f{k}" for k in range(5)]
    for axes in figure.axes[:5]:
        labelled = [line.get_label() for line in axes.get_lines() if not line.get_label().startswith("_")]
        assert sorted(labelled) == [f"b{k}" for k in range(5)]
        assert len(axes.get_lines()) == 25
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"b{k}" for k in range(5)]
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    for text, handle in zip(legend.get_texts(), legend.get_lines(), strict=True):  # the same dashes and colour
        assert handle._unscaled_dash_pattern == drawn[text.get_text()]._unscaled_dash_pattern
        assert handle.get_color() == drawn[text.get_text()].get_color()


def test_the_axis_of_a_profile_is_logarithmic_from_one_and_time_by_size_is_in_milliseconds(worked):
    (axes,) = draw_profile((profile_curves(LabResult.load(worked)), 3)).axes
    assert axes.get_xscale() == "log"
    assert axes.get_xlim()[0] == 1.0
    curves = time_by_size_curves(LabResult.load(worked))
    (axes,) = draw_time_by_size(curves).axes
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.get_lines()}
    assert lines["a on x"] == pytest.approx([2.0, 12.0])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_only_outcomes_that_occur_are_in_the_legend(worked):
    figure = draw_outcomes(outcome_shares(LabResult.load(worked)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["proven", "feasible", "crashed"]


def test_lines_differ_without_colour(many):
    looked = looks([f"f{k}" for k in range(6)], [f"b{k}" for k in range(6)])
    assert len({(look["linestyle"], look["marker"]) for look in looked.values()}) == 36
    assert len({look["color"] for look in looked.values()}) == 6


@pytest.mark.slow
def test_a_lab_in_which_nothing_was_proven_is_drawn_all_the_same(tmp_path):
    failed = answer(0, "a on x", 1.0, ANSWERS[-1].outcome)
    assert len(draw_lab(_save(tmp_path, [failed], ["a on x"]))) == 6


def test_what_is_no_lab_folder_is_refused(worked, tmp_path):
    with pytest.raises(InputError, match="not a lab folder"):
        LabResult.load(tmp_path / "nowhere")
    (worked / "lab.json").write_text(json.dumps({"schema_version": 0}))
    with pytest.raises(InputError, match="another schema version"):
        LabResult.load(worked)


def test_a_changed_table_is_refused_by_name(worked):
    pq.write_table(pq.read_table(worked / "profile.parquet").slice(1), worked / "profile.parquet")
    with pytest.raises(InputError, match=r"belongs to another lab[\s\S]*profile\.parquet"):
        LabResult.load(worked).check()


def test_a_record_without_an_entry_is_refused_with_the_command_that_makes_it_again(worked):
    record = json.loads((worked / "lab.json").read_text())
    del record["sampling"]["taken"]
    (worked / "lab.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"sampling[\s\S]*make it again: 'bfreplay compare formulations --out'"):
        LabResult.load(worked)


@pytest.mark.thorough
def test_drawing_leaves_pyplot_alone_and_matplotlib_is_loaded_only_to_draw(worked):
    code = (
        "import sys, pathlib, bfreplay.report as report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "report.draw_lab(pathlib.Path(sys.argv[1]))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(worked)], check=True)
