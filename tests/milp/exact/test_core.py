"""The core search: bounds worked out by hand, and decisions that need it against the dynamic program."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.decisions import optimum_by_dynamic_program
from bfreplay.milp.exact import search, solver
from bfreplay.milp.exact.relaxation import best_exchange, concave_hulls, critical_price
from bfreplay.milp.exact.search import (
    Relaxed,
    Undecided,
    _completion,
    better_answer,
    counts_worth_searching,
)
from bfreplay.milp.exact.solver import PROOF_TOLERANCE, optimal_counts, optimum_on

CORE = 3  # the stage of optimal_counts in which the core was searched


def _curves(kind: str, n_jobs: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Gain tables of the shapes that users bring, and worse ones."""
    count = np.arange(width)
    single = rng.uniform(1e3, 1e4, n_jobs)[:, None]
    power = rng.uniform(0.6, 1.0, n_jobs)[:, None]
    if kind == "one model":
        return np.tile(5e3 * count**0.85, (n_jobs, 1))
    if kind == "noise":
        return single * count**power * rng.uniform(0.97, 1.03, (n_jobs, width))
    if kind == "powers of two only":
        return single * (2 ** np.floor(np.log2(np.maximum(count, 1))) * (count > 0)) ** power
    if kind == "multiples of eight only":
        return single * (count // 8 * 8) ** power
    assert kind == "better together"
    return single * count ** (2.0 - power)


@pytest.mark.parametrize(
    "kind", ["one model", "noise", "powers of two only", "multiples of eight only", "better together"]
)
def test_hard_decisions_have_the_optimum_of_the_dynamic_program(kind):
    rng = np.random.default_rng(11)
    stages = []
    for _ in range(40):
        n_jobs, width = int(rng.integers(3, 16)), 49
        gain = float(rng.choice([10, 120, 600])) * _curves(kind, n_jobs, width, rng)
        capacity = int(rng.integers(n_jobs, n_jobs * 30))
        current = np.minimum(rng.integers(0, width, n_jobs), capacity // n_jobs)
        count = np.arange(width)
        charge = rng.uniform(0, 0.3, n_jobs)[:, None] * gain[np.arange(n_jobs), current][:, None]
        value = gain - charge * (count != current[:, None])
        value[(count < rng.integers(1, 6, n_jobs)[:, None]) & (count > 0)] = -np.inf
        counts, objective, bound, stage = optimal_counts(value, capacity, PROOF_TOLERANCE)
        _, expected = optimum_by_dynamic_program(value, capacity)
        assert objective == pytest.approx(expected, rel=1e-12)
        assert bound >= expected * (1 - 1e-12)
        assert counts.sum() <= capacity
        stages.append(stage)
    assert stages.count(CORE) >= 10  # the test is about them


# Two jobs at a price of 2 a node, both at 3 nodes by the relaxation; losses of 1 to 5 nodes and 2 to 4 nodes
UNDECIDED = Undecided(
    np.array([1, 3, 4, 5, 2, 3, 4]), np.array([3.0, 0.0, 2.0, 1.0, 0.5, 0.0, 4.0]), np.array([0, 4, 7])
)
BASE = np.array([3, 3])


def test_completion_upwards_follows_the_cheapest_slopes_and_unused_nodes():
    # hull of job 0 upwards: 2 nodes for 1 (the loss at 4 nodes lies above it); then unused nodes at 2, before job 1's 4
    bound = _completion(UNDECIDED, Relaxed(BASE, -1, 10, 2.0), 1, 6.0)
    assert bound == pytest.approx([0.0, 0.5, 1.0, 3.0, 5.0])


def test_completion_downwards_merges_both_jobs():
    bound = _completion(UNDECIDED, Relaxed(BASE, -1, 10, 2.0), -1, 6.0)
    assert bound == pytest.approx([0.0, 0.5, 2.0, 3.5])  # job 1 down by one for 0.5, then job 0 by two for 3


def test_completion_leaves_one_job_out_and_stops_at_the_allowance():
    assert _completion(UNDECIDED, Relaxed(BASE, 1, 10, 2.0), -1, 6.0) == pytest.approx([0.0, 1.5, 3.0])
    assert _completion(UNDECIDED, Relaxed(BASE, -1, 10, 2.0), 1, 0.9) == pytest.approx([0.0, 0.5])


@pytest.mark.parametrize(
    ("capacity", "expected", "loses"),
    [
        (8, [5, 3], 1.0),  # two more for job 0
        (7, [5, 2], 1.5),  # and one fewer for job 1; an unused node would cost 2 instead of 0.5
        (4, [1, 3], 3.0),  # job 1 alone cannot give up two
        (3, [1, 2], 3.5),
    ],
)
def test_the_least_loss_is_the_one_worked_out_by_hand(capacity, expected, loses):
    for broken in (0, 1):
        answer = np.zeros(2, dtype=np.int64)
        assert better_answer(UNDECIDED, Relaxed(BASE, broken, capacity, 2.0), loses + 0.01, answer)
        assert answer.tolist() == expected
        untouched = np.array([-1, -1])
        assert not better_answer(UNDECIDED, Relaxed(BASE, broken, capacity, 2.0), loses, untouched)
        assert untouched.tolist() == [-1, -1]


def test_undecided_counts_are_those_that_lose_no_more_than_allowed():
    value = np.array([[0.0, 3.0, 5.0, -np.inf], [0.0, 1.0, 2.0, 6.0]])
    hulls = concave_hulls(value, 3)
    vertex = np.array([1, 3])  # one node of the first, none of the second; at a price of 2: 0, 1, 1 and 0, -1, -2, 0
    count, loss, offset = counts_worth_searching(hulls, vertex, value, 3, 2.0, 1.0)
    assert count.tolist() == [0, 1, 2, 0, 1, 3]
    assert loss.tolist() == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert offset.tolist() == [0, 3, 6]


def _gain_by_all_exchanges(value: np.ndarray, capacity: int, broken: int, counts: np.ndarray) -> float:
    """Most that a change of the job and at most one other brings, by trying all."""
    free, jobs = capacity - int(counts.sum()), np.arange(counts.size)
    change = value - value[jobs, counts][:, None]
    nodes = np.arange(value.shape[1]) - counts[:, None]
    best = 0.0
    for n in np.flatnonzero(change[broken] > -np.inf):
        left = free - nodes[broken, n]
        others = np.where((nodes <= left) & (jobs != broken)[:, None], change, -np.inf)
        best = max(best, change[broken, n] + max(float(others.max()), 0.0 if left >= 0 else -np.inf))
    return best


def test_an_exchange_may_take_the_other_job_from_none_to_all():
    value = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 10.0]])
    assert best_exchange(value, 2, 0, np.array([2, 0])) == (9.0, 0, 1, 2)


