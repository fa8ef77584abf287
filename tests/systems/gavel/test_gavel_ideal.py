"""Shares of time applied without rounds: against examples worked by hand, tiny steps, and ever shorter rounds."""

from random import Random

import msgspec
import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.run_record import Ideal, Seconds, Summary
from bfreplay.scalability import TabulatedCurve
from bfreplay.systems.gavel.ideal import IdealReplay
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.systems.gavel.shares.share_problem import ShareProblem
from bfreplay.workload import Colocation, ElasticJob, JobSet

TOGETHER = Colocation({("one", "two", 1, "a"): (6.0, 3.0), ("one", "two", 1, "b"): (3.0, 1.5)})


def job(name, steps, rates, submit_s=0.0, gang=1, **more) -> ElasticJob:
    curves = {kind: TabulatedCurve([0, gang], [0, rate]) for kind, rate in rates.items()}
    return ElasticJob(
        name=name,
        submit_us=round(submit_s * 1e6),
        min_nodes=gang,
        max_nodes=gang,
        scale_up_cost_s=0,
        scale_down_cost_s=0,
        work_samples=steps,
        throughput=next(iter(curves.values())),
        throughput_by_type=curves,
        **{"model": name, **more},
    )


def job_set(*jobs) -> JobSet:
    return JobSet(jobs, submit_is_relative=True, colocation=TOGETHER)


def ideal(jobs, n_nodes, name="max_min_fairness_perf", wanted=None, **more):
    shares = gavel_policy(name).make_shares(GavelOptions())
    return IdealReplay(jobs, n_nodes, shares, GavelOptions(), **more).jct_s(wanted)


def test_two_jobs_halve_a_node_until_the_shorter_one_is_done():
    """100 and 300 steps at 1/2 step/s each: the first ends at 200 s, the second has 200 left and the node alone."""
    jobs = job_set(job("x", 100, {"a": 1.0}), job("y", 300, {"a": 1.0}))
    assert ideal(jobs, {"a": 1}) == pytest.approx({0: 200.0, 1: 400.0})


def test_time_is_split_over_types_and_the_faster_one_is_taken_when_it_is_free():
    """Half of each type is 1.5 steps/s: 150 steps end at 100 s; then 2 steps/s for the other's 150 left: 175 s."""
    jobs = job_set(job("x", 150, {"a": 2.0, "b": 1.0}), job("y", 300, {"a": 2.0, "b": 1.0}))
    assert ideal(jobs, {"a": 1, "b": 1}) == pytest.approx({0: 100.0, 1: 175.0})


def test_shares_are_computed_anew_at_an_arrival_and_completions_are_seen_at_once():
    """x has 50 of 100 steps left when y comes at 50 s, and ends at 150 s; y then has 50 left and ends at 200 s.

    The published program saw both completions at the next arrival, at 10,000 s.
    """
    jobs = job_set(job("x", 100, {"a": 1.0}), job("y", 100, {"a": 1.0}, 50), job("z", 7, {"a": 1.0}, 10_000))
    assert ideal(jobs, {"a": 1}) == pytest.approx({0: 150.0, 1: 150.0, 2: 7.0})


def test_pairs_run_at_their_own_rates():
    """0.6 y + u = 0.75 y and y + u = 1, of the pair and of x alone: 6.5217 and 2.6087 steps/s.

    x ends at 552 s, when y has 360 steps left, which it does alone at 4 a second.
    """
    jobs = job_set(job("one", 3_600, {"a": 10.0}), job("two", 1_800, {"a": 4.0}))
    assert ideal(jobs, {"a": 1}, "max_min_fairness_packed") == pytest.approx({0: 552.0, 1: 642.0})


def test_a_gang_that_fits_on_no_type_never_runs_and_ends_nothing():
    jobs = job_set(job("wide", 10, {"a": 1.0}, gang=2), job("x", 30, {"a": 1.0}))
    found = ideal(jobs, {"a": 1})
    assert set(found) == {1}


