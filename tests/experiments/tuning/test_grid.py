import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.tuning.grid import (
    LONG_LOG_MAX_PARALLEL,
    LONG_LOG_T_FWD,
    USUAL_MAX_PARALLEL,
    USUAL_T_FWD,
    grid_of,
)

DAY_S = 86_400.0


def test_without_values_the_usual_ones_are_tried():
    grid = grid_of(None, None, n_jobs=1000, shortest_s=DAY_S)
    assert (grid.t_fwd, grid.max_parallel) == (USUAL_T_FWD, USUAL_MAX_PARALLEL)
    assert grid.t_fwd[-1] == "auto"
    assert grid.notes == ()
    assert not grid.takes_all_jobs


def test_more_jobs_at_once_than_there_are_become_all_of_them_and_a_note_says_so():
    for given in (None, [70, 5, 10, 20, 35]):
        grid = grid_of(None, given, n_jobs=12, shortest_s=DAY_S)
        assert grid.max_parallel == (5, 10, 12)
        assert grid.takes_all_jobs
        assert grid.notes == ("There are 12 jobs, so larger numbers at once (20, 35, 70) are replaced by 12.",)
    assert grid_of(None, None, n_jobs=None, shortest_s=DAY_S).max_parallel == USUAL_MAX_PARALLEL


def test_usual_times_longer_than_a_part_are_left_out_and_given_ones_are_kept():
    grid = grid_of(None, [1], n_jobs=1, shortest_s=100.0)
    assert grid.t_fwd == (10.0, 30.0, 60.0, "auto")
    assert "above 60 s" in grid.notes[0]
    assert grid_of([500], [1], n_jobs=1, shortest_s=100.0).t_fwd == (500.0,)
    assert grid_of(None, [1], n_jobs=1, shortest_s=1.0).t_fwd == (10.0, "auto")


def test_on_a_long_log_fewer_values_are_tried_unless_given():
    shorter = grid_of(None, None, n_jobs=1000, shortest_s=DAY_S, n_pool_events=30_001)
    assert (shorter.t_fwd, shorter.max_parallel) == (LONG_LOG_T_FWD, LONG_LOG_MAX_PARALLEL)
    assert "30,001 pool events" in shorter.notes[0]
    given = grid_of([60.0], [5], n_jobs=1000, shortest_s=DAY_S, n_pool_events=30_001)
    assert (given.t_fwd, given.max_parallel, given.notes) == ((60.0,), (5,), ())
    assert grid_of(None, None, n_jobs=1000, shortest_s=DAY_S, n_pool_events=30_000).t_fwd == USUAL_T_FWD


def test_values_are_sorted_with_auto_behind():
    grid = grid_of(["auto", 60, 10.5], [3, 1], n_jobs=9, shortest_s=DAY_S)
    assert grid.t_fwd == (10.5, 60.0, "auto")
    assert grid.max_parallel == (1, 3)


@pytest.mark.parametrize(
    ("t_fwd", "numbers", "says"),
    [
        ([], [1], "t-fwd has no values"),
        ([10, 10.0], [1], "t-fwd has a duplicate value"),
        ([10, -1], [1], "not a positive number"),
        ([10, True], [1], "t-fwd is neither a number nor 'auto'"),
        ([float("inf")], [1], "not a positive number"),
        (["soon"], [1], "t-fwd is neither a number nor 'auto'"),
        ("10", [1], "t-fwd is not a list"),
        (60, [1], "t-fwd is not a list"),
        ([10], [], "max-parallel has no values"),
        ([10], [0], "below 1"),
        ([10], [1.5], "no whole number"),
        ([10], [2, 2], "max-parallel has a duplicate value"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(t_fwd, numbers, says):
    with pytest.raises(InputError, match=says):
        grid_of(t_fwd, numbers, n_jobs=10, shortest_s=DAY_S)
