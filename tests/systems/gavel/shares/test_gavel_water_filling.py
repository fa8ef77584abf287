"""Water filling against a definition of what it is, on figure 11, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from bfreplay.systems.gavel.shares.rule_shares import best_throughput, proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import ShareProblem
from bfreplay.systems.gavel.shares.water_filling import Entity, Hierarchy, WaterFilling
from tests.parity.gavel_records import figure_11, levels
from tests.systems.gavel.shares.feasible_shares import assert_feasible


def problem(rate, n_nodes, gang=None, weight=None, pair=(), pair_rate=()):
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
        pair=np.array(pair, dtype=np.int64).reshape(-1, 2),
        pair_rate=np.array(pair_rate, dtype=np.float64).reshape(-1, n, 2),
    )


def random_problem(seed, m):
    rng = np.random.default_rng(seed)
    rate = 10 ** rng.uniform(-1, 1, (m, 1)) * [1.0, 2.5, 5.0] * rng.uniform(0.4, 1.6, (m, 3))
    rate[rng.random((m, 3)) < 0.1] = 0
    gang = rng.choice([1, 1, 2, 4], m)
    n_nodes = np.maximum(1, rng.multinomial(max(3, int(gang.sum() * rng.uniform(0.2, 2))), [0.3, 0.3, 0.4]))
    return problem(rate, n_nodes, gang, rng.choice([1.0, 1.0, 5.0], m))


def by_definition(given, growth):
    """Levels by the book: a program that raises them, then one more for each job that tells whether it is stuck."""
    m, n = given.rate.shape
    proportional = proportional_throughput(given)
    frozen, level = proportional == 0, np.zeros(m)
    height = given.rate / np.where(frozen, 1.0, proportional)[:, None]
    rows = np.zeros((n + 2 * m, m * n + 1))
    for i in range(m):
        for j in range(n):
            rows[j, i * n + j] = given.gang[i]
            rows[n + i, i * n + j] = 1.0
            rows[n + m + i, i * n + j] = -height[i, j]
    while not frozen.all():
        speed = np.where(frozen, 0.0, growth(frozen)) / given.gang
        bounds = np.concatenate([given.n_nodes, np.ones(m), -level])
        raised = rows.copy()
        raised[n + m :, -1] = speed
        up = linprog(-np.eye(m * n + 1)[-1], raised, bounds, method="highs")
        assert up.status == 0
        level = level + up.x[-1] * speed
        bounds[n + m :] = -level * (1 - 1e-9)
        for i in np.flatnonzero(speed > 0):
            most = -linprog(rows[n + m + i], rows, bounds, bounds=[(0, None)] * (m * n) + [(0, 0)], method="highs").fun
            frozen[i] = most <= level[i] * (1 + 1e-5) + 1e-7
    return level


def test_knowing_the_types_gains_a_sixth_of_all_throughput_in_figure_11(shared):
    gains = {}
    for point, given, hierarchy in figure_11(shared):
        if point["num_jobs"] == 18:
            perf = levels(WaterFilling("perf", hierarchy).shares(given), given)
            agnostic = levels(WaterFilling("agnostic", hierarchy).shares(given), given, "agnostic")
            assert agnostic == pytest.approx(point["agnostic_levels"], abs=1e-6)
            gains[point["inner_policy"], point["random_throughputs"]] = perf.sum() / agnostic.sum() - 1
    assert gains == {
        ("fairness", False): pytest.approx(0.162, abs=5e-4),
        ("fairness", True): pytest.approx(0.207, abs=5e-4),
        ("fifo", False): pytest.approx(-0.034, abs=5e-4),
        ("fifo", True): pytest.approx(-0.077, abs=5e-4),
    }


@pytest.mark.parametrize("seed", range(12))
def test_levels_are_those_of_the_definition(seed):
    given = random_problem(seed, 3 + seed % 6)
    hierarchy = Hierarchy({"a": Entity(1.0, "fifo"), "b": Entity(3.0), "c": Entity(2.0)}, lambda job: "abc"[job % 3])
    plain = levels(WaterFilling().shares(given), given)
    assert plain == pytest.approx(by_definition(given, lambda frozen: given.weight), abs=1e-5)
    within = levels(WaterFilling("perf", hierarchy).shares(given), given)
    assert within == pytest.approx(by_definition(given, hierarchy.growth(given)), abs=1e-5)


def test_what_one_job_cannot_use_goes_to_the_others():
    # one node of each type: job 0 runs on k80 only and so has at most all of it; job 1 takes the p100 whole
    given = problem([[1.0, 0.0], [1.0, 1.0]], [1, 1])
    shares = WaterFilling().shares(given)
    assert shares.share == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0]]), abs=1e-9)
    assert levels(shares, given) == pytest.approx([2.0, 1.0])
    assert shares.objective == pytest.approx(1.0)


def test_a_weight_counts_until_time_runs_out():
    # three nodes for four jobs; the heavy one has all its time at level 1, the others share what is left
    given = problem([[1.0]] * 4, [3], weight=[9, 1, 1, 1])
    assert levels(WaterFilling().shares(given), given) == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3])


def test_a_gang_gets_a_smaller_share_of_time():
    # speeds 1 and 1/4 on 2 nodes: job 0 stops at 1, and the gang of 4 gets the other node for a quarter of the time
    given = problem([[1.0], [1.0]], [2], gang=[1, 4])
    assert levels(WaterFilling().shares(given), given) == pytest.approx([1.0, 0.25])


def test_entities_share_by_weight_and_their_jobs_by_the_inner_policy():
    # two nodes; a has a third of them for jobs 0 and 1 together, b two thirds for jobs 2 and 3, one by one
    given = problem([[1.0]] * 4, [2])
    entities = {"a": Entity(1.0), "b": Entity(2.0, "fifo")}
    shares = WaterFilling("perf", Hierarchy(entities, lambda job: "aabb"[job])).shares(given)
    # job 2 stops at 1, when jobs 0 and 1 have a quarter each; of the half that is left job 3 gets two thirds
    assert levels(shares, given) == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])


def test_what_an_entity_leaves_goes_to_the_other():
    given = problem([[1.0]] * 3, [2])
    entities = {"a": Entity(1.0), "rich": Entity(100.0)}
    shares = WaterFilling("perf", Hierarchy(entities, lambda job: "rich" if job == 0 else "a")).shares(given)
    assert levels(shares, given) == pytest.approx([1, 0.5, 0.5])


def test_a_job_that_can_run_nowhere_holds_back_nobody():
    given = problem([[0.0, 0.0], [1.0, 2.0]], [1, 1])
    for variant in ("perf", "packed"):
        shares = WaterFilling(variant).shares(given)
        assert shares.share[1] == pytest.approx([0, 1])
        assert shares.objective == pytest.approx(2 / 1.5)


def test_nothing_happens_where_nobody_can_run():
    shares = WaterFilling().shares(problem([[0.0, 0.0]], [1, 1]))
    assert not shares.share.any()
    assert np.isnan(shares.objective)


def test_a_type_without_nodes_is_no_help():
    given = problem([[1.0, 5.0], [1.0, 1.0]], [1, 0])
    assert WaterFilling().shares(given).share == pytest.approx(np.array([[0.5, 0], [0.5, 0]]))


def test_pairs_raise_the_levels_of_both():
    given = problem([[1.0], [1.0]], [1], pair=[[0, 1]], pair_rate=[[[0.8, 0.8]]])
    shares = WaterFilling("packed").shares(given)
    assert shares.pair_share == pytest.approx(np.array([[1.0]]))
    assert levels(shares, given) == pytest.approx([0.8, 0.8])


def test_the_agnostic_variant_favours_no_type():
    given = replace(random_problem(3, 9), n_nodes=np.array([1, 2, 4]))
    shares = WaterFilling("agnostic").shares(given)
    assert_feasible(shares, given)
    time = shares.share.sum(axis=1)
    assert shares.share == pytest.approx(time[:, None] * np.array([1, 2, 4]) / 7)
    assert (given.gang @ shares.share).sum() == pytest.approx(7)


def test_hundreds_of_jobs_have_levels_that_can_be_reached_and_leave_nothing_over():
    given = random_problem(1, 300)
    given = replace(given, n_nodes=given.n_nodes // 3)
    shares = WaterFilling().shares(given)
    assert_feasible(shares, given)
    found = levels(shares, given)
    cap = best_throughput(given, with_pairs=False) / proportional_throughput(given)
    below = np.flatnonzero(found < cap * (1 - 1e-6))
    full = given.gang @ shares.share > given.n_nodes * (1 - 1e-6)
    busy = shares.share.sum(axis=1) > 1 - 1e-6
    assert below.size > 200
    # a job below its cap finds its best type full, and all types where it has time left
    assert full[given.rate[below].argmax(axis=1)].all()
    assert all(busy[i] or full[given.rate[i] > 0].all() for i in below)


def test_the_same_problem_has_the_same_shares_each_time():
    given, policy = random_problem(5, 40), WaterFilling()
    first = policy.shares(given)
    policy.forget()
    assert policy.shares(given).share.tobytes() == first.share.tobytes()


def test_replay_is_told_what_the_variant_means():
    flags = {
        variant: (policy.uses_pairs, policy.shuffles_types, policy.runs_only_its_own)
        for variant in ("agnostic", "perf", "packed")
        for policy in [WaterFilling(variant)]
    }
    assert flags == {"agnostic": (False, True, False), "perf": (False, False, False), "packed": (True, False, False)}