def test_most_jobs_at_once_and_jobs_that_nobody_asks_about():
    jobs = job_set(*(job(f"j{k}", 100, {"a": 1.0}) for k in range(3)))
    assert ideal(jobs, {"a": 3}, max_parallel=1) == pytest.approx({0: 100.0, 1: 200.0, 2: 300.0})
    assert set(ideal(jobs, {"a": 1}, max_parallel=1, wanted=[0])) == {0}
    before = job_set(job("x", 5, {"a": 1.0}, 1), job("y", 5, {"a": 1.0}, 10))
    assert ideal(before, {"a": 1}, start_us=3_000_000) == pytest.approx({0: 7.0, 1: 5.0})


def test_a_policy_that_remembers_and_draws_begins_anew_each_time():
    jobs = some_jobs(3)
    replay = IdealReplay(jobs, {"a": 1}, gavel_policy("gandiva").make_shares(GavelOptions()), GavelOptions())
    assert replay.jct_s() == replay.jct_s()


def some_jobs(seed: int, n: int = 6) -> JobSet:
    rng = Random(seed)
    return job_set(
        *(
            job(
                f"j{k}",
                rng.uniform(200, 3_000),
                {"a": rng.uniform(4, 9), "b": rng.uniform(1, 4)},
                rng.uniform(0, 600),
                rng.choice([1, 1, 2]),
                model=rng.choice(["one", "two"]),
                weight=rng.choice([1.0, 5.0]),
            )
            for k in range(n)
        )
    )


def by_tiny_steps(jobs: JobSet, n_nodes: dict[str, int], name: str, step_s: float) -> dict[int, float]:
    """The same by a loop that knows no events: every ``step_s`` it looks who is there, and adds up progress."""
    shares = gavel_policy(name).make_shares(GavelOptions())
    types = tuple(sorted(n_nodes))
    left = [each.work_samples for each in jobs]
    done, before, speed, now_s = {}, None, {}, 0.0
    while len(done) < len(jobs):
        there = [k for k, each in enumerate(jobs) if each.submit_us / 1e6 <= now_s and k not in done]
        if there != before and there:
            rate = np.array(
                [[jobs[k].throughput_by_type[t].table(jobs[k].max_nodes)[-1] for t in types] for k in there]
            )
            pairs = [
                (a, b)
                for a in range(len(there))
                for b in range(a + 1, len(there))
                if jobs[there[a]].max_nodes == jobs[there[b]].max_nodes
            ]
            pairs = pairs if shares.uses_pairs else []
            problem = ShareProblem(
                job=np.array(there),
                type_names=types,
                n_nodes=np.array([n_nodes[t] for t in types]),
                gang=np.array([jobs[k].max_nodes for k in there]),
                rate=rate,
                weight=np.array([jobs[k].weight for k in there]),
                steps_left=np.array([left[k] for k in there]),
                age_s=np.array([now_s - jobs[k].submit_us / 1e6 for k in there]),
                to_deadline_s=np.full(len(there), np.inf),
                price_per_hour=np.ones(len(types)),
                pair=np.array(pairs, np.int64).reshape(-1, 2),
                pair_rate=np.array(
                    [
                        [
                            TOGETHER.rates(jobs[there[a]].model, jobs[there[b]].model, jobs[there[a]].max_nodes, t)
                            for t in types
                        ]
                        for a, b in pairs
                    ]
                ).reshape(-1, len(types), 2),
            )
            found = shares.shares(problem)
            speed = {}
            for i, k in enumerate(there):
                alone = sum(rate[i, t] * found.share[i, t] for t in range(len(types)))
                paired = sum(
                    problem.pair_rate[p, t, pair.index(i)] * found.pair_share[p, t]
                    for p, pair in enumerate(pairs)
                    if i in pair
                    for t in range(len(types))
                )
                speed[k] = alone + paired
        before = there
        now_s += step_s
        for k in there:
            left[k] -= speed[k] * step_s
            if left[k] <= 0:
                done[k] = now_s - jobs[k].submit_us / 1e6
    return done


