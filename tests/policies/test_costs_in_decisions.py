"""BFTrainer's decision where changes cost what the jobs say: by hand, and by trying all counts."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import losses
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.named_solvers import solver_of
from bfreplay.policies import BFTrainerPolicy, Decision, Policy
from bfreplay.policies.bftrainer import problem_of
from bfreplay.policies.catalogue import policy_of
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import horizon_s
from bfreplay.workload import CostByCount, JobSet
from tests.policies.reclaims.small_pools import costs_by, pool_of
from tests.replay.tiny import job, log

LINEAR = [0.0, 10.0, 20.0, 30.0, 40.0]


def losses_of(state) -> list[float]:
    """Return what the first job gives up on each count."""
    now = state.throughput[np.arange(state.n_jobs), state.current]
    return losses(state.current, state.min_nodes, state.objective, now, *state.costs[:-2])[0].tolist()


def one_job(held: int, costs, **options):
    return pool_of([LINEAR], [list(range(held))], [True] * 4, costs, **options)


def test_a_new_job_pays_its_start_at_the_rate_that_it_will_have():
    assert losses_of(one_job(0, costs_by(1, start=20.0))) == [0.0, 200.0, 400.0, 600.0, 800.0]


def test_a_start_by_count():
    assert losses_of(one_job(0, costs_by(1, start=[20.0, 20.0, 20.0, 95.0, 95.0]))) == [
        0.0,
        200.0,
        400.0,
        2850.0,
        3800.0,
    ]


def test_a_job_that_pauses_pays_at_the_rate_after_and_keeps_its_count_for_nothing():
    assert losses_of(one_job(2, costs_by(1, up=30.0, down=10.0))) == [0.0, 100.0, 0.0, 900.0, 1200.0]


def test_a_job_that_is_charged_pays_at_the_rate_before():
    costs = costs_by(1, up=[0.0, 0.0, 0.0, 30.0, 60.0], down=10.0, pauses=False)
    assert losses_of(one_job(2, costs)) == [200.0, 200.0, 0.0, 600.0, 1200.0]


def test_a_change_loses_the_unsaved_work_and_staying_the_rest_of_the_pause():
    costs = costs_by(1, up=30.0, down=10.0, unsaved_samples=[500.0], pause_left_s=[4.0])
    assert losses_of(one_job(2, costs)) == [500.0, 600.0, 80.0, 1400.0, 1700.0]


def test_unsaved_work_is_worth_what_the_objective_says_of_a_sample():
    state = one_job(2, costs_by(1, up=0.0, down=0.0, unsaved_samples=[500.0]), objective=[[3.0 * r for r in LINEAR]])
    assert losses_of(state) == [1500.0, 1500.0, 0.0, 1500.0, 1500.0]


def test_a_job_that_was_hit_pays_alike_on_every_count():
    """Its work is lost and its whole pause is due: to stay is worth no more than to change."""
    costs = costs_by(1, pause_left_s=[60.0])
    state = one_job(2, costs, lost=[1])
    assert losses_of(state) == [60.0 * rate for rate in LINEAR]
    assert problem_of(state, 100.0).value[0].tolist() == [100.0 * rate for rate in LINEAR]


def test_a_job_below_its_least_starts_and_has_nothing_to_lose():
    state = one_job(1, costs_by(1, start=20.0, up=30.0, unsaved_samples=[500.0]), min_nodes=[2])
    assert losses_of(state) == [0.0, 0.0, 400.0, 600.0, 800.0]


def test_forbidden_counts_are_infinitely_dear_but_for_the_one_that_is_held():
    costs = costs_by(1, up=0.0, down=0.0, allowed=[[True, True, True, False, True]])
    assert losses_of(one_job(2, costs)) == [0.0, 0.0, 0.0, np.inf, 0.0]
    assert losses_of(one_job(3, costs)) == [0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(("unsaved", "count"), [(900.0, 3), (1100.0, 2)])
def test_work_at_risk_decides_whether_a_job_grows(unsaved, count):
    """Over 100 s a third node makes 1,000 samples more; changes take no time here."""
    costs = costs_by(1, start=0.0, up=0.0, down=0.0, unsaved_samples=[unsaved])
    assert BFTrainerPolicy(100.0).decide(pool_of([LINEAR], [[0, 1]], [True] * 3, costs)).counts.tolist() == [count]


def test_work_that_is_saved_before_a_change_does_not_hold_a_job():
    """As a replay shows it with saves on-resize: at risk in a reclaim, not in a change of one's own."""
    costs = costs_by(1, start=0.0, up=0.0, down=0.0)
    state = pool_of([LINEAR], [[0, 1]], [True] * 3, costs, at_risk=[1100.0], next_save_s=[10.0])
    assert BFTrainerPolicy(100.0).decide(state).counts.tolist() == [3]


