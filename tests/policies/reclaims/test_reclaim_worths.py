"""What counts are worth between reclaims: by hand, without reclaims, and the best counts by trying all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solution import Quality
from bfreplay.policies.objectives.objective import horizon_s, problem_with_costs
from bfreplay.policies.reclaims import pool as pool_module
from bfreplay.policies.reclaims.memory import Stretches, frequency
from bfreplay.policies.reclaims.node_sets import useful_share
from bfreplay.policies.reclaims.policy import ReclaimAwarePolicy
from bfreplay.policies.reclaims.pool import Pool
from tests.policies.reclaims.small_pools import costs_by, pool_of
from tests.policies.small_states import SECOND

LINEAR = [0.0, 10.0, 20.0, 30.0, 40.0]
NOTHING = Stretches(np.zeros(0, np.int64), np.zeros(0, np.int64), 3600.0)


def problem_of(state, stretches=NOTHING, t_fwd_s=100.0):
    policy = ReclaimAwarePolicy(t_fwd_s)
    problem = policy._problem(state, Pool(state, stretches))
    problem.validate()
    return problem


@pytest.fixture
def without_reclaims(monkeypatch):
    """Let no reclaim ever come, also none that was not seen."""
    monkeypatch.setattr(pool_module, "frequency", lambda n_hits, seconds: 1e-12)
    monkeypatch.setattr(pool_module.Pool, "_choose", _choose_at_no_risk(Pool._choose))


def _choose_at_no_risk(choose):
    def chosen(self, rate, job_row, most):
        is_chosen, per_s = choose(self, rate, job_row, most)
        return is_chosen, np.full_like(per_s, 1e-12)

    return chosen


@pytest.mark.parametrize("pauses", [True, False])
@pytest.mark.parametrize("every_s", [0.0, 600.0])
@pytest.mark.usefixtures("without_reclaims")
def test_without_reclaims_it_is_the_decision_by_costs(pauses, every_s):
    """The constant is the unsaved work, which a change loses there, and staying gains here.

    One thing differs: no job shrinks of its own will, but for giving up all nodes.
    """
    unsaved = [700.0, 0.0, 0.0] if every_s else [0.0] * 3
    costs = costs_by(
        3,
        start=[0, 30, 40, 50, 60],
        up=[0, 20, 25, 30, 35],
        down=15,
        pauses=pauses,
        pause_left_s=[5.0, 0.0, 0.0],
        unsaved_samples=unsaved,
        save_every_s=[every_s] * 3,
    )
    state = pool_of(
        [LINEAR] * 3,
        [[0, 1], [], [4]],
        [True] * 6,
        costs,
        at_risk=unsaved,
        next_save_s=[100.0 if every_s else None, None, 600.0 if every_s else None],
        lost=[0, 0, 2],
    )
    mine = problem_of(state).value
    given = problem_with_costs(state, horizon_s(state, 100.0) * state.objective, state.objective).value
    assert mine == pytest.approx(given, abs=1e-2)


def test_counts_of_a_new_job_by_hand():
    """T g(n) v(n), and what the longest restart leaves of the 60 s: nothing where it starts for 60 s."""
    state = pool_of([LINEAR], [[]], [True] * 4, costs_by(1, start=[60, 60, 60, 20, 60], save_every_s=[600.0]))
    share = useful_share(0.5 / 3600, 600.0, 60.0)
    value = problem_of(state).value[0]
    worths = [100 * share * 10, 100 * share * 20, 100 * share * 30 + 40 * 30, 100 * share * 40]
    assert value.tolist() == pytest.approx([0.0, *worths])


def test_a_job_that_stays_by_hand():
    """Two nodes, 20 samples/s; 5,000 samples at risk, to be saved in 250 s; no reclaim seen in an hour."""
    costs = costs_by(1, pause_left_s=[10.0], unsaved_samples=[5000.0], save_every_s=[600.0])
    state = pool_of([LINEAR], [[0, 1]], [True] * 4, costs, at_risk=[5000.0], next_save_s=[250.0])
    per_s = 0.5 / 3600
    share, survives = useful_share(per_s, 600.0, 60.0), math.exp(-per_s * 250)
    stays = 100 * share * 20 + survives * (20 * 250 + math.exp(-per_s * 600) * 20 * (60 - 10))
    stays -= (1 - survives) * (5000 + share * 20 / per_s)
    value = problem_of(state).value[0]
    assert value[2] == pytest.approx(stays)
    assert value[:2].tolist() == pytest.approx([-5000, 100 * share * 10 - 5000])
    both = per_s + 0.3 * per_s  # its own reclaims, and those of the node that it gets
    assert value[3] == pytest.approx(100 * useful_share(both, 600.0, 60.0) * 30 - 5000)


def test_more_nodes_come_with_their_reclaims_unless_the_job_moves():
    """Node 0 is seldom reclaimed, the job's two often; with a third it moves, where all of the free ones are seldom."""
    costs = costs_by(1, save_every_s=[600.0])
    often = Stretches(np.full(9, 1), np.full(9, 1), 3600.0)  # place 1, of the job
    for is_idle, moves in (([True] * 4, False), ([True] * 6, True)):
        state = pool_of([LINEAR], [[1, 2]], is_idle, costs, at_risk=[0.0], next_save_s=[600.0])
        policy = ReclaimAwarePolicy(100.0)
        pool = Pool(state, often)
        value = policy._problem(state, pool).value[0]
        own, others = frequency(9, 3600.0), frequency(0, 3600.0)
        per_s = others if moves else own + 0.3 * others
        assert value[3] == pytest.approx(100 * useful_share(per_s, 600.0, 60.0) * 30)
        assert pool.moves[0, 3] == moves


