"""The choice among laws, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.scalability import (
    Amdahl,
    CommunicationWeak,
    Gustafson,
    MeasuredLaw,
    Measurements,
    PowerLaw,
    TabulatedCurve,
    UniversalScalability,
    fit,
    fit_all,
)
from bfreplay.scalability.choice import choose
from bfreplay.scalability.fit_text import headline, remarks, render, warnings
from bfreplay.scalability.law import Scaling
from tests.scalability.test_fitting import COUNTS, DESIGN, noisy

# halfway between a line and a power of nodes, with repeats that scatter evenly
BETWEEN = np.sqrt(Gustafson(10.3, 0.15).rates(DESIGN) * PowerLaw(10.0, 0.96).rates(DESIGN)) * np.tile(
    np.exp([-0.04, 0.0, 0.04]), 7
)
STEPS = np.array([10.0, 19.0, 28.0, 28.0, 70.0, 90.0] * 2)


def test_the_law_behind_the_measurements_is_chosen():
    chosen = fit_all(DESIGN, noisy(UniversalScalability(100.0, 0.03, 5e-4), DESIGN, 0.03, np.random.default_rng(0)))
    assert chosen.best.curve.law == "usl"
    assert chosen.curve is chosen.best.curve
    assert chosen.same_curve == ("communication-strong",)
    assert chosen.tie is None
    assert np.diff([fit.aicc for fit in chosen.fits]).min() > -1e-6


def test_laws_that_cannot_be_told_apart_are_named_with_the_count_to_measure_next():
    chosen = fit_all(DESIGN, BETWEEN, "weak", max_nodes=256)
    tie = chosen.tie
    assert tie.laws == ("power", "gustafson", "communication-weak")
    rates_there = {fit.curve.law: float(fit.curve.rates([256])[0]) for fit in chosen.fits}
    first = rates_there[tie.laws[0]]
    assert tie.apart == pytest.approx(max(abs(rates_there[name] / first - 1) for name in tie.laws[1:]))
    assert 1 <= tie.measure_at <= 256
    said = " ".join(warnings(chosen))
    assert "power, gustafson and communication-weak cannot be told apart" in said
    assert "At 256 nodes they differ by up to" in said
    assert f"Measure next at {tie.measure_at} nodes" in said


@pytest.mark.parametrize("last", [40, 256])
def test_the_measurement_that_is_advised_tells_the_laws_apart(last):
    """Measured there, of all counts, the wrong law loses most: by brute force over a coarse choice of counts."""
    chosen = choose(Measurements(DESIGN, BETWEEN), [Gustafson, PowerLaw], last)
    laws = {fit.curve.law: fit for fit in chosen.fits}

    def loss(count):
        lost = 0.0
        for right, wrong in (("gustafson", "power"), ("power", "gustafson")):
            more = [*BETWEEN, float(laws[right].curve.rates([count])[0])]
            lost += fit([*DESIGN, count], more, wrong).scatter ** 2 * (len(more) - 2)
            lost -= laws[wrong].scatter ** 2 * (len(BETWEEN) - 2)
        return lost

    most = max(loss(count) for count in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 64, 128, 256) if count <= last)
    assert loss(chosen.tie.measure_at) >= 0.95 * most


def test_where_no_law_fits_the_means_are_used_and_it_is_said():
    chosen = fit_all([1, 2, 4, 8, 16, 32] * 2, STEPS * np.repeat([1.01, 0.99], 6), max_nodes=64)
    assert chosen.best is None
    assert isinstance(chosen.curve, TabulatedCurve)
    assert chosen.curve.nodes == (0, 1, 2, 4, 8, 16, 32)
    assert chosen.curve.values[3] == pytest.approx(28.0, rel=1e-3)
    assert "no law fits: the means as points" in headline(chosen)
    assert "They end at 32 nodes: jobs cannot have more. Measure at 64 nodes." in warnings(chosen)[0]
    assert {fit.fits for fit in chosen.fits} == {False}


def test_a_law_that_is_insisted_on_is_used_and_its_lack_of_fit_said():
    measured = Measurements([1, 2, 4, 8, 16, 32] * 2, STEPS * np.repeat([1.01, 0.99], 6))
    chosen = choose(measured, [Amdahl], insist=True)
    assert chosen.best.curve.law == "amdahl"
    assert "amdahl does not fit" in warnings(chosen)[0]


def test_weak_or_strong_measurements_leave_out_the_laws_of_the_other():
    rates = Amdahl(10.0, 0.05).rates(COUNTS)
    assert {fit.curve.law for fit in fit_all(COUNTS, rates, "weak").fits}.isdisjoint({"amdahl", "communication-strong"})
    strong = fit_all(COUNTS, rates, Scaling.STRONG)
    assert {fit.curve.law for fit in strong.fits}.isdisjoint({"gustafson", "communication-weak"})
    assert "the global batch is the same at every node count" in " ".join(render("x", strong).split())
    either = fit_all(COUNTS, UniversalScalability(10.0, 0.05, 0.01).rates(COUNTS))
    assert "the global batch grows with the nodes" in " ".join(render("x", either, Scaling.WEAK).split())


def test_laws_that_cannot_fall_are_left_out_with_the_count():
    rates = noisy(UniversalScalability(100.0, 0.02, 2e-3), DESIGN, 0.03, np.random.default_rng(6))
    chosen = fit_all(DESIGN, rates)
    assert [left.law for left in chosen.left_out] == ["amdahl", "gustafson", "power", "communication-weak"]
    assert "the rates fall from 32 nodes on, which amdahl cannot" in chosen.left_out[0].reason
    assert "amdahl is left out: the rates fall from 32 nodes on" in render("x", chosen)


def test_rates_that_fall_over_the_whole_range_are_refused():
    with pytest.raises(InputError, match="over the whole range"):
        fit_all([1, 2, 4], [9.0, 5.0, 2.0])


def test_too_few_measurements_for_a_choice_give_the_plainest_law_and_a_warning():
    chosen = fit_all([1, 2, 4, 8], [10.0, 19.0, 35.0, 61.0])
    assert len(chosen.best.curve.parameters) == 2
    said = " ".join(warnings(chosen))
    assert "too few measurements to choose a law" in said
    assert "no node count was measured twice" in said
    assert json.loads(json.dumps(chosen.to_dict()))["fits"][0]["aicc"] is None


def test_two_measurements_are_no_law_but_points():
    chosen = fit_all([1, 2], [10.0, 19.0])
    assert chosen.fits == ()
    assert chosen.curve.values == pytest.approx((0.0, 10.0, 19.0))
    said = " ".join(render("x", chosen).split())
    assert "amdahl has 2 parameters: too many for 2 measurements" in said
    assert "too few for any law (3 at 2 counts or more are needed): the means as points" in said
    assert "too few measurements for any law: 2 at 2 node counts" in said
    assert "Measure 1, 2, 4, 8, ... nodes, each at least twice" in said
    assert "no law fits" not in said


def test_a_law_beyond_the_measurements_comes_with_its_band_there():
    chosen = fit_all(DESIGN, noisy(Amdahl(10.0, 0.02), DESIGN, 0.03, np.random.default_rng(0)), "strong", 256)
    low, high = chosen.best.band(np.array([256.0]))
    said = " ".join(warnings(chosen))
    assert "256 nodes lie beyond the 64 measured" in said
    assert "Measure at 256 nodes to know" in said
    assert f"{low[0]:.4g} to {high[0]:.4g}" in said
    assert not any("beyond" in each for each in warnings(fit_all(DESIGN, Amdahl(10.0, 0.02).rates(DESIGN))))


def doubts(nodes, rates):
    return [each for each in warnings(fit_all(nodes, rates)) if "the rates " in each]


def test_rates_that_hardly_rise_are_called_seconds_per_step_first_of_all_warnings():
    found = warnings(fit_all([1, 1, 2, 2, 8, 8], [0.91, 0.92, 0.93, 0.935, 0.97, 0.975]))
    assert found[0] == (
        "the rates hardly rise: 0.9725 samples/s on 8 nodes are 1.06 times the 0.915 on 1; are these seconds per step "
        "(seconds_per_step), rates of one GPU (samples_per_s_per_gpu), or is the batch that of one GPU (batch_per_gpu)?"
    )
    assert doubts([1, 2, 4, 8], [10, 10.2, 9.9, 9.8])
    assert doubts([1, 2, 4, 8], [10, 40, 150, 540]) == [
        "the rates rise far more than the nodes: 540 samples/s on 8 nodes are 54 times the 10 on 1; is the batch that "
        "of all GPUs together (global_batch), or are the rates those of all GPUs together (samples_per_s)?"
    ]
    assert not doubts([1, 2, 4, 8], [10, 21, 43, 88])


def test_rates_that_level_off_or_fall_behind_a_peak_are_not_doubted():
    assert doubts([1, 2, 4, 8], [10.0, 16.0, 22.0, 26.0]) == []
    assert doubts([1, 2, 4, 8, 16], [10.0, 19.0, 34.0, 30.0, 12.0]) == []


def test_remarks_hold_every_interval():
    chosen = fit_all(DESIGN, noisy(Amdahl(10.0, 0.02), DESIGN, 0.03, np.random.default_rng(0)))
    assert [line.split(":")[0] for line in remarks(chosen)[2:4]] == ["rate_1", "serial"]


FROM_64 = [64.0, 128.0, 256.0, 512.0, 1024.0]
MANY_NODES = np.array([20.8, 41.0, 80.9, 159.0, 308.0])


def test_what_a_law_gives_below_the_smallest_measured_count_is_warned_of():
    chosen = choose(Measurements(FROM_64 * 2, [*(0.98 * MANY_NODES), *(1.02 * MANY_NODES)]), [PowerLaw])
    (said,) = [each for each in warnings(chosen) if "nothing was measured below" in each]
    on_1 = chosen.curve.rates([1])[0]
    assert said.startswith("nothing was measured below 64 nodes: jobs that name no min_nodes begin there.")
    assert f"On 1 node power gives {on_1:.4g} samples/s. Measure at fewer nodes" in said
    assert (chosen.min_nodes, chosen.to_dict()["min_nodes"]) == (64, 64)
    assert chosen.measured_curve == MeasuredLaw(chosen.curve, (64, 1024))


def test_a_law_that_gives_more_below_the_smallest_measured_count_is_called_wrong_there():
    law = CommunicationWeak(175.0, 260.0, 0.0)
    chosen = choose(Measurements(FROM_64 * 2, [*law.rates(FROM_64)] * 2), [CommunicationWeak])
    said = " ".join(warnings(chosen))
    on_1 = chosen.curve.rates([1])[0]
    assert on_1 > 4 * 21.84
    assert f"gives {on_1:.4g} samples/s, and on some count more than the 21.84 on 64: it cannot be right" in said


def test_below_the_first_of_means_as_points_the_straight_line_is_told():
    chosen = choose(Measurements([64, 128], [20.8, 41.0]), [])
    assert chosen.measured_curve.measured == (64, 128)
    assert "On 1 node a straight line to (0, 0) gives 0.325 samples/s" in " ".join(warnings(chosen))


def test_measurements_from_one_node_up_raise_no_such_warning():
    assert "nothing was measured below" not in " ".join(warnings(fit_all([1, 2, 4, 8], [10.0, 19.0, 35.0, 61.0])))
