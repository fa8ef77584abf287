"""Strategy-proof shares against published instances and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from bfreplay.errors import BfreplayError
from bfreplay.systems.gavel.shares import strategy_proof
from bfreplay.systems.gavel.shares.share_problem import ShareProblem
from bfreplay.systems.gavel.shares.strategy_proof import StrategyProof, discounted_shares, largest_product
from tests.parity.gavel_records import instances_of

POLICY = "max_min_fairness_strategy_proof_perf"


def problem(rate, n_nodes, gang=None, weight=None):
    rate = np.array(rate, dtype=np.float64)
    m, n = rate.shape
    return ShareProblem(
        job=np.arange(m),
        type_names=("k80", "p100", "v100")[:n],
        n_nodes=np.array(n_nodes),
        gang=np.ones(m, dtype=np.int64) if gang is None else np.array(gang),
        rate=rate,
        weight=np.ones(m) if weight is None else np.array(weight, dtype=np.float64),
        steps_left=np.full(m, 1000.0),
        age_s=np.zeros(m),
        to_deadline_s=np.full(m, np.inf),
        price_per_hour=np.ones(n),
        pair_rate=np.zeros((0, n, 2)),
    )


def random_problem(seed, m):
    rng = np.random.default_rng(seed)
    rate = 10 ** rng.uniform(-1, 1, (m, 1)) * [1.0, 2.5, 5.0] * rng.uniform(0.4, 1.6, (m, 3))
    gang = rng.choice([1, 1, 2, 4], m)
    n_nodes = np.maximum(1, rng.multinomial(max(3, int(gang.sum() * rng.uniform(0.2, 2))), [0.3, 0.3, 0.4]))
    return problem(rate, n_nodes, gang)


def without(given, job):
    keep = np.arange(given.n_jobs) != job
    per_job = ("job", "gang", "rate", "weight", "steps_left", "age_s", "to_deadline_s")
    return replace(given, **{name: getattr(given, name)[keep] for name in per_job})


def test_published_instances_have_the_same_means_and_discounts(shared):
    for instance in instances_of(shared, POLICY):
        (call,) = instance.calls
        given = call.problem
        share, discount, mean = discounted_shares(given)
        *means_without, mean_with = [one["value"] for one in call.output["solver_log"]]
        assert mean == pytest.approx(mean_with, rel=1e-8)
        for job, expected in enumerate(means_without):
            assert discounted_shares(without(given, job))[2] == pytest.approx(expected, rel=1e-8)
        assert discount == pytest.approx(call.per_job("discount_factors"), abs=1e-5)
        assert StrategyProof().shares(given).share == pytest.approx(share * discount[:, None])


@pytest.mark.parametrize("seed", range(6))
def test_no_general_method_finds_a_larger_product(seed):
    given = random_problem(seed, 2 + seed % 4)
    m, n = given.rate.shape
    _, _, mean = discounted_shares(given)
    share = discounted_shares(given)[0]
    best = given.rate.max(axis=1)
    product = np.log((given.rate * share).sum(axis=1) / best).sum()
    rows = [
        {"type": "ineq", "fun": lambda x, j=j: given.n_nodes[j] - given.gang @ x.reshape(m, n)[:, j]} for j in range(n)
    ]
    rows += [{"type": "ineq", "fun": lambda x, i=i: 1 - x.reshape(m, n)[i].sum()} for i in range(m)]
    found = minimize(
        lambda x: -np.log(np.maximum((given.rate * x.reshape(m, n)).sum(axis=1) / best, 1e-12)).sum(),
        np.full(m * n, 0.05),
        bounds=[(0, 1)] * (m * n),
        constraints=rows,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert mean > 0
    assert product == pytest.approx(-found.fun, abs=1e-5)


def test_two_jobs_on_one_node_keep_half_of_their_halves():
    # either would have all of it without the other
    shares = StrategyProof().shares(problem([[1.0], [3.0]], [1]))
    assert shares.share == pytest.approx(np.array([[0.25], [0.25]]))
    assert shares.objective == pytest.approx(0.5)


def test_nobody_pays_where_nobody_is_in_the_way():
    given = problem([[1.0, 2.0], [1.0, 2.0]], [1, 2])
    shares = StrategyProof().shares(given)
    assert shares.share == pytest.approx(np.array([[0, 1], [0, 1]]), abs=1e-8)
    assert discounted_shares(given)[1] == pytest.approx([1, 1])


def test_jobs_that_are_alike_pay_alike_and_are_as_if_told_apart():
    given = problem([[1.0, 2.0], [10.0, 20.0], [1.0, 2.0], [3.0, 1.0]], [1, 1])
    discount = discounted_shares(given)[1]
    assert discount[0] == discount[1] == discount[2]
    # a little unlike: four kinds
    apart = replace(given, rate=given.rate * [[1, 1], [1, 1 + 1e-7], [1, 1 - 1e-7], [1, 1]])
    assert discounted_shares(apart)[1] == pytest.approx(discount, abs=1e-5)


def test_a_discount_is_the_loss_of_the_others():
    given = random_problem(2, 6)
    share, discount, _ = discounted_shares(given)
    throughput = (given.rate * share).sum(axis=1)
    for job in range(6):
        rest = without(given, job)
        alone = (rest.rate * discounted_shares(rest)[0]).sum(axis=1)
        assert discount[job] == pytest.approx(np.prod(np.delete(throughput, job) / alone), abs=1e-6)
    assert (discount <= 1).all()
    assert (discount < 0.99).any()


def test_to_claim_that_a_type_is_slower_than_it_is_does_not_pay():
    given = random_problem(9, 5)
    honest = StrategyProof().shares(given).throughput(given)[0]
    for factors in ([0.5, 1, 1], [1, 0.5, 1], [1, 1, 0.5], [2, 1, 1], [1, 2, 1], [1, 1, 2]):
        told = given.rate.copy()
        told[0] *= factors
        got = (given.rate * StrategyProof().shares(replace(given, rate=told)).share).sum(axis=1)[0]
        assert got <= honest * (1 + 1e-6)


def test_weights_move_the_mean_but_not_the_shares():
    given = random_problem(1, 5)
    heavy = replace(given, weight=np.array([32.0, 1, 1, 1, 1]))
    plain, weighed = StrategyProof().shares(given), StrategyProof().shares(heavy)
    assert weighed.share == pytest.approx(plain.share)
    assert weighed.objective == pytest.approx(plain.objective / 2)


def test_jobs_that_can_run_nowhere_are_left_out():
    given = problem([[0.0, 0.0], [1.0, 2.0], [5.0, 0.0]], [1, 0])
    shares = StrategyProof().shares(given)
    assert shares.share == pytest.approx(np.array([[0, 0], [0.25, 0], [0.25, 0]]))
    nobody = StrategyProof().shares(problem([[0.0]], [1]))
    assert np.isnan(nobody.objective)
    assert not nobody.share.any()


def test_one_job_alone_pays_nothing():
    shares = StrategyProof().shares(problem([[1.0, 3.0]], [1, 1]))
    assert shares.share == pytest.approx(np.array([[0, 1]]), abs=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_is_closed_for_few_and_for_hundreds_of_jobs(seed):
    given = random_problem(seed, [3, 30, 300][seed % 3])
    relative = given.rate / given.rate.max(axis=1, keepdims=True)
    gang, n_nodes = given.gang.astype(float), given.n_nodes.astype(float)
    x, gap = largest_product(relative, np.ones(given.n_jobs), gang, n_nodes, 1e-9)
    assert gap <= 1e-8
    assert x.min() > 0
    assert x.sum(axis=1).max() < 1
    assert (gang @ x < n_nodes).all()


def test_a_product_that_is_not_the_largest_is_not_taken_for_it(monkeypatch):
    monkeypatch.setattr(strategy_proof, "MOST_STEPS", 2)
    with pytest.raises(BfreplayError, match="known only to a factor"):
        StrategyProof().shares(random_problem(0, 5))


def test_replay_is_told_what_the_policy_means():
    policy = StrategyProof()
    assert (policy.uses_pairs, policy.shuffles_types, policy.runs_only_its_own) == (False, False, False)