def test_work_that_a_change_would_save_does_not_hold_a_job():
    costs = costs_by(1, save_every_s=[600.0])  # nothing unsaved: saves on-resize
    state = pool_of([LINEAR], [[0, 1]], [True] * 4, costs, at_risk=[5000.0], next_save_s=[250.0])
    lost = costs_by(1, save_every_s=[600.0], unsaved_samples=[5000.0])
    other = pool_of([LINEAR], [[0, 1]], [True] * 4, lost, at_risk=[5000.0], next_save_s=[250.0])
    assert problem_of(other).value[0, 2] == problem_of(state).value[0, 2]
    assert problem_of(state).value[0, 3] - problem_of(other).value[0, 3] == pytest.approx(5000.0)


def test_a_job_that_was_hit_has_nothing_to_lose_on_any_count():
    costs = costs_by(1, pause_left_s=[60.0], save_every_s=[600.0])
    state = pool_of([LINEAR], [[0, 1]], [True] * 4, costs, at_risk=[0.0], next_save_s=[600.0], lost=[1])
    share = useful_share(0.5 / 3600, 600.0, 60.0)
    assert problem_of(state).value[0].tolist() == pytest.approx([100 * share * rate for rate in LINEAR])


def test_counts_that_the_job_cannot_use_are_forbidden_but_those_it_stays_on_are_not():
    allowed = [[True, True, True, False, True]]
    costs = costs_by(1, allowed=allowed)
    new = problem_of(pool_of([LINEAR], [[]], [True] * 4, costs)).value[0]
    assert np.isneginf(new).tolist() == [False, False, False, True, False]
    left = problem_of(pool_of([LINEAR], [[0, 1, 2]], [True] * 4, costs)).value[0]
    assert not np.isneginf(left).any()


def moved(at_risk: float = 0.0, lost: int = 0, **options: object):
    """Return the decision for a job on nodes 0 and 1, which are reclaimed often, with four better ones free."""
    costs = costs_by(1, save_every_s=[600.0], unsaved_samples=[at_risk], **options)
    state = pool_of(
        [LINEAR[:3]], [[0, 1]], [True] * 6, costs, at_risk=[at_risk], next_save_s=[600 - at_risk / 20], lost=[lost]
    )
    policy = ReclaimAwarePolicy(150.0)
    policy.memory.note(state.nodes.is_idle, state.time_us - 7200 * SECOND)
    for k in range(20):  # nodes 0 and 1 go and come back
        for is_back in (False, True):
            is_idle = np.array([is_back] * 2 + [True] * 4)
            policy.memory.note(is_idle, state.time_us - (7000 - 100 * k - is_back) * SECOND)
    return policy.reasons(state)


