"""Measurements far from their repeats: which are told, and how."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.scalability import Measurements, fit_all
from bfreplay.scalability.choice import outliers
from bfreplay.scalability.fit_text import remarks, render

NODES = [1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8]
RATES = [100.0, 99.0, 101.0, 190.0, 192.0, 19.0, 370.0, 366.0, 371.0, 700.0, 690.0, 705.0]


def test_a_rate_a_tenth_of_its_repeats_is_told_by_row_count_and_distance():
    (found,) = outliers(Measurements(NODES, RATES))
    assert (found.row, found.nodes, found.rate, found.siblings) == (6, 2, 19.0, (190.0, 192.0))
    assert found.middle == pytest.approx(np.sqrt(190 * 192))
    # distances from medians without the medians' own: log(101/100), log(100/99), log(192/190), log(190/19), ...
    assert found.scatter == pytest.approx(
        1.4826
        * sorted(
            abs(np.log(x)) for x in (101 / 100, 100 / 99, 192 / 190, 10, 371 / 370, 370 / 366, 705 / 700, 700 / 690)
        )[3]
    )


def test_it_is_said_before_the_choice_and_nothing_is_dropped():
    chosen = fit_all(NODES, RATES)
    assert len(chosen.measurements.nodes) == len(NODES)
    said = " ".join(render("x", chosen).split())
    assert said.startswith("Warning: x: at 2 nodes 19 samples/s (row 6) is 90 % below the 191 of its repeats;")
    assert said.index("row 6") < said.index("x: 12 measurements")
    assert "Measure next" not in said
    assert any(line.startswith("warning: at 2 nodes 19 samples/s (row 6)") for line in remarks(chosen))
    assert chosen.to_dict()["outliers"][0]["row"] == 6


def test_of_two_that_lie_apart_both_are_named():
    nodes, rates = [1, 1, 2, 2, 4, 4, 8, 8], [100.0, 101.0, 190.0, 19.0, 370.0, 366.0, 700.0, 690.0]
    assert [each.row for each in outliers(Measurements(nodes, rates))] == [3, 4]
    said = " ".join(render("x", fit_all(nodes, rates)).split())
    assert "at 2 nodes lie far apart, 19 samples/s (row 4) and 190 (row 3), 10.0 times that" in said
    assert "Measure a third time" in said


def test_rows_are_those_of_the_file():
    assert outliers(Measurements(NODES, RATES, "x", [f"line {i}" for i in range(2, 14)]))[0].row == "line 7"


def test_two_bad_measurements_do_not_hide_each_other():
    rates = [*RATES[:6], 37.0, *RATES[7:]]
    assert [each.row for each in outliers(Measurements(NODES, rates))] == [6, 7]


@pytest.mark.parametrize(
    "rates", [[100.0, 118.0, 100.0] + RATES[:3] * 3, [100.0, 150.0, 100.0, 190.0, 130.0, 240.0, 370.0, 500.0, 300.0]]
)
def test_what_is_near_or_scatters_like_all_others_is_not_told(rates):
    assert outliers(Measurements(NODES[: len(rates)], rates)) == ()


def test_without_repeats_nothing_is_told():
    assert outliers(Measurements([1, 2, 4], [10.0, 1.0, 40.0])) == ()


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_normal_scatter_seldom_raises_an_alarm(noise):
    rng = np.random.default_rng(7)
    tables = [np.repeat([1.0, 2.0, 4.0, 8.0, 16.0], 3) * np.exp(noise * rng.standard_normal(15)) for _ in range(400)]
    alarms = sum(bool(outliers(Measurements(np.repeat([1, 2, 4, 8, 16], 3), each))) for each in tables)
    assert alarms <= 12
