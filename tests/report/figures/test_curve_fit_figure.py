"""What the picture of a fit shows, by numbers, and that it is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.report.figures.curve_fit import FIT, fit_curves
from bfreplay.report.figures.picture_files import save_picture
from bfreplay.scalability import Amdahl, UniversalScalability, fit_all
from tests.scalability.test_choice import STEPS
from tests.scalability.test_fitting import DESIGN, noisy

STEP_COUNTS = [1, 2, 4, 8, 16, 32] * 2


@pytest.fixture(scope="module")
def falling():
    rates = noisy(UniversalScalability(100.0, 0.03, 5e-4), DESIGN, 0.03, np.random.default_rng(0))
    return fit_all(DESIGN, rates, max_nodes=128)


@pytest.fixture(scope="module")
def lawless():
    return fit_all(STEP_COUNTS, STEPS * np.repeat([1.01, 0.99], 6), max_nodes=64)


def test_the_best_law_its_band_and_the_residuals_are_those_of_the_fit(falling):
    curves = fit_curves("mine", falling)
    best = falling.best
    assert curves.laws[0].is_best
    assert curves.laws[0].label == "usl = communication-strong"
    assert curves.laws[0].rates == pytest.approx(best.curve.rates(curves.nodes))
    assert curves.laws[0].off == pytest.approx(np.zeros(len(curves.nodes)), abs=1e-12)
    assert curves.residuals == pytest.approx(best.residuals)
    assert (curves.nodes[0], curves.nodes[-1], curves.last_measured) == (1, 128, 64)
    low, high = best.band(np.array([1.0, 128.0]))
    assert curves.band_low[[0, -1]] == pytest.approx(low)
    assert curves.band_high[[0, -1]] == pytest.approx(high)


@pytest.mark.slow
def test_laws_that_are_one_line_are_drawn_once():
    rates = noisy(Amdahl(100.0, 0.05), DESIGN, 0.0, np.random.default_rng(0))
    labels = [law.label for law in fit_curves("mine", fit_all(DESIGN, rates)).laws]
    assert labels[0].startswith("amdahl = ")
    assert set(labels[0].split(" = ")) == {"amdahl", "communication-weak", "usl", "communication-strong"}
    assert sorted(labels[1:]) == ["gustafson", "power"]


def test_without_a_law_the_means_are_drawn_up_to_the_last_count(lawless):
    curves = fit_curves("mine", lawless)
    assert curves.nodes[-1] == 32
    assert len(curves.band_nodes) == 0
    assert curves.used[-1] == pytest.approx(90.0, rel=1e-3)
    assert curves.residuals == pytest.approx(np.tile([0.01, -0.01], 6), abs=1e-3)
    assert not any(law.is_best for law in curves.laws)


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_the_figure_says_what_is_used_and_where_measurements_end(falling, lawless):
    said = texts(FIT.draw_from("cost $1 or $2", falling))
    assert "cost $1 or $2: usl = communication-strong" in said
    assert "nodes; dotted: the last measured count" in said
    assert {"measured", "95 % band"} <= set(said)
    said = texts(FIT.draw_from("x", lawless))
    assert "x: no law fits" in said
    assert "means, as points" in said
    assert "nodes" in said


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_fit_gives_the_same_picture(falling, tmp_path, ending):
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    for file in (one, other):
        save_picture(FIT.draw_from("mine", falling), file)
    assert one.read_bytes() == other.read_bytes()
    assert one.stat().st_size > 10_000


@pytest.mark.slow
def test_a_picture_is_kept_unless_asked_and_other_formats_are_refused(falling, tmp_path):
    file = tmp_path / "fit.png"
    file.write_text("mine")
    with pytest.raises(OutputExistsError):
        save_picture(FIT.draw_from("x", falling), file)
    assert file.read_text() == "mine"
    save_picture(FIT.draw_from("x", falling), file, overwrite=True)
    with pytest.raises(InputError, match="another format"):
        save_picture(FIT.draw_from("x", falling), tmp_path / "fit.pdf")


def test_the_figure_says_below_which_count_nothing_was_measured(falling):
    assert "nothing was measured" not in FIT.draw_from("x", falling).axes[1].get_xlabel()
    choice = fit_all([64, 128, 256], [20.8, 41.0, 80.9])
    assert "nothing was measured below 64 nodes" in FIT.draw_from("x", choice).axes[1].get_xlabel()