def test_what_hulls_leave_undecided_and_the_best_exchange_are_those_of_a_look_at_everything():
    rng = np.random.default_rng(8)
    n_gains = 0
    for _ in range(1_500):
        value, capacity = _decision_with_ties(rng)
        value[rng.random(value.shape) < 0.1] = -np.inf
        value[:, 0] = np.maximum(value[:, 0], -5.0)
        value[:, rng.integers(1, value.shape[1]) :] -= rng.integers(0, 20)  # beyond their peak, too
        value = np.ascontiguousarray(value[:, : capacity + 1])
        hulls = concave_hulls(value, capacity)
        if int(hulls.points[hulls.stop - 1].sum()) <= capacity:
            continue
        price, broken, vertex = critical_price(hulls, capacity)
        at_price = value - price * np.arange(value.shape[1])
        loss = at_price.max(axis=1)[:, None] - at_price
        counts = hulls.points[vertex]
        gap = float(loss[np.arange(counts.size), counts].sum()) + price * (capacity - int(counts.sum()))
        undecided = counts_worth_searching(hulls, vertex, value, capacity, price, gap + 1e-9)
        assert [list(undecided.counts[a:b]) for a, b in itertools.pairwise(undecided.offset)] == [
            list(np.flatnonzero(row <= gap + 1e-9)) for row in loss
        ]
        gain, own, other, its_own = best_exchange(value, capacity, broken, counts)
        assert gain == _gain_by_all_exchanges(value, capacity, broken, counts)
        changed = counts.copy()
        changed[broken] = own
        if other >= 0:
            changed[other] = its_own
        assert changed.sum() <= capacity
        jobs = np.arange(counts.size)
        assert float((value[jobs, changed] - value[jobs, counts]).sum()) == gain
        n_gains += gain > 0
    assert n_gains >= 300  # the test is about them


def _decision_with_ties(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """A decision in whole numbers, which now and then has several optima."""
    n_jobs, width = int(rng.integers(3, 14)), int(rng.choice([9, 17, 33]))
    gain = np.round(_curves("powers of two only", n_jobs, width, rng) / 1e3)
    current, charge = rng.integers(0, width, n_jobs), rng.choice([0.0, 1.0, 3.0, 6.0], n_jobs)
    value = gain - charge[:, None] * (np.arange(width) != current[:, None])
    return value, int(rng.integers(n_jobs, int(0.8 * n_jobs * width)))


def _in_python(function):
    """The function with the constants of its module as they are now; compiled, they are those of import."""
    return getattr(function, "py_func", function)


def test_a_search_of_few_counts_as_a_whole_finds_the_answer_of_the_trials(monkeypatch):
    rng = np.random.default_rng(4)
    monkeypatch.setattr(solver, "better_answer", _in_python(better_answer))
    monkeypatch.setattr(solver, "optimum_on", _in_python(optimum_on))
    n_in_core = 0
    for _ in range(2_000):
        value, capacity = _decision_with_ties(rng)
        found = []
        for small in (10**9, 0):
            monkeypatch.setattr(search, "SMALL", small)
            counts, *rest = _in_python(optimal_counts)(value, capacity, PROOF_TOLERANCE)
            found.append((counts.tolist(), *rest))
        assert found[0] == found[1]
        n_in_core += found[0][-1] == CORE
    assert n_in_core >= 1_000  # the test is about them