@pytest.mark.parametrize(
    "name",
    [
        "max_min_fairness",
        "max_min_fairness_perf",
        "max_min_fairness_packed",
        "finish_time_fairness_perf",
        "max_min_fairness_water_filling_perf",
        "isolated",
        "fifo_perf",
        "max_sum_throughput_perf",
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_tiny_steps_lead_to_the_same_completions(name, seed):
    jobs, n_nodes = some_jobs(seed), {"a": 2, "b": 2}
    exact, stepped = ideal(jobs, n_nodes, name), by_tiny_steps(jobs, n_nodes, name, 0.05)
    assert set(exact) == set(stepped) == set(range(len(jobs)))
    assert [exact[k] for k in exact] == pytest.approx([stepped[k] for k in exact], abs=2.0, rel=5e-3)


def run(jobs, policy, **more) -> RunResult:
    settings = ReplaySettings(100, until_done=True, **more)
    return replay_log(fixed_cluster("a=2"), jobs, policy, settings, efficiency=False, ideal=True)


def test_ever_shorter_rounds_come_ever_nearer_to_no_rounds_at_all():
    """More jobs than nodes all the time, so that rounds leave no node over that shares do not give away."""
    rng = Random(5)
    jobs = job_set(*(job(f"j{k}", rng.uniform(2_000, 9_000), {"a": 3.0}) for k in range(5)))
    off = []
    for round_s in (720.0, 180.0, 45.0, 10.0):
        found = run(jobs, gavel_policy("max_min_fairness_perf")(GavelOptions(round_s=round_s)))
        expected = found.record.summary.ideal.average_jct_s
        off.append(abs(found.record.summary.scheduling.average_jct_s / expected - 1))
    assert off[0] > 0.01
    assert max(off[1:]) < off[0] / 2
    assert off[-1] < 0.002


def test_a_run_records_the_mean_of_the_jobs_that_it_is_about():
    jobs = job_set(*(job(f"j{k}", 100 * (k + 1), {"a": 1.0}) for k in range(4)))
    found = run(jobs, gavel_policy("max_min_fairness_perf")(), measured=(1, 3))
    each = ideal(jobs, {"a": 2})
    assert found.record.summary.ideal == Ideal(n_completed=2, average_jct_s=pytest.approx((each[1] + each[2]) / 2))


def test_the_option_needs_a_cluster_and_shares():
    given = {"jobs": "gavel(n=3)", "curves": "sample", "policy": "gavel.max_min_fairness_perf"}
    found = RunOptions(cluster="v100=2", **given, ideal=True).run()
    assert found.record.summary.ideal is not None
    assert found.session.seconds.ideal_s > 0
    assert "Ideal" in str(_text(found))
    assert RunOptions(cluster="v100=2", **given).run().record.summary.ideal is None
    with pytest.raises(InputError) as of_log:
        RunOptions(events="sample", jobs="sample", policy="gavel.isolated", ideal=True).run()
    with pytest.raises(InputError) as of_policy:
        RunOptions(cluster="v100=2", **{**given, "policy": "equal-share"}, ideal=True).run()
    assert [of_log.value.column, of_policy.value.column] == ["ideal", "ideal"]
    assert "has no shares" in str(of_policy.value)


def _text(found: RunResult) -> str:
    from bfreplay.runs.summary_text import render

    return render(found)


def test_a_record_made_before_there_was_an_ideal_is_read():
    found = RunOptions(cluster="v100=1", jobs="gavel(n=1)", curves="sample", policy="gavel.isolated").run()
    earlier = found.record.summary.to_json()
    assert "ideal" not in earlier
    assert msgspec.convert(earlier, Summary).ideal is None
    seconds = {name: 1.0 for name in Seconds.__struct_fields__ if name != "ideal_s"}
    assert msgspec.convert(seconds, Seconds).ideal_s == 0.0
