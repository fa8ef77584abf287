"""Gavel's policies that are one linear program, and the two that are a formula."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.systems.gavel.shares.linear_policies import Makespan, MaxMinFairness, MaxSumThroughput
from bfreplay.systems.gavel.shares.linear_program import METHODS
from bfreplay.systems.gavel.shares.rule_shares import Isolated, Proportional, proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import NO_PAIRS, ShareProblem, reference_rate
from tests.examples import examples
from tests.parity.gavel_records import instances, instances_of
from tests.systems.gavel.shares.feasible_shares import assert_feasible

INF = np.inf
BOTH = sorted(METHODS)
POLICIES = {
    "max_min_fairness": lambda **how: MaxMinFairness("agnostic", **how),
    "max_min_fairness_perf": lambda **how: MaxMinFairness("perf", **how),
    "max_min_fairness_packed": lambda **how: MaxMinFairness("packed", **how),
    "min_total_duration": lambda **how: Makespan("agnostic", **how),
    "min_total_duration_perf": lambda **how: Makespan("perf", **how),
    "min_total_duration_packed": lambda **how: Makespan("packed", **how),
    "max_sum_throughput_perf": lambda **how: MaxSumThroughput(**how),
    "max_sum_throughput_normalized_by_cost_perf": lambda **how: MaxSumThroughput(by_cost=True, **how),
    "max_sum_throughput_normalized_by_cost_perf_SLOs": lambda **how: MaxSumThroughput(
        by_cost=True, deadlines=True, **how
    ),
    "max_sum_throughput_normalized_by_cost_packed_SLOs": lambda **how: MaxSumThroughput(
        by_cost=True, deadlines=True, packs=True, **how
    ),
}


def jobs(rate, n_nodes, **given_too):
    """Types k80, p100, v100 (as many as ``rate`` has); gangs and weights of 1, 1,000 steps, no deadlines."""
    rate = np.array(rate, dtype=np.float64)
    m, n = rate.shape
    usual = {
        "gang": np.ones(m, dtype=np.int64),
        "weight": np.ones(m),
        "steps_left": np.full(m, 1000.0),
        "to_deadline_s": np.full(m, INF),
        "price_per_hour": np.ones(n),
        "pair": NO_PAIRS,
        "pair_rate": np.zeros((0, n, 2)),
    }
    chosen = usual | {name: np.array(value) for name, value in given_too.items()}
    return ShareProblem(
        job=np.arange(m),
        type_names=("k80", "p100", "v100")[:n],
        n_nodes=np.array(n_nodes),
        rate=rate,
        age_s=np.zeros(m),
        **chosen,
    )


def mixed(seed, n_jobs=6):
    """Jobs of gangs 1 to 4, some of which cannot run on some types."""
    generator = np.random.default_rng(seed)
    rate = generator.uniform(0.1, 20, (n_jobs, 3)) * (generator.random((n_jobs, 3)) < 0.8)
    return jobs(
        rate,
        generator.integers(1, 6, 3),
        gang=generator.choice([1, 1, 2, 4], n_jobs),
        weight=generator.choice([1.0, 5.0], n_jobs),
        steps_left=generator.uniform(1, 1e5, n_jobs),
    )


@pytest.mark.parametrize("name", POLICIES)
def test_objectives_at_a_vertex_are_those_found_by_another_solver_from_the_formulas(shared, name):
    """The other way, which is the default, is among the parts of tests/parity."""
    for instance in instances_of(shared, name):
        policy = POLICIES[name](optimum="vertex")
        for call in instance.calls:
            found = policy.shares(call.problem)
            assert_feasible(found, call.problem)
            assert found.objective == pytest.approx(call.exact_objective, rel=1e-6), instance.id
            if "duration" in name:  # Gavel bisects, to 5 %
                assert found.objective <= call.output["objective"]["from_allocation"] * (1 + 1e-9)
                assert found.objective <= call.output["objective"]["bisection_T"] * (1 + 1e-9)
            if "SLO" in name:
                assert found.deadlines_dropped is not call.output["objective"]["SLOs_feasible"]


@pytest.mark.parametrize("optimum", BOTH)
def test_pairs_of_jobs_beside_other_gangs_run_no_more_than_all_the_time(shared, optimum):
    """Gavel's own answer gives a job 1.5 times all the time here, and still reaches less."""
    call = instances(shared)["BUG_las_packed_mixed_scale"].calls[0]
    with pytest.raises(AssertionError):
        assert_feasible(call.recorded_shares(), call.problem)
    found = MaxMinFairness("packed", optimum=optimum).shares(call.problem)
    assert_feasible(found, call.problem)
    assert found.objective == pytest.approx(call.exact_objective, rel=1e-9)
    reached = call.problem.gang * found.throughput(call.problem) / proportional_throughput(call.problem)
    assert reached.min() == pytest.approx(call.exact_objective, rel=1e-9)


