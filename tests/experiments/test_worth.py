"""The search for the number of dedicated nodes."""

import pytest

from bfreplay.experiments.finish_times import smallest_cluster


class Times:
    """Times by number of nodes, and the numbers that were asked for."""

    def __init__(self, of):
        self.of, self.asked = of, []

    def __call__(self, numbers):
        self.asked += numbers
        return {n: self.of(n) for n in numbers}


@pytest.mark.parametrize("at_once", [1, 3, 4, 100])
@pytest.mark.parametrize("limit_s", [1000, 999, 70, 10, 10.5, 11])
def test_it_is_the_smallest_number_where_more_nodes_are_never_slower(limit_s, at_once):
    times = Times(lambda n: 1000 / n)
    found = smallest_cluster(limit_s, {100: 10.0}, 100, times, at_once=at_once)
    assert found == next(n for n in range(1, 101) if 1000 / n <= limit_s)
    assert len(times.asked) == len(set(times.asked)) <= 99


def test_known_times_narrow_the_search():
    times = Times(lambda n: 1000 / n)
    assert smallest_cluster(70, {10: 100.0, 20: 50.0, 100: 10.0}, 100, times) == 15
    assert set(times.asked) <= set(range(11, 20))


def test_a_known_time_decides_where_it_is_enough_on_the_smallest():
    assert smallest_cluster(70, {1: 60.0}, 100, Times(lambda n: pytest.fail("known"))) == 1


def test_jobs_that_never_end_are_too_slow():
    assert smallest_cluster(70, {9: 50.0}, 9, Times(lambda n: None if n < 4 else 50.0)) == 4


def test_none_is_enough_where_the_largest_is_too_slow():
    assert smallest_cluster(5, {9: 50.0}, 9, Times(lambda n: 50.0)) is None


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_on_the_number_it_is_done_and_on_one_fewer_it_is_not_even_if_more_nodes_can_be_slower(at_once):
    of = dict(enumerate([90, 80, 40, 60, 70, 30, 55, 20, 52, 10], start=1))
    found = smallest_cluster(50, {10: 10.0}, 10, Times(of.get), at_once=at_once)
    assert of[found] <= 50 < of[found - 1]


def test_a_larger_number_that_is_known_to_be_slower_does_not_end_the_search():
    times = Times({1: 90, 2: 80, 3: 70, 4: 45}.get)
    assert smallest_cluster(50, {5: 40, 9: 60}, 9, times) == 4
