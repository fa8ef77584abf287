"""Rates of pairs that a packed policy estimates: the estimator, and what a replay does with its estimates."""

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.policies.catalogue import learns
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.run_record import LearningCost
from bfreplay.scalability import TabulatedCurve
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.pair_estimates import PairEstimator, RelativeRates, complete_matrix
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.workload import Colocation, ElasticJob, JobSet
from tests.parity.gavel_records import estimator_records, throughputs_of


@pytest.fixture(scope="module")
def relative(shared):
    table = throughputs_of(shared)
    return RelativeRates.of(table.colocation(), table.node_types)


def matches_of(relative, n_references, profiled, seed, *, published):
    estimator = PairEstimator(relative, profiled, n_references, seed, reads_wrong_columns=published)
    return estimator.references, [estimator.match(k) for k in range(len(relative.job_types))]


def recognised(found):
    references, matches = found
    return np.mean([matches[k] == k for k in references])


EVERY = [
    (published, n_references, profiled)
    for published in (False, True)
    for n_references in (26, 16, 8)
    for profiled in (1.0, 0.8, 0.6, 0.4, 0.2)
]


@pytest.mark.thorough
def test_over_twenty_seeds_as_many_types_are_recognised_as_were_recorded_over_five(shared, relative):
    """In standard errors of the difference of the two means: of 30 rows one or two are above two by chance."""
    off = []
    for published, n_references, profiled in EVERY:
        asked = n_references, profiled
        records = estimator_records(shared, published=published)
        record = next(each for each in records if (each["n_reference"], each["profiling"]) == asked)
        shares = [recognised(matches_of(relative, *asked, seed, published=published)) for seed in range(20)]
        error = np.std(shares, ddof=1) * np.sqrt(1 / 20 + 1 / record["seeds"])
        difference = abs(np.mean(shares) - record["match_rate_of_reference_types"])
        off.append(difference / error if difference else 0.0)
    assert max(off) < 3
    assert np.mean(np.array(off) < 2) >= 0.95


def test_all_types_are_recognised_by_a_whole_profile_and_a_defect_shows_where_references_are_few(relative):
    assert recognised(matches_of(relative, 16, 1.0, 3, published=False)) == 1.0
    assert recognised(matches_of(relative, 16, 1.0, 3, published=True)) < 0.5
    assert recognised(matches_of(relative, 26, 1.0, 3, published=True)) == 1.0


def test_a_matrix_of_low_rank_is_completed_and_a_row_of_nothing_stays_zero():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 1, (8, 2)) @ rng.uniform(0, 1, (2, 40))
    is_measured = np.ones_like(truth)
    is_measured[-1, ::2] = 0
    found = complete_matrix(np.where(is_measured > 0, truth, 99.0), is_measured, np.random.RandomState(0))
    assert np.abs(found - truth).max() < 0.1
    is_measured[-1] = 0
    assert not complete_matrix(truth, is_measured, np.random.RandomState(0))[-1].any()


def test_a_job_that_is_not_measured_at_all_is_taken_for_a_random_reference(relative):
    """Nothing is known of it: the draws after the sample and the 3 x 8 measurements choose."""
    references, matches = matches_of(relative, 8, 0.0, 5, published=False)
    assert set(matches) <= set(references)
    assert len(set(matches)) > 3


# -- in a replay: three models, of which "big" cannot share the node with "one" ----------------------------------------

TOGETHER = Colocation(
    {
        ("one", "two", 1, "a"): (6.0, 3.0),
        ("one", "one", 1, "a"): (5.0, 5.0),
        ("two", "two", 1, "a"): (3.0, 3.0),
        ("big", "two", 1, "a"): (6.0, 3.0),
        ("big", "big", 1, "a"): (5.0, 5.0),
    },
    {("one", 1, "a"): 10.0, ("two", 1, "a"): 4.0, ("big", 1, "a"): 10.0},
)


