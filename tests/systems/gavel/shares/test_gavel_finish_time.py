"""Finish-time fairness against published instances, by bisection, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.gavel.shares.rule_shares import isolated_throughput
from bfreplay.systems.gavel.shares.share_problem import ShareProblem
from tests.parity.gavel_records import instances_of
from tests.systems.gavel.shares.feasible_shares import assert_feasible

VARIANTS = {
    "finish_time_fairness": "agnostic",
    "finish_time_fairness_perf": "perf",
    "finish_time_fairness_packed": "packed",
}


def problem(rate, n_nodes, steps_left, age_s, gang=None, job=None, **others):
    rate = np.array(rate, dtype=np.float64)
    m, n = rate.shape
    given = ShareProblem(
        job=np.arange(m) if job is None else np.array(job),
        type_names=("k80", "p100", "v100")[:n],
        n_nodes=np.array(n_nodes),
        gang=np.ones(m, dtype=np.int64) if gang is None else np.array(gang),
        rate=rate,
        weight=np.ones(m),
        steps_left=np.array(steps_left, dtype=np.float64),
        age_s=np.array(age_s, dtype=np.float64),
        to_deadline_s=np.full(m, np.inf),
        price_per_hour=np.ones(n),
        pair_rate=np.zeros((0, n, 2)),
    )
    return replace(given, **{name: np.array(value) for name, value in others.items()})


def random_problem(seed, m):
    rng = np.random.default_rng(seed)
    rate = 10 ** rng.uniform(-1, 1, (m, 1)) * [1.0, 2.5, 5.0] * rng.uniform(0.4, 1.6, (m, 3))
    gang = rng.choice([1, 1, 2, 4], m)
    n_nodes = np.maximum(1, rng.multinomial(max(3, int(gang.sum() * rng.uniform(0.2, 2))), [0.3, 0.3, 0.4]))
    steps = 10 ** rng.uniform(3, 5, m)
    return problem(rate, n_nodes, steps, rng.uniform(0, 2, m) * steps / rate.mean(axis=1), gang)


def rho(shares, given):
    """Return the ratios of jobs at their first recomputation."""
    return (given.age_s + given.steps_left / shares.throughput(given)) / (given.steps_left / isolated_throughput(given))


def least_rho(given, no_worse=()):
    """Bisection on the largest rho of all jobs but those of ``no_worse``, which have theirs: position and rho."""
    m, n = given.rate.shape
    rows = np.zeros((n + 2 * m, m * n))
    for i in range(m):
        for j in range(n):
            rows[j, i * n + j] = given.gang[i]
            rows[n + i, i * n + j] = 1.0
            rows[n + m + i, i * n + j] = -given.rate[i, j]
    in_isolation = given.steps_left / isolated_throughput(given)
    held = dict(no_worse)

    def possible(largest):
        limit = np.array([held.get(i, largest) for i in range(m)]) * in_isolation - given.age_s
        if (limit <= 0).any():
            return False
        bounds = np.concatenate([given.n_nodes, np.ones(m), -given.steps_left / limit])
        return linprog(np.zeros(m * n), rows, bounds, method="highs").status == 0

    low, high = 0.0, 1.0
    while not possible(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if possible(middle) else (middle, high)
    return high


def test_published_calls_one_after_the_other_have_the_same_memory(shared):
    n_successive = 0
    for instance in instances_of(shared, *VARIANTS):
        policy = FinishTimeFairness(VARIANTS[instance.policy])
        for call in instance.calls:
            policy.shares(call.problem)
            remembered = policy.isolated_s()
            assert list(remembered) == call.problem.job.tolist()
            so_far = call.per_job("cumulative_isolated_time")
            assert list(remembered.values()) == pytest.approx(so_far, rel=1e-9), instance.id
            n_successive += bool(so_far.any())
    assert n_successive >= 4


def test_no_job_of_a_published_instance_is_later_than_the_objective_says(shared):
    for instance in instances_of(shared, "finish_time_fairness_perf", "finish_time_fairness_packed"):
        policy = FinishTimeFairness(VARIANTS[instance.policy])
        for call in instance.calls:
            given = call.problem
            shares = policy.shares(given)
            so_far = np.array(list(policy.isolated_s().values()))
            weight = given.weight if instance.policy.endswith("packed") else 1.0
            late = (given.age_s + given.steps_left * weight / shares.throughput(given)) / (
                so_far + given.steps_left / call.per_job("isolated_throughputs")
            )
            assert late.max() == pytest.approx(shares.objective, rel=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_the_largest_rho_is_that_of_a_bisection_and_the_next_too(seed):
    given = random_problem(seed, 2 + seed % 5)
    shares = FinishTimeFairness().shares(given)
    assert_feasible(shares, given)
    late = rho(shares, given)
    assert shares.objective == pytest.approx(late.max(), rel=1e-9)
    assert shares.objective == pytest.approx(least_rho(given), rel=1e-5)
    worst = late >= late.max() * (1 - 1e-7)
    if not worst.all():
        held = [(int(i), late.max() * (1 + 1e-6)) for i in np.flatnonzero(worst)]
        assert late[~worst].max() == pytest.approx(least_rho(given, held), rel=1e-4)


def test_jobs_that_have_just_arrived_share_evenly():
    # each would have half of the node in isolation, and has it
    shares = FinishTimeFairness().shares(problem([[1.0], [2.0]], [1], [100, 100], [0, 0]))
    assert shares.share == pytest.approx(np.array([[0.5], [0.5]]))
    assert shares.objective == pytest.approx(1.0)


def test_a_job_that_has_waited_catches_up():
    # (100 + 100 / x) / 200 = (100 / (1 - x)) / 200, so 1 - x^2 = x
    shares = FinishTimeFairness().shares(problem([[1.0], [1.0]], [1], [100, 100], [100, 0]))
    golden = (np.sqrt(5) - 1) / 2
    assert shares.share[:, 0] == pytest.approx([golden, 1 - golden])
    assert shares.objective == pytest.approx(0.5 / (1 - golden))


def test_a_job_that_is_late_already_costs_the_others_only_what_helps_it():
    # job 0 has all of one node and is still by far the latest; the others share the second node evenly
    given = problem([[1.0]] * 3, [2], [10, 100, 100], [10_000, 0, 0])
    shares = FinishTimeFairness().shares(given)
    assert shares.share[:, 0] == pytest.approx([1, 0.5, 0.5])
    assert shares.objective == pytest.approx((10_000 + 10) / 15)


def test_work_done_counts_as_time_in_isolation_at_the_rate_of_that_moment():
    policy = FinishTimeFairness()
    policy.shares(problem([[2.0], [2.0]], [1], [100, 100], [0, 0]))
    assert policy.isolated_s() == {0: 0.0, 1: 0.0}
    # 30 and 10 steps were done, at 1 step/s in isolation; from now on job 1 is alone, at 2 steps/s
    policy.shares(problem([[2.0], [2.0]], [1], [70, 90], [20, 20]))
    assert policy.isolated_s() == {0: 30.0, 1: 10.0}
    policy.shares(problem([[2.0]], [1], [80], [40], job=[1]))
    assert policy.isolated_s() == {1: 20.0}
    policy.shares(problem([[2.0]], [1], [60], [50], job=[1]))
    assert policy.isolated_s() == {1: 30.0}


def test_jobs_that_are_gone_are_forgotten_and_so_is_everything_before_a_new_replay():
    policy = FinishTimeFairness()
    for left in (100, 50):
        policy.shares(problem([[1.0], [1.0]], [1], [left, left], [0, 0], job=[3, 8]))
    policy.shares(problem([[1.0]], [1], [50], [0], job=[8]))
    assert list(policy.isolated_s()) == [8]
    policy.forget()
    assert policy.isolated_s() == {}


def test_jobs_without_steps_or_without_a_place_to_run_do_not_count():
    given = problem([[1.0, 1.0], [0.0, 0.0], [1.0, 2.0]], [1, 1], [0, 100, 100], [500, 500, 0])
    shares = FinishTimeFairness().shares(given)
    assert_feasible(shares, given)
    assert shares.share[2] == pytest.approx([0, 1])
    assert shares.objective == pytest.approx((100 / 2) / (100 / isolated_throughput(given)[2]))


def test_where_no_job_counts_there_is_no_objective():
    shares = FinishTimeFairness().shares(problem([[0.0]], [1], [100], [7]))
    assert np.isnan(shares.objective)
    assert shares.share.shape == (1, 1)


def test_the_agnostic_variant_believes_the_reference_type():
    # the k80 would be no help to job 1, but who knows
    given = problem([[1.0, 4.0], [0.0, 4.0]], [1, 1], [100, 100], [0, 0], type_names=("k80", "v100"))
    given = replace(given, type_names=("k80", "v100"))
    shares = FinishTimeFairness("agnostic").shares(given)
    assert shares.share == pytest.approx(np.full((2, 2), 0.5))
    assert shares.objective == pytest.approx(1.0)


def test_pairs_help_both():
    given = problem([[1.0], [1.0]], [1], [100, 100], [0, 0], pair=[[0, 1]], pair_rate=[[[0.8, 0.8]]])
    shares = FinishTimeFairness("packed").shares(given)
    assert shares.pair_share == pytest.approx(np.array([[1.0]]))
    assert shares.objective == pytest.approx(0.5 / 0.8)


def test_weights_count_where_jobs_may_share_nodes():
    # th / w is equal: three quarters and one quarter
    given = problem([[1.0], [1.0]], [1], [100, 100], [0, 0], weight=[3.0, 1.0])
    assert FinishTimeFairness().shares(given).share[:, 0] == pytest.approx([0.5, 0.5])
    weighed = FinishTimeFairness("packed").shares(given)
    assert weighed.share[:, 0] == pytest.approx([0.75, 0.25])
    assert weighed.objective == pytest.approx(2.0)


def test_a_job_that_is_very_old_and_nearly_done_is_no_trouble():
    given = problem([[1.0]] * 4, [1], [1e-3, 1e6, 1e3, 1.0], [1e7, 0, 5e5, 1e6])
    shares = FinishTimeFairness().shares(given)
    assert_feasible(shares, given)
    assert shares.objective == pytest.approx(rho(shares, given).max(), rel=1e-6)
    # job 0 needs a quarter of its four thousandths of a second, but has waited for months
    assert shares.objective == pytest.approx(1e7 / 4e-3, rel=1e-5)


def test_hundreds_of_jobs_are_as_fair_as_can_be():
    given = random_problem(4, 200)
    shares = FinishTimeFairness().shares(given)
    assert_feasible(shares, given)
    assert shares.objective == pytest.approx(rho(shares, given).max(), rel=1e-9)


def test_the_same_calls_give_the_same_shares():
    given, policy = random_problem(5, 40), FinishTimeFairness()
    first = policy.shares(given)
    policy.forget()
    assert policy.shares(given).share.tobytes() == first.share.tobytes()


def test_replay_is_told_what_the_variant_means():
    flags = {
        variant: (policy.uses_pairs, policy.shuffles_types, policy.runs_only_its_own)
        for variant in ("agnostic", "perf", "packed")
        for policy in [FinishTimeFairness(variant)]
    }
    assert flags == {"agnostic": (False, True, False), "perf": (False, False, False), "packed": (True, False, False)}


def test_of_jobs_that_are_all_but_done_the_latest_goes_first():
    """Parts of a millionth of a step left: paces that no solver can tell from none. It is done in a microsecond."""
    given = problem([[3.2], [6.1], [2.0]], [2], [1.0e-6, 1.7e-5, 5_000.0], [4_712.0, 41.0, 10.0], gang=[2, 2, 1])
    shares = FinishTimeFairness().shares(given)
    assert_feasible(shares, given)
    assert shares.share[0, 0] == pytest.approx(1)
