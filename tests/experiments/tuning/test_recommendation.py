import numpy as np
import pytest

from bfreplay.experiments.tuning.grid import Grid
from bfreplay.experiments.tuning.recommendation import recommend, worse

T_FWD = (30.0, 60.0, 120.0, 300.0)


def _found(share, *, t_fwd=T_FWD, numbers=(10,), rescales=None, tolerance=0.01):
    share = np.array(share, dtype=float)
    share = share[:, None] if share.ndim == 1 else share
    rescales = np.zeros(share.shape, dtype=np.int64) if rescales is None else np.array(rescales).reshape(share.shape)
    return recommend(Grid(t_fwd, numbers), share, rescales, tolerance=tolerance)


def test_the_best_t_fwd_is_recommended():
    found = _found([0.9, 0.95, 1.0, 0.98])
    assert (found.t_fwd, found.max_parallel, found.at) == (120.0, 10, (2, 0))
    assert found.columns[0].flat == ((120.0, 120.0), (120.0, 120.0))


def test_of_equally_good_values_the_one_with_the_fewest_rescales_is_recommended():
    found = _found([0.9995, 1.0, 0.9992, 0.9989], rescales=[70, 90, 50, 10])
    assert found.t_fwd == 120.0  # 300 s rescales less still, but is more than 0.1 % behind
    assert found.columns[0].best_t_fwd == 60.0


def test_where_rescales_are_the_same_the_better_value_wins_and_then_the_smaller_one():
    assert _found([0.9995, 1.0, 0.9992, 0.9989], rescales=[5, 5, 5, 5]).t_fwd == 60.0
    assert _found([1.0, 1.0, 1.0, 1.0]).t_fwd == 30.0


def test_flat_is_the_range_around_the_best_within_half_a_percent_and_one_percent():
    found = _found([0.991, 0.996, 1.0, 0.9945])
    assert found.columns[0].flat == ((60.0, 120.0), (30.0, 300.0))


def test_flatness_ends_at_a_dip():
    found = _found([0.999, 0.9, 1.0, 0.998])
    assert found.columns[0].flat == ((120.0, 300.0), (120.0, 300.0))


def test_a_range_may_reach_the_edges_of_the_grid():
    assert _found([1.0, 0.999, 0.998, 0.997]).columns[0].flat[0] == (30.0, 300.0)
    assert _found([0.5, 0.6, 0.7, 1.0]).columns[0].flat[1] == (300.0, 300.0)


def test_the_smallest_number_of_jobs_within_the_tolerance_is_recommended():
    share = [[0.7, 0.985, 0.99], [0.8, 0.992, 1.0]]
    given = {"t_fwd": (60.0, 120.0), "numbers": (5, 10, 20)}
    assert _found(share, **given).max_parallel == 10
    assert _found(share, tolerance=0.3, **given).max_parallel == 5
    assert _found(share, tolerance=0.0, **given).max_parallel == 20
    assert [column.share for column in _found(share, **given).columns] == [0.8, 0.992, 1.0]


def test_exactly_the_tolerance_is_within_it():
    assert _found([[0.99, 1.0]], t_fwd=(60.0,), numbers=(5, 10), tolerance=0.01).max_parallel == 5


def test_each_number_of_jobs_has_a_t_fwd_of_its_own():
    found = _found([[0.5, 1.0], [0.6, 0.9]], t_fwd=(60.0, 120.0), numbers=(5, 10))
    assert [column.t_fwd for column in found.columns] == [120.0, 60.0]
    assert (found.t_fwd, found.max_parallel, found.at) == (60.0, 10, (0, 1))


def test_more_jobs_may_be_worse():
    assert _found([[1.0, 0.8]], t_fwd=(60.0,), numbers=(5, 10)).max_parallel == 5


def test_auto_may_win_and_is_in_no_range():
    found = _found([0.96, 0.99, 1.0], t_fwd=(60.0, 120.0, "auto"))
    assert found.t_fwd == "auto"
    assert found.columns[0].flat == ((120.0, 120.0), (120.0, 120.0))
    alone = _found([1.0], t_fwd=("auto",))
    assert alone.t_fwd == "auto"
    assert alone.columns[0].flat == (None, None)


@pytest.mark.parametrize(
    ("share", "measure", "words"),
    [
        (0.94, "samples", "process 6 % fewer samples"),
        (1.25, "samples", "process 25 % more samples"),
        (0.8, "finish", "take 25 % longer"),
        (1.25, "finish", "take 20 % less time"),
    ],
)
def test_worse_in_words(share, measure, words):
    assert worse(share, measure) == words