def test_a_job_that_stays_keeps_its_work_and_its_restart():
    """Two nodes for each of two jobs, one of which would be worth three: not if that costs a restart of 60 s."""
    state = pool_of([LINEAR, LINEAR], [[0, 1], []], [True] * 4, costs_by(2))
    assert BFTrainerPolicy(100.0).decide(state).counts.tolist() == [2, 2]
    value = problem_of(state, 100.0).value
    assert value[0].tolist() == [0.0, 1000.0, 3200.0, 3000.0, 4000.0]
    assert value[1].tolist() == [0.0, 1000.0, 2000.0, 3000.0, 4000.0]


def test_a_restart_longer_than_the_forward_looking_time_does_not_keep_jobs_from_starting():
    state = pool_of([LINEAR], [[]], [True] * 4, costs_by(1, start=600.0, up=600.0))
    assert horizon_s(state, 30.0) == 630.0
    assert horizon_s(replace(state, costs=None), 30.0) == 30.0
    assert BFTrainerPolicy(30.0).decide(state).counts.tolist() == [4]


def test_costs_by_count_hold_a_job_below_the_step():
    """A start takes 20 s on up to two nodes, and 95 s on more: 100 s of 20 samples/s, or 25 s of 40."""
    costs = costs_by(1, start=[20.0, 20.0, 20.0, 95.0, 95.0], up=0.0, down=0.0)
    state = pool_of([[0.0, 10.0, 20.0, 21.0, 22.0]], [[]], [True] * 4, costs)
    assert BFTrainerPolicy(25.0).decide(state).counts.tolist() == [2]
    assert problem_of(state, 25.0).value[0].tolist() == [0.0, 1000.0, 2000.0, 25 * 21.0, 25 * 22.0]


def test_forbidden_counts_are_not_decided():
    costs = costs_by(2, allowed=[[True, True, True, False, True]] * 2)
    state = pool_of([LINEAR, LINEAR], [[], []], [True] * 3, costs)
    assert sorted(BFTrainerPolicy(100.0).decide(state).counts.tolist()) == [1, 2]
    assert BFTrainerPolicy(100.0).decide(pool_of([LINEAR], [[]], [True] * 3, costs.only(np.array([0])))).counts == [2]


def random_state(seed: int):
    """Return up to three jobs on six nodes whose changes cost anything."""
    rng = np.random.default_rng([45, seed])
    n_jobs, width = int(rng.integers(1, 4)), 7
    nodes = rng.permutation(6).tolist()
    held = [[nodes.pop() for _ in range(min(int(rng.integers(0, 4)), len(nodes)))] for _ in range(n_jobs)]

    def seconds():
        return rng.choice([0.0, 5.0, 29.0, 95.0], width) if rng.random() < 0.6 else float(rng.choice([0.0, 20.0]))

    costs = costs_by(
        n_jobs,
        start=seconds(),
        up=seconds(),
        down=seconds(),
        pauses=bool(rng.random() < 0.5),
        pause_left_s=rng.choice([0.0, 7.0, 60.0], n_jobs),
        unsaved_samples=rng.choice([0.0, 100.0, 3000.0], n_jobs),
        allowed=rng.random((n_jobs, width)) < np.array([2.0, *[0.8] * 6]),
    )
    rates = [[0.0, *rng.choice([0.0, 1.0, 5.0, 9.0, 10.0, 30.0, 60.0], width - 1).tolist()] for _ in range(n_jobs)]
    weight = rng.choice([1.0, 2.5], n_jobs)
    state = pool_of(rates, held, [True] * 6, costs, min_nodes=rng.integers(1, 4, n_jobs).tolist())
    return replace(state, objective=weight[:, None] * state.throughput, weight=weight)


