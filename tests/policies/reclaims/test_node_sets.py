"""Runs of free nodes, and the set of them that a job takes: by hand, and as plain Python chooses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.policies.reclaims.memory import frequency
from bfreplay.policies.reclaims.node_sets import BEYOND, choose_nodes, runs_of, useful_share
from tests.examples import examples

LINEAR = np.arange(9.0)


def runs(places: list[int], nodes: list[int], is_free: list[bool] | None = None) -> list[list[int]]:
    free = np.ones(len(places), np.bool_) if is_free is None else np.array(is_free)
    return runs_of(np.array(places, np.int64), np.array(nodes, np.int64), free).tolist()


def test_numbers_18_apart_are_neighbours_and_19_are_not():
    assert runs([0, 1, 2, 3], [5, 23, 42, 43]) == [[0, 1], [2, 3]]


def test_an_idle_node_of_another_job_between_two_splits_a_run():
    assert runs([0, 1, 3, 4], [0, 1, 3, 4]) == [[0, 1], [2, 3]]
    assert runs([0, 1, 2, 3], [0, 1, 3, 4]) == [[0, 3]]  # node 2 is not idle


def test_a_node_that_was_taken_splits_a_run():
    assert runs([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [True, True, False, True, False]) == [[0, 1], [3, 3]]
    assert runs([0, 1], [0, 1], [False, False]) == runs([], []) == []


class Choice:
    """What ``choose_nodes`` chooses; places are the rows of the free nodes."""

    def __init__(self, rate, free_runs, stretches=(), **options) -> None:
        self.rate = np.array(rate, dtype=np.float64)
        n_free = max((stop for _, stop in free_runs), default=-1) + 1
        places = np.array(options.get("places", range(n_free)), np.int64)
        first, last = np.array(list(stretches), np.int64).reshape(-1, 2).T.copy()
        self.is_chosen = np.zeros(n_free, np.bool_)
        self.arguments = {
            "rate": self.rate,
            "least": options.get("least", 1),
            "most": options.get("most", self.rate.size - 1),
            "takes_all": options.get("takes_all", False),
            "n_held": options.get("n_held", 0),
            "is_hit": np.array(options.get("is_hit", [False] * len(stretches)), np.bool_),
            "runs": np.array(free_runs, np.int64).reshape(-1, 2),
            "places": places,
            "first": first,
            "last": last,
            "seconds": options.get("seconds", 36_000.0),
            "every_s": options.get("every_s", 600.0),
            "restart_s": np.full(self.rate.size, options.get("restart_s", 60.0)),
        }
        self.on_count = choose_nodes(*self.arguments.values(), self.is_chosen)
        self.rows = np.flatnonzero(self.is_chosen).tolist()


def choose_plainly(
    rate, least, most, takes_all, n_held, is_hit, runs, places, first, last, seconds, every_s, restart_s
) -> tuple[list[int], list[float]]:
    """As the docstring of ``choose_nodes`` says, with lists of rows and sets of stretches."""
    left = [list(range(a, b + 1)) for a, b in runs.tolist()]
    hits = {k for k in range(len(first)) if is_hit[k]}
    chosen: list[int] = []
    count = n_held

    def per_s(stretches: set[int]) -> float:
        return (len(stretches) + 0.5) / (seconds + 120 * len(stretches))

    def hit_with(rows: list[int]) -> set[int]:
        return hits | {k for k in range(len(first)) if any(first[k] <= places[row] <= last[k] for row in rows)}

    def worth_on(n: int, stretches: set[int]) -> float:
        return rate[n] * useful_share(per_s(stretches), every_s, restart_s[n])

    on_count = [BEYOND] * len(rate)
    on_count[count] = per_s(hits)
    while count < most:
        options = []
        for r, rows in enumerate(left):
            size = min(len(rows), most - count)
            for part in [rows[:size]] if size == len(rows) else [rows[:size], rows[len(rows) - size :]]:
                if not part:
                    continue
                is_enough = count + size >= least
                stretches = hit_with(part)
                score = worth_on(count + size, stretches) if is_enough else -len(stretches) / size
                options.append((score, -len(options), r, part))
        if not options:
            break
        score, _, r, part = max(options)
        now = worth_on(count, hits) if count >= least else 0.0
        if count + len(part) >= least and score <= now and not takes_all:
            break
        hits = hit_with(part)
        for n in range(count + 1, count + len(part) + 1):
            on_count[n] = per_s(hits)
        left[r] = [row for row in left[r] if row not in part]
        chosen += part
        count += len(part)
    return sorted(chosen), on_count


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    sizes = draw(st.lists(st.integers(1, 5), min_size=0, max_size=4))
    ends = np.cumsum(sizes).tolist()
    free_runs = [(end - size, end - 1) for size, end in zip(sizes, ends, strict=True)]
    gaps = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))  # of held nodes, before a run
    places, shift = [], 0
    for (begin, end), gap in zip(free_runs, gaps, strict=True):
        shift += gap
        places += [row + shift for row in range(begin, end + 1)]
    span = st.tuples(st.integers(-2, 25), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
    stretches = draw(st.lists(span, max_size=8))
    width = draw(st.integers(2, 9))
    rate = [
        0.0,
        *draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.1, 3.0, 7.5]), min_size=width - 1, max_size=width - 1)),
    ]
    most = draw(st.integers(1, width - 1))
    least = draw(st.integers(1, most))
    n_held = draw(st.sampled_from([0, least]))
    is_hit = [draw(st.booleans()) and n_held > 0 for _ in stretches]
    options = {"least": least, "most": most, "n_held": n_held, "is_hit": is_hit, "places": places}
    options |= {"takes_all": draw(st.booleans()), "seconds": draw(st.sampled_from([3600.0, 40_000.0]))}
    options |= {"every_s": draw(st.sampled_from([0.0, 600.0, 1800.0])), "restart_s": draw(st.sampled_from([0.0, 60.0]))}
    return Choice(rate, free_runs, stretches, **options)


@settings(max_examples=examples(400), deadline=None, derandomize=True)
@given(choice=choices())
def test_it_chooses_as_plain_python_does(choice):
    rows, on_count = choose_plainly(*choice.arguments.values())
    assert choice.rows == rows
    assert choice.on_count.tolist() == pytest.approx(on_count)


def test_it_avoids_the_end_that_is_always_reclaimed():
    at_low_end = [(0, 0)] * 20
    choice = Choice(LINEAR[:4], [(0, 7)], at_low_end)
    assert choice.rows == [5, 6, 7]
    assert choice.on_count.tolist() == pytest.approx([frequency(0, 36_000.0)] * 4)
    assert Choice(LINEAR[:4], [(0, 7)], [(7, 7)] * 20).rows == [0, 1, 2]


def test_it_takes_the_run_that_is_reclaimed_less_often():
    assert Choice(LINEAR[:3], [(0, 1), (2, 3), (4, 5)], [(0, 0)] * 9 + [(2, 2)] * 3 + [(5, 5)] * 6).rows == [2, 3]


def test_it_leaves_nodes_that_add_nothing():
    """Twenty reclaims in ten hours: with them three nodes keep less than two nodes keep without."""
    stretches = [(2, 2)] * 20
    choice = Choice([0.0, 1.0, 2.0, 2.1], [(0, 1), (2, 2)], stretches)
    share = [useful_share(frequency(hits, 36_000.0), 600.0, 60.0) for hits in (0, 20)]
    assert 2.1 * share[1] < 2.0 * share[0]
    assert choice.rows == [0, 1]
    assert choice.on_count[3] == BEYOND
    assert Choice([0.0, 1.0, 2.0, 2.1], [(0, 1), (2, 2)], stretches, takes_all=True).rows == [0, 1, 2]


@pytest.mark.parametrize("scale", [1.0, 1e-3, 100.0])
def test_the_unit_of_rates_does_not_matter(scale):
    """Two nodes that make as much as one are left, also where one makes 1.0 sample a second."""
    assert Choice(scale * np.array([0.0, 1.0, 1.0]), [(0, 0), (1, 1)]).rows == [0]


def test_a_job_below_its_least_takes_the_safest_nodes_until_it_may_run():
    stretches = [(0, 0)] * 5 + [(2, 3)]
    choice = Choice([0.0, 0.0, 0.0, 3.0, 3.0], [(0, 0), (1, 1), (2, 2), (3, 3)], stretches, least=3, most=3)
    assert choice.rows == [1, 2, 3]
    assert Choice([0.0, 0.0, 0.0, 3.0], [(0, 1)], least=3).rows == [0, 1]  # too few: the caller gives it none


def test_a_job_below_its_least_compares_reclaims_by_node():
    """Three reclaims of two nodes are fewer a node than two of one."""
    stretches = [(0, 1)] * 3 + [(2, 2)] * 2
    choice = Choice([0.0, 0.0, 0.0, 3.0], [(0, 1), (2, 2)], stretches, least=3, most=3)
    assert choice.on_count.tolist() == [frequency(hits, 36_000.0) for hits in (0, 3, 3, 5)]


def test_what_a_job_keeps_counts_and_its_reclaims_with_it():
    """The job on two nodes is hit by what hits the low end: more from there add no further reclaims."""
    stretches = [(0, 2)] * 4 + [(7, 7)]
    choice = Choice(LINEAR[:5], [(0, 1), (2, 3)], stretches, n_held=2, is_hit=[True] * 4 + [False], places=[1, 2, 6, 7])
    assert choice.rows == [0, 1]
    assert choice.on_count[2] == choice.on_count[4] == frequency(4, 36_000.0)
    assert choice.on_count[1] == BEYOND


def test_a_stretch_that_holds_several_of_its_nodes_hits_once():
    one = Choice(LINEAR[:5], [(0, 3)], [(0, 3)])
    assert one.on_count[4] == frequency(1, 36_000.0)
    assert math.isclose(Choice(LINEAR[:5], [(0, 3)], [(0, 1), (2, 3)]).on_count[4], frequency(2, 36_000.0))