def test_a_job_moves_from_nodes_that_are_often_reclaimed_and_pays_a_restart():
    reasons = moved()
    decision = reasons.decision
    assert decision.counts.tolist() == [2]
    assert not {0, 1} & set(decision.placement.assigned[0].tolist())
    assert decision.placement.restart_s.tolist() == [60.0]
    share = useful_share(frequency(0, 7200.0), 600.0, 60.0)
    assert reasons.problem.value[0, 2] == pytest.approx(150 * share * 20)  # 60 s of the longest restart, less 60 s
    assert reasons.reclaims_per_hour(0) == pytest.approx(3600 * frequency(0, 7200.0))


def test_a_job_does_not_move_with_much_to_lose_or_where_it_may_not_use_its_count():
    for reasons in (moved(11_900.0), moved(allowed=[[True, True, False]])):
        assert reasons.decision.placement.assigned[0].tolist() == [0, 1]
        assert reasons.decision.placement.restart_s is None


def test_a_job_that_was_hit_moves_without_a_further_restart():
    reasons = moved(lost=1)
    assert not {0, 1} & set(reasons.decision.placement.assigned[0].tolist())
    assert reasons.decision.placement.restart_s is None


def test_constant_costs_are_those_of_the_jobs():
    """Without other costs: the pause up is charged at the rate before, and the useful share knows it."""
    state = pool_of([LINEAR], [[0, 1]], [True] * 4, None, scale_up_cost_s=[20.0], scale_down_cost_s=[10.0], lost=[0])
    per_s = 0.5 / 3600
    value = problem_of(state).value[0]
    assert value[2] == pytest.approx(100 * 20 * math.exp(-per_s * 20))
    assert value[3] == pytest.approx(100 * 30 * math.exp(-1.3 * per_s * 20) - 20 * 20)


def random_case(rng):
    """Return a state of up to three jobs on ten nodes, and reclaims."""
    n_jobs, n_nodes, width = int(rng.integers(1, 4)), 10, 5
    is_idle = rng.random(n_nodes) < 0.8
    idle = rng.permutation(np.flatnonzero(is_idle)).tolist()
    held, min_nodes = [], []
    for _ in range(n_jobs):
        least = int(rng.integers(1, 3))
        n_held = min(int(rng.choice([0, 1, 2, 3])), len(idle))
        held.append([idle.pop() for _ in range(n_held)])
        min_nodes.append(least)
    every_s = rng.choice([0.0, 600.0], n_jobs)
    at_risk = np.where(every_s > 0, rng.choice([0.0, 900.0, 5000.0], n_jobs), 0.0)
    costs = costs_by(
        n_jobs,
        start=rng.choice([0.0, 20.0, 60.0], width),
        up=rng.choice([0.0, 20.0, 60.0], width),
        down=30.0,
        pauses=bool(rng.random() < 0.7),
        save_every_s=every_s,
        unsaved_samples=at_risk if rng.random() < 0.7 else np.zeros(n_jobs),
        pause_left_s=rng.choice([0.0, 7.0], n_jobs),
        allowed=rng.random((n_jobs, width)) < np.array([2.0, 0.8, 0.8, 0.8, 0.8]),
    )
    rates = [[0.0, *np.sort(rng.choice([1.0, 5.0, 9.0, 10.0, 30.0], width - 1)).tolist()] for _ in range(n_jobs)]
    first = rng.integers(0, 9, 6)
    stretches = Stretches(first, first + rng.integers(0, 3, 6), 7200.0)
    state = pool_of(
        rates,
        held,
        is_idle.tolist(),
        costs,
        at_risk=at_risk.tolist(),
        next_save_s=[float(rng.uniform(1, 600)) if every else None for every in every_s],
        lost=rng.choice([0, 0, 1], n_jobs).tolist(),
        min_nodes=min_nodes,
    )
    return state, stretches