def best_by_trying(state, t_fwd_s: float) -> float:
    """Return the most that counts are worth, by the rules of a change, written once more."""
    costs, best = state.costs, -np.inf
    choices = [
        [0, *(n for n in range(low, 7) if costs.allowed[j, n] or n == state.current[j])]
        for j, low in enumerate(state.min_nodes.tolist())
    ]
    for counts in itertools.product(*choices):
        if sum(counts) > state.n_idle:
            continue
        worth = 0.0
        for j, (n, before) in enumerate(zip(counts, state.current.tolist(), strict=True)):
            rate, now = state.throughput[j, n], 0.0
            if before >= state.min_nodes[j]:
                now = state.throughput[j, before]
            start_s, up_s, down_s, _ = (row[min(n, row.size - 1)] for row in costs.seconds[j])
            made = (t_fwd_s + costs.longest_s) * rate
            if n == before:
                made -= costs.pause_left_s[j] * now
            else:
                made -= costs.unsaved_samples[j] if now > 0 else 0.0
                change_s = up_s if n > before else down_s
                begins = before < state.min_nodes[j] <= n
                if not costs.pauses[j]:
                    made -= now * change_s + (rate * start_s if begins else 0.0)
                elif n > 0:
                    made -= rate * (start_s if begins else change_s)
            worth += state.weight[j] * made
        best = max(best, worth)
    return best


@pytest.mark.parametrize("seed", range(100))
def test_the_exact_solver_finds_the_best_of_all_counts(seed):
    state = random_state(seed)
    solution = BFTrainerPolicy(50.0).decide(state).solution
    assert solution.quality == "proven"
    assert solution.objective == pytest.approx(best_by_trying(state, 50.0))


@pytest.mark.parametrize("formulation", ["choices", "node_level"])
def test_two_formulations_find_it_too(formulation):
    policy = BFTrainerPolicy(50.0, solver_of("cbc", formulation, fallback="keep"))
    for seed in range(12):
        state = random_state(seed)
        solution = policy.decide(state).solution
        assert (solution.quality, solution.solver_status) == ("proven", "optimal")
        assert solution.objective == pytest.approx(best_by_trying(state, 50.0))
    policy.close()


def test_an_objective_of_one_term_poses_the_same_decision():
    state = random_state(3)
    own = problem_of(state, 50.0).value
    assert np.array_equal(objective_of("throughput").problem(state, 50.0).value, own)


@pytest.mark.parametrize("seed", range(30))
def test_a_price_gives_the_published_decision_for_that_constant_cost_whatever_the_jobs_say(seed):
    state = random_state(seed)
    prices = np.full(state.n_jobs, 360.0)
    published = replace(state, costs=None, scale_up_cost_s=prices, scale_down_cost_s=prices)
    told, plain = BFTrainerPolicy(600.0, price_s=360.0).decide(state), BFTrainerPolicy(600.0).decide(published)
    assert told.counts.tolist() == plain.counts.tolist()
    assert told.solution.objective == plain.solution.objective
    problem = problem_of(published, 600.0)
    assert problem.has_constant_losses
    assert told.solution.objective == pytest.approx(ExactSolver().solve(problem).objective)


def test_a_price_is_named_in_the_record_and_no_price_is_not():
    def made(spec: str):
        return policy_of(spec, t_fwd_s=60.0, solver=ExactSolver())

    assert made("bftrainer(price_s=360)").describe()["price_s"] == 360.0
    assert "price_s" not in made("bftrainer").describe()
    with pytest.raises(InputError, match="price_s"):
        made("bftrainer(price_s=-1)")
    with pytest.raises(InputError, match="price_s"):
        BFTrainerPolicy(price_s=float("nan"))


class Watching(Policy):
    """Keeps what it is shown of costs."""

    name = "watching"

    def __init__(self) -> None:
        self.longest_s: list[float] = []

    def decide(self, state):
        self.longest_s.append(state.costs.longest_s)
        return Decision(np.minimum(state.max_nodes, 1))


def test_the_longest_restart_is_one_that_a_job_can_have_whoever_runs_beside_it():
    """The second job, which costs nothing itself, has more nodes than the first may have: 95 s are not in reach."""
    by_count = CostByCount(((0, 20.0), (5, 95.0)))
    costs = {"scale_up_cost_s": by_count, "scale_down_cost_s": by_count, "restart": "pause"}
    narrow = replace(job("narrow"), **costs)
    wide = replace(job("wide", rates=tuple(10.0 * n for n in range(9)), submit_s=10.0), restart="pause")
    for jobs in ([narrow], [narrow, wide], [replace(wide, submit_us=0), replace(narrow, submit_us=10_000_000)]):
        policy = Watching()
        replay_log(log(9, [], 60, range(9)), JobSet(jobs), policy, efficiency=False, bound=False)
        assert policy.longest_s[-1] == 20.0