def test_isolated_shares_by_hand():
    # 2 and 4 nodes for 2 jobs: 1 and 2 each; of gang 1 that is 3 times all the time, of gang 4 three quarters of it
    problem = jobs([[1, 1], [1, 1]], [2, 4], gang=[1, 4])
    assert Isolated().shares(problem).share == pytest.approx(np.array([[1 / 3, 2 / 3], [1 / 4, 2 / 4]]))
    assert Proportional().shares(problem).share == pytest.approx(np.array([[1 / 3, 2 / 3]] * 2))
    assert np.isnan(Isolated().shares(problem).objective)


@pytest.mark.parametrize("optimum", BOTH)
def test_max_min_fairness_gives_each_job_the_type_it_is_better_on(optimum):
    # the first is 3 times as fast on p100, the second no faster; p_i = 2 and 1
    found = MaxMinFairness(optimum=optimum).shares(jobs([[1, 3], [1, 1]], [1, 1]))
    # x of the first job on p100, the rest of p100 for the second: 3 x / 2 = 1, the rest of its time on k80
    assert found.objective == pytest.approx(1)
    assert found.share[1].sum() == pytest.approx(1)
    # with a third job, as the second, there is too little time: 3 x / 2 = (2 - x) / 2, so x = 1/2 and 3/4 is reached
    crowded = MaxMinFairness(optimum=optimum).shares(jobs([[1, 3], [1, 1], [1, 1]], [1, 1]))
    assert crowded.objective == pytest.approx(3 / 4)
    assert crowded.share[0] == pytest.approx([0, 1 / 2])
    assert crowded.share[1:].sum(axis=1) == pytest.approx([3 / 4, 3 / 4])


@pytest.mark.parametrize("optimum", BOTH)
def test_agnostic_fairness_splits_nodes_by_weight(optimum):
    # s_i f_i is in proportion to weights where nobody runs all the time: 4 nodes by 1 : 1 : 3 : 3
    problem = jobs([[7, 1], [1, 9], [2, 2], [0, 5]], [3, 1], gang=[1, 2, 2, 4], weight=[1.0, 1, 3, 3])
    found = MaxMinFairness("agnostic", optimum=optimum).shares(problem)
    assert found.objective == pytest.approx(1 / 2)
    assert found.share.sum(axis=1) == pytest.approx([1 / 2, 1 / 4, 3 / 4, 3 / 8])
    assert found.share[:, 0] == pytest.approx(3 * found.share[:, 1])


@pytest.mark.parametrize("optimum", BOTH)
def test_packed_fairness_lets_jobs_share_a_node_where_that_does_more(optimum):
    problem = jobs([[10], [10]], [1], pair=[(0, 1)], pair_rate=[[[8, 8]]])
    assert MaxMinFairness("perf", optimum=optimum).shares(problem).objective == pytest.approx(0.5)
    found = MaxMinFairness("packed", optimum=optimum).shares(problem)
    assert found.objective == pytest.approx(0.8)
    assert found.pair_share == pytest.approx(np.array([[1.0]]))
    assert found.share == pytest.approx(np.zeros((2, 1)), abs=1e-9)


@pytest.mark.parametrize("optimum", BOTH)
def test_makespans_by_hand(optimum):
    policy = Makespan(optimum=optimum)
    # one node, one after the other: 100 + 300 s
    assert policy.shares(jobs([[2], [1]], [1], steps_left=[200, 300])).objective == pytest.approx(400)
    # two nodes, but nobody runs twice at once
    assert policy.shares(jobs([[2], [1]], [2], steps_left=[200, 300])).objective == pytest.approx(300)
    # each on its type
    assert policy.shares(jobs([[2, 0], [0, 1]], [1, 1], steps_left=[200, 50])).objective == pytest.approx(100)
    # a gang of 2 on one node has half of the time at most
    assert policy.shares(jobs([[2]], [1], gang=[2], steps_left=[200])).objective == pytest.approx(200)
    # side by side at 3/4 of the speed
    pair = jobs([[4], [4]], [1], steps_left=[300, 300], pair=[(0, 1)], pair_rate=[[[3, 3]]])
    assert Makespan("packed", optimum=optimum).shares(pair).objective == pytest.approx(100)


def test_the_agnostic_makespan_believes_in_the_reference_type():
    problem = jobs([[1, 2, 4], [1, 2, 0]], [0, 0, 1])
    assert reference_rate(problem) == pytest.approx([4, 2])  # the second cannot run on v100: its best
    assert Makespan("agnostic").shares(problem).objective == pytest.approx(1000 / 4 + 1000 / 2)