@pytest.mark.parametrize("seed", range(60))
def test_the_counts_are_the_best_of_all_and_the_nodes_are_as_many_at_most(seed):
    state, stretches = random_case(np.random.default_rng([45, seed]))
    policy = ReclaimAwarePolicy(150.0)
    pool = Pool(state, stretches)
    problem = policy._problem(state, pool)
    problem.validate()
    solution = ExactSolver().solve(problem)
    allowed = [np.flatnonzero(row > -np.inf).tolist() for row in problem.value]
    best = max(
        sum(problem.value[j, n] for j, n in enumerate(counts))
        for counts in itertools.product(*allowed)
        if sum(counts) <= state.n_idle
    )
    assert solution.objective == pytest.approx(best)
    nodes = pool.choose(solution.counts)
    together = np.concatenate(nodes)
    assert np.unique(together).size == together.size
    assert state.nodes.is_idle[together].all()
    for j, (chosen, count) in enumerate(zip(nodes, solution.counts.tolist(), strict=True)):
        assert chosen.size in (0, count) or state.min_nodes[j] <= chosen.size < count
        stays = state.lost_nodes[j] == 0 and state.current[j] >= state.min_nodes[j]
        if stays and count > 0 and not pool.moves[j, count]:
            assert set(state.nodes.held(j).tolist()) <= set(chosen.tolist())


def test_nodes_that_a_job_gives_up_go_to_others_in_the_same_decision():
    """Free restarts; the second job runs on all four nodes only, and makes more there than the first on its two."""
    rates = [[0.0, 1.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0, 100.0]]
    state = pool_of(rates, [[0, 1], []], [True] * 4, None, min_nodes=[1, 4])
    policy = ReclaimAwarePolicy(150.0)
    decision = policy.decide(state)
    assert decision.solution.counts.tolist() == decision.counts.tolist() == [0, 4]
    assert np.sort(decision.placement.assigned[1]).tolist() == [0, 1, 2, 3]


def test_the_most_needed_nodes_are_chosen_first():
    state = pool_of(
        [[0.0, 10.0, 10.0, 10.0], [0.0, 0.0, 0.0, 30.0]],
        [[], []],
        [True] * 6,
        costs_by(2, save_every_s=[600.0, 600.0]),
        min_nodes=[1, 3],
    )
    pool = Pool(state, Stretches(np.zeros(20, np.int64), np.zeros(20, np.int64), 3600.0))  # of the lowest node
    pool.rates = state.objective
    chosen = pool.choose(np.array([1, 3]))
    assert chosen[1].tolist() == [3, 4, 5]
    assert chosen[0].tolist() == [2]


def test_a_job_takes_no_more_than_a_count_that_it_can_use():
    """Of five free nodes the job runs on one, two or four."""
    costs = costs_by(1, allowed=[[True, True, True, False, True, False]])
    state = pool_of([[0.0, 10.0, 20.0, 20.0, 40.0, 40.0]], [[]], [True] * 5, costs)
    pool = Pool(state, Stretches(np.full(9, 3), np.full(9, 3), 3600.0))
    pool.rates = np.array([[0.0, 10.0, 20.0, 40.0, 40.0, 40.0]])  # as if a third one helped
    assert pool.choose(np.array([3]))[0].tolist() == [0, 1]


def test_a_decision_with_fewer_nodes_than_the_solver_chose_is_no_proven_one(monkeypatch):
    state = pool_of([LINEAR], [[]], [True] * 4, costs_by(1, save_every_s=[600.0]))
    policy = ReclaimAwarePolicy(150.0)
    assert policy.reasons(state).decision.solution.quality is Quality.PROVEN
    monkeypatch.setattr(Pool, "choose", lambda pool, counts: (np.arange(3),))
    reasons = policy.reasons(state)
    solution = reasons.decision.solution
    assert reasons.decision.counts.tolist() == solution.counts.tolist() == [3]
    assert solution.quality is Quality.FEASIBLE
    assert solution.objective == reasons.problem.value[0, 3]
    assert solution.objective < solution.bound == pytest.approx(reasons.problem.value[0, 4])
    assert solution.message == "nodes left that are reclaimed too often: 1"


def test_a_job_that_finds_too_few_nodes_leaves_them_to_others():
    state = pool_of([[0.0, 0.0, 0.0, 30.0], [0.0, 10.0, 20.0, 30.0]], [[], []], [True] * 2, None, min_nodes=[3, 1])
    pool = Pool(state, NOTHING)
    pool.rates = state.objective
    chosen = pool.choose(np.array([3, 2]))
    assert chosen[0].size == 0
    assert chosen[1].tolist() == [0, 1]