def job(name: str, model: str, steps: float, submit_s: float = 0.0, gang: int = 1) -> ElasticJob:
    curve = TabulatedCurve([0, gang], [0, TOGETHER.alone[model, 1, "a"]])
    return ElasticJob(
        name=name,
        submit_us=int(submit_s * 1e6),
        min_nodes=gang,
        max_nodes=gang,
        scale_up_cost_s=0,
        scale_down_cost_s=0,
        work_samples=steps,
        throughput=curve,
        throughput_by_type={"a": curve},
        model=model,
    )


def run(jobs, options: GavelOptions, colocation=TOGETHER, **more) -> RunResult:
    every = JobSet(jobs, submit_is_relative=True, colocation=colocation)
    policy = gavel_policy("max_min_fairness_packed")(options)
    return replay_log(fixed_cluster("a=1"), every, policy, ReplaySettings(100, until_done=True), bound=False, **more)


def jct_s(result: RunResult) -> list[float]:
    return [round(value) for value in (result.jobs["finished"] - result.jobs["submitted"]).dt.total_seconds()]


def test_relative_rates_are_those_of_the_pairs_over_those_alone():
    found = RelativeRates.of(TOGETHER, ("a",))
    assert found.job_types == ("one", "two", "big")
    assert found.rate.tolist() == [[0.5, 0.6, 0.0], [0.75, 0.75, 0.75], [0.0, 0.6, 0.5]]


def test_with_every_type_measured_in_full_the_run_is_that_with_known_rates():
    jobs = [job("x", "one", 3_600), job("y", "two", 1_800), job("z", "big", 3_000, 100)]
    result = run(jobs, GavelOptions(profiled=1.0))
    known = run(jobs, GavelOptions())
    assert jct_s(result) == jct_s(known)
    learning = result.record.summary.learning
    assert learning is not None
    assert learning.known_average_jct_s == known.record.summary.scheduling.average_jct_s
    assert learning.known_average_jct_s == result.record.summary.scheduling.average_jct_s
    assert known.record.summary.learning is None
    assert result.record.config.policy["profiled"] == 1.0


def test_a_pair_progresses_at_its_true_rates_whatever_is_believed():
    """All are taken for "two", which shares well: x and y do share, at 6 and 3 steps/s, not at 7.5 and 3."""
    options = GavelOptions(profiled=0.0, references=1, seed=_seed_with_reference("two"))
    result = run([job("x", "one", 3_600), job("y", "two", 1_800)], options)
    assert set(result.allocations["sharing"]) == {1, 2}
    assert jct_s(result) == [600, 600]


def test_a_pair_that_cannot_share_is_found_out_in_its_first_round_and_runs_in_turns_from_then_on():
    """Believed to share, x and z are given all time as a pair, and none alone: x has the nodes that are left over.

    Shares computed anew in the second round let them take turns: z, x, z, x.
    """
    options = GavelOptions(profiled=0.0, references=1, seed=_seed_with_reference("two"))
    result = run([job("x", "one", 7_200), job("z", "big", 7_200)], options)
    assert set(result.allocations["sharing"]) == {0}
    assert jct_s(result)[0] < jct_s(result)[1] == 1_440
    assert jct_s(result)[0] > 720
    assert result.record.summary.policy["n_recomputations"] == 3  # at first, after the failure, after a completion


def test_a_failure_is_remembered_when_another_job_leaves():
    """w arrives and leaves while x and z are there: shares are computed for that, not for a second failure."""
    options = GavelOptions(profiled=0.0, references=1, seed=_seed_with_reference("two"))
    jobs = [job("x", "one", 14_400), job("z", "big", 14_400)]
    alone = run(jobs, options)
    beside = run([*jobs, job("w", "two", 40, 720)], options)
    n_alone, n_beside = (each.record.summary.policy["n_recomputations"] for each in (alone, beside))
    assert n_alone == 3  # at first, after the failure, and when one of the two is done
    assert n_beside == 5


