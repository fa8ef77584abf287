"""What is believed of a curve: exact where measured, a law elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.policies.learning.belief import LINEAR, Assumed, Belief, Shape

UNKNOWN = Assumed(rate=5.0, worth=2.0, shape=LINEAR)


def _learnt(*points: tuple[int, float]) -> Belief:
    belief = Belief()
    for count, rate in points:
        belief.learn(count, rate, rate)
    return belief


def test_without_a_measurement_all_is_assumed():
    rate, worth = Belief().tables(4, Assumed(5.0, 2.0, Shape(0.5, 0.0)))
    assert rate.tolist() == pytest.approx([0.0, 5.0, 10 / 1.5, 15 / 2])
    assert worth.tolist() == pytest.approx([0.0, 2.0, 4 / 1.5, 6 / 2])


def test_one_count_gives_the_scale_of_the_assumed_shape():
    assert _learnt((2, 8.0)).tables(5, UNKNOWN)[0].tolist() == [0.0, 4.0, 8.0, 12.0, 16.0]
    # Amdahl, half of it serial: 1, 4/3, 3/2 for one node, and 8 samples/s on two
    rate, _ = _learnt((2, 8.0)).tables(4, UNKNOWN._replace(shape=Shape(0.5, 0.0)))
    assert rate.tolist() == pytest.approx([0.0, 6.0, 8.0, 9.0])


def test_two_counts_give_amdahls_law():
    # rate_1 = 10 and 1/3 serial: 10 n / (1 + (n - 1) / 3)
    rate, _ = _learnt((1, 10.0), (4, 20.0)).tables(8, UNKNOWN)
    assert rate.tolist() == pytest.approx([0.0] + [10 * n / (1 + (n - 1) / 3) for n in range(1, 8)])


def test_three_counts_of_the_universal_scalability_law_give_it_everywhere():
    law = Shape(0.03, 0.002)
    nodes = np.arange(65.0)
    truth = 7.0 * law.relative(nodes)
    rate, _ = _learnt(*((n, float(truth[n])) for n in (3, 20, 50))).tables(65, UNKNOWN)
    assert rate == pytest.approx(truth, rel=1e-6)


def test_a_dent_bends_the_law_between_its_neighbours_alone():
    # linear but for 4 nodes, which make 30 instead of 40: the law is steeper or flatter, the points are met
    points = {1: 10.0, 2: 20.0, 4: 30.0, 8: 80.0, 16: 160.0}
    rate, _ = _learnt(*points.items()).tables(17, UNKNOWN)
    assert [rate[n] for n in points] == list(points.values())
    assert 20.0 < rate[3] < 30.0
    assert 30.0 < rate[6] < 80.0


def test_beyond_the_largest_count_the_law_goes_on_from_what_was_measured_there():
    belief = _learnt((1, 10.0), (2, 20.0), (4, 30.0), (8, 80.0))
    rate, _ = belief.tables(17, UNKNOWN)
    shape = belief.shape
    assert shape is not None
    law = shape.relative(np.arange(17.0))
    assert rate[9:] == pytest.approx(80.0 * law[9:] / law[8])


def test_repeated_measurements_are_averaged():
    belief = _learnt((2, 8.0), (2, 12.0), (2, 13.0))
    assert belief.point(2) == (11.0, 11.0)
    assert belief.tables(3, UNKNOWN)[0].tolist() == [0.0, 5.5, 11.0]


def test_the_objective_keeps_its_ratio_to_the_rate_between_and_beyond_the_measured_counts():
    belief = Belief()
    belief.learn(2, 20.0, 40.0)  # worth twice the rate
    belief.learn(6, 60.0, 60.0)  # as much as the rate
    rate, worth = belief.tables(8, UNKNOWN)
    assert rate.tolist() == pytest.approx([10.0 * n for n in range(8)])
    assert worth.tolist() == pytest.approx([0.0, 20.0, 40.0, 1.75 * 30, 1.5 * 40, 1.25 * 50, 60.0, 70.0])


def test_a_count_without_progress_says_nothing_about_others():
    belief = Belief()
    belief.learn(2, 0.0, 0.0)
    assert belief.shape is None
    rate, worth = belief.tables(4, UNKNOWN)
    assert rate.tolist() == [0.0, 5.0, 0.0, 15.0]
    assert worth.tolist() == [0.0, 2.0, 0.0, 6.0]
    belief.learn(4, 4.0, 4.0)
    rate, worth = belief.tables(5, UNKNOWN)
    assert (rate[2], worth[2]) == (0.0, 0.0)
    assert (rate[4], worth[4]) == (4.0, 4.0)
    assert np.isfinite(rate).all()
    assert np.isfinite(worth).all()


def test_a_measured_count_beyond_the_table_still_counts():
    belief = _learnt((1, 10.0), (8, 80.0))
    assert belief.tables(3, UNKNOWN)[0].tolist() == pytest.approx([0.0, 10.0, 20.0])
    assert belief.tables(9, UNKNOWN)[0][8] == 80.0


def test_three_counts_tell_others_a_shape():
    belief = _learnt((1, 10.0), (2, 15.0))
    assert not belief.is_telling
    belief.learn(4, 0.0, 0.0)
    assert not belief.is_telling
    belief.learn(3, 18.0, 18.0)
    assert belief.is_telling


_RATES = st.floats(0.1, 1e6)


@given(
    points=st.dictionaries(st.integers(1, 64), st.lists(st.tuples(_RATES, _RATES), min_size=1, max_size=3), min_size=1),
    shape=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_belief_is_the_mean_at_measured_counts_and_finite_everywhere(points, shape):
    belief = Belief()
    for count, measured in points.items():
        for rate, worth in measured:
            belief.learn(count, rate, worth)
    rate, worth = belief.tables(65, Assumed(5.0, 2.0, Shape(*shape)))
    for count, measured in points.items():
        assert (rate[count], worth[count]) == belief.point(count)
        assert belief.point(count) == pytest.approx(tuple(np.mean(measured, axis=0)))
    assert rate[0] == worth[0] == 0.0
    assert (rate[1:] > 0).all()
    assert np.isfinite(rate).all()
    assert np.isfinite(worth).all()


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 14)), min_size=1, max_size=12))
def test_a_table_that_is_kept_is_the_one_that_would_be_drawn_anew(steps):
    kept, said = Belief(), []
    for k, (count, width) in enumerate(steps):
        said.append((count, 100.0 * k + count))  # so every measurement moves a mean
        kept.learn(*said[-1], 2.0 * said[-1][1])
        anew = Belief()
        for n, rate in said:
            anew.learn(n, rate, 2.0 * rate)
        assumed = UNKNOWN._replace(shape=Shape(width / 100, 0.0))
        for ours, theirs in zip(kept.tables(width, assumed), anew.tables(width, assumed), strict=True):
            assert ours.tolist() == theirs.tolist()