def test_without_v100_the_reference_is_the_type_on_which_jobs_come_nearest_to_their_best():
    # relative rates 1 + 1/4 on k80, 1/2 + 1 on p100
    assert reference_rate(jobs([[2, 1], [1, 4]], [1, 1])) == pytest.approx([1, 4])
    assert reference_rate(jobs([[2, 1], [1, 2]], [1, 1])) == pytest.approx([2, 1])  # alike: the first


@pytest.mark.parametrize("optimum", BOTH)
def test_a_job_that_can_run_nowhere_holds_back_nobody(optimum):
    rate, n_nodes = [[2, 1], [0, 0], [0, 3]], [1, 1]
    all_three = jobs(rate, n_nodes, steps_left=[200, 1000, 900])
    others = jobs(rate[::2], n_nodes, steps_left=[200, 900])
    for name in POLICIES:
        found, expected = (POLICIES[name](optimum=optimum).shares(problem) for problem in (all_three, others))
        assert_feasible(found, all_three)
        if name != "max_min_fairness":  # which does not look at rates
            assert found.objective == pytest.approx(expected.objective)
    alone = jobs([[0, 0]], [1, 1])
    assert Makespan(optimum=optimum).shares(alone).objective == 0
    assert Makespan("agnostic", optimum=optimum).shares(alone).objective == 0
    assert MaxMinFairness(optimum=optimum).shares(alone).share.tolist() == [[0, 0]]
    assert MaxSumThroughput(optimum=optimum).shares(alone).objective == 0