def pair_rates_asked(jobs, options, colocation=TOGETHER):
    """Rates of the first pair in each problem that the policy was asked."""
    policy = gavel_policy("max_min_fairness_packed")(options)
    asked, answer = [], policy.shares.shares

    def noting(problem):
        if problem.n_pairs:
            asked.append(problem.pair_rate[0, 0].tolist())
        return answer(problem)

    policy.shares.shares = noting
    every = JobSet(jobs, submit_is_relative=True, colocation=colocation)
    replay_log(fixed_cluster("a=1"), every, policy, ReplaySettings(100, until_done=True), efficiency=False)
    return asked


def test_shares_are_computed_with_estimates_and_with_true_rates_once_the_pair_has_run():
    """x is taken for "two", as y is: 0.75 of 10 and of 4 steps/s. At the arrival of w the two have run: 6 and 3."""
    options = GavelOptions(profiled=0.0, references=1, seed=_seed_with_reference("two"))
    jobs = [job("x", "one", 14_400), job("y", "two", 14_400), job("w", "two", 9_000, 720)]
    asked = pair_rates_asked(jobs, options)
    assert asked[:2] == [[7.5, 3.0], [6.0, 3.0]]


def test_the_pairs_of_a_job_of_a_model_that_was_not_measured_alone_have_their_true_rates():
    colocation = Colocation(
        {("one", "two", 1, "a"): (6.0, 3.0), ("two", "two", 1, "a"): (2.0, 2.0)}, {("two", 1, "a"): 4.0}
    )
    jobs = [job("x", "one", 3_600), job("y", "two", 1_800)]
    assert pair_rates_asked(jobs, GavelOptions(profiled=1.0), colocation)[0] == [6.0, 3.0]


def _seed_with_reference(name: str) -> int:
    relative = RelativeRates.of(TOGETHER, ("a",))
    wanted = (relative.job_types.index(name),)
    return next(seed for seed in range(50) if PairEstimator(relative, 0.0, 1, seed).references == wanted)


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "column"),
    [
        ("max_min_fairness_packed(profiled=1.5)", "profiled"),
        ("max_min_fairness_packed(references=3)", "references"),
        ("max_min_fairness_packed(profiled=0.5, references=0)", "references"),
        ("max_min_fairness_packed(profiled=0.5, references=27)", "references"),
        ("max_min_fairness_perf(profiled=0.5)", "profiled"),
    ],
)
def test_an_impossible_option_is_named(policy, column):
    options = RunOptions(cluster="v100=2", jobs="gavel(n=3)", curves="sample", policy=f"gavel.{policy}")
    with pytest.raises(InputError) as error:
        options.run()
    assert error.value.column == column


def test_jobs_on_several_nodes_and_rates_alone_that_are_missing_are_refused():
    with pytest.raises(InputError, match="'wide' needs 2"):
        run([job("wide", "one", 100, gang=2)], GavelOptions(profiled=0.5))
    with pytest.raises(InputError, match="none was measured on one node"):
        run([job("x", "one", 100)], GavelOptions(profiled=0.5), Colocation({("one", "one", 1, "a"): (5.0, 5.0)}))


def test_known_rates_are_compared_with_unless_efficiency_is_off():
    base = {"cluster": "v100=2", "jobs": "gavel(n=3)", "curves": "sample"}
    estimated = {**base, "policy": "gavel.max_min_fairness_packed(profiled=0.5)"}
    assert RunOptions(**estimated).run().record.summary.learning is not None
    assert RunOptions(**estimated, efficiency=False).run().record.summary.learning is None
    # so the option has an effect there, and the ids of sweeps tell the two apart
    assert "efficiency" not in RunOptions(**estimated).without_effect()
    assert "efficiency" in RunOptions(**base, policy="gavel.max_min_fairness_packed").without_effect()
    assert learns(estimated["policy"])
    assert not learns("gavel.max_min_fairness_packed")


def test_a_record_without_the_mean_completion_time_of_known_rates_is_read():
    import msgspec

    earlier = {
        "samples": 1.0,
        "known_samples": 1.0,
        "last_finish_us": None,
        "known_last_finish_us": None,
        "known_jobs": {},
        "known_best_score": None,
        "lost": 0.0,
    }
    assert msgspec.convert(earlier, LearningCost).known_average_jct_s is None