@pytest.mark.parametrize("optimum", BOTH)
def test_types_without_nodes_and_finished_jobs_count_for_nothing(optimum):
    problem = jobs([[5, 1], [9, 0], [0, 2]], [0, 1], steps_left=[100, 100, 0])
    found = Makespan(optimum=optimum).shares(problem)
    assert found.objective == pytest.approx(100)
    assert found.share[:, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("optimum", BOTH)
@pytest.mark.parametrize("variant", ["agnostic", "perf"])
def test_all_but_done_beside_what_lasts_for_ever_still_gets_its_share(variant, optimum):
    """Needs of 1e-3 s and 1e12 s are further apart than the solver's tolerance."""
    problem = jobs([[1e3], [1e-3], [1e-3]], [1], steps_left=[1.0, 1e9, 1e9])
    found = Makespan(variant, optimum=optimum).shares(problem)
    assert_feasible(found, problem)
    assert found.objective == pytest.approx(2e12)
    assert (problem.steps_left / found.throughput(problem)).max() == pytest.approx(2e12, rel=2e-6)


@pytest.mark.parametrize("optimum", BOTH)
def test_the_greatest_sum_by_hand(optimum):
    # the node of k80 to the job that is best there, that of p100 to the other
    problem = jobs([[5, 6], [1, 4]], [1, 1], price_per_hour=[1.0, 4.0])
    found = MaxSumThroughput(optimum=optimum).shares(problem)
    assert found.objective == pytest.approx(9)
    assert found.share == pytest.approx(np.array([[1, 0], [0, 1]]), abs=1e-9)
    by_cost = MaxSumThroughput(by_cost=True, optimum=optimum).shares(problem)
    assert by_cost.objective == pytest.approx(5 / 1 + 4 / 4)
    # a gang of 2 pays once for its aggregate rate, and takes two nodes
    gang = jobs([[5], [4]], [2], gang=[2, 1])
    assert MaxSumThroughput(optimum=optimum).shares(gang).objective == pytest.approx(4 + 5 / 2)


@pytest.mark.parametrize("optimum", BOTH)
def test_deadlines_cost_throughput_and_are_dropped_where_they_cannot_all_be_met(optimum):
    policy = MaxSumThroughput(deadlines=True, optimum=optimum)
    # the slow job must make 1,000 steps in 2,000 s: half of the node
    tight = jobs([[10], [1]], [1], to_deadline_s=[INF, 2000.0])
    found = policy.shares(tight)
    assert found.objective == pytest.approx(10 / 2 + 1 / 2)
    assert not found.deadlines_dropped
    for too_late in (-5.0, 0.0):
        late = replace(tight, to_deadline_s=np.array([too_late, 2000.0]))
        found = policy.shares(late)
        assert found.objective == pytest.approx(5.5)
        assert not found.deadlines_dropped
    impossible = replace(tight, to_deadline_s=np.array([INF, 900.0]))
    found = policy.shares(impossible)
    assert found.objective == pytest.approx(10)
    assert found.deadlines_dropped


def test_throughput_by_cost_asks_for_prices():
    problem = jobs([[5, 6]], [1, 1], price_per_hour=[1.0, 0.0])
    with pytest.raises(InputError, match="p100"):
        MaxSumThroughput(by_cost=True).shares(problem)
    assert MaxSumThroughput().shares(problem).objective == pytest.approx(6)


@pytest.mark.parametrize("policy", [MaxMinFairness, Makespan])
def test_only_what_knows_no_types_shuffles_them_and_only_what_packs_asks_for_pairs(policy):
    asked = {name: (policy(name).uses_pairs, policy(name).shuffles_types) for name in ("agnostic", "perf", "packed")}
    assert asked == {"agnostic": (False, True), "perf": (False, False), "packed": (True, False)}
    assert not policy().runs_only_its_own


@pytest.mark.parametrize("name", POLICIES)
def test_one_job_on_one_type_runs_all_the_time(name):
    found = POLICIES[name]().shares(jobs([[4]], [1]))
    assert found.share == pytest.approx(np.array([[1.0]]))


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_units_do_not_matter(seed, factor):
    problem = mixed(seed)
    per_job = np.random.default_rng(seed).uniform(1e-2, 1e2, problem.n_jobs)
    for policy in (MaxMinFairness(), MaxMinFairness("agnostic")):
        level = policy.shares(problem).objective
        # steps of a job may be smaller ones, and weights are relative to each other
        assert policy.shares(replace(problem, rate=problem.rate * per_job[:, None])).objective == pytest.approx(level)
        weightier = policy.shares(replace(problem, weight=problem.weight * factor)).objective
        assert weightier == pytest.approx(level / factor)
    makespan = Makespan().shares(problem).objective
    smaller_steps = replace(problem, rate=problem.rate * per_job[:, None], steps_left=problem.steps_left * per_job)
    assert Makespan().shares(smaller_steps).objective == pytest.approx(makespan)
    assert Makespan().shares(replace(problem, rate=problem.rate * factor)).objective == pytest.approx(makespan / factor)
    most = MaxSumThroughput().shares(problem).objective
    assert MaxSumThroughput().shares(replace(problem, rate=problem.rate * factor)).objective == pytest.approx(
        most * factor
    )


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_no_feasible_shares_are_better(seed):
    problem = mixed(seed)
    others = np.random.default_rng(seed).random((30, *problem.rate.shape))
    runs = problem.rate.max(axis=1) > 0
    for optimum in BOTH:
        fair, short, most = (
            policy(optimum=optimum).shares(problem) for policy in (MaxMinFairness, Makespan, MaxSumThroughput)
        )
        for found in (fair, short, most):
            assert_feasible(found, problem)
        for other in others:
            nodes = (problem.gang @ other / problem.n_nodes).max()
            share = other / max(1.0, nodes, other.sum(axis=1).max())
            throughput = (problem.rate * share).sum(axis=1)
            level = problem.gang * throughput / problem.weight / np.maximum(proportional_throughput(problem), 1e-300)
            assert level[runs].min() <= fair.objective * (1 + 1e-8)
            assert (problem.steps_left / np.maximum(throughput, 1e-300))[runs].max() >= short.objective * (1 - 1e-8)
            assert throughput.sum() <= most.objective * (1 + 1e-8)


def reordered(problem, order):
    return replace(
        problem,
        **{name: getattr(problem, name)[order] for name in ("gang", "rate", "weight", "steps_left", "to_deadline_s")},
    )


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_jobs_that_are_alike_get_the_same_and_their_order_does_not_matter(seed):
    problem = mixed(seed, 4)
    twice = reordered(replace(problem, job=np.arange(8), age_s=np.zeros(8)), np.arange(8) % 4)
    order = np.random.default_rng(seed).permutation(8)
    for optimum in BOTH:
        for policy in (
            MaxMinFairness("agnostic", optimum),
            MaxMinFairness("perf", optimum),
            Makespan("perf", optimum=optimum),
        ):
            found = policy.shares(twice)
            assert_feasible(found, twice)
            assert (found.share[:4] == found.share[4:]).all()
            assert (policy.shares(reordered(twice, order)).share == found.share[order]).all()


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_jobs_that_are_alike_reach_no_less_as_one_kind(seed):
    problem = mixed(seed, 4)
    twice = reordered(replace(problem, job=np.arange(8), age_s=np.zeros(8)), np.arange(8) % 4)
    # next to alike, so that each is a kind of its own
    told_apart = replace(twice, rate=twice.rate * (1 + 1e-9 * np.arange(8))[:, None])
    for policy in (MaxMinFairness(), Makespan()):
        assert policy.shares(twice).objective == pytest.approx(policy.shares(told_apart).objective, rel=1e-7)


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_problem_has_the_same_shares_to_the_last_bit(name):
    policy = POLICIES[name]()
    first, other, again = (policy.shares(mixed(seed, 30)) for seed in (1, 2, 1))
    assert first.share.tobytes() == again.share.tobytes()
    assert first.share.tobytes() != other.share.tobytes()
