"""Whole replays with a forward-looking time that is learnt: no future in it, the same bytes, decisions posed again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents
from bfreplay.milp.verify import objective_of
from bfreplay.policies import BFTrainerPolicy
from bfreplay.policies.forward_time import CANDIDATES_S
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult
from bfreplay.runs.saved_decisions import recorded_decisions
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.replay.tiny import SECOND, job, job_sets, log, logs


def random_log(mean_gap_s: float, n_changes: int, seed: int = 0) -> NodeEvents:
    """Twelve nodes, one of which changes at each event; half of them idle."""
    rng = np.random.default_rng(seed)
    times = 1.0 + np.cumsum(rng.exponential(mean_gap_s, n_changes))
    idle = np.arange(12) < 6
    changes = []
    for time_s in times.tolist():
        node = int(rng.integers(12))
        idle[node] = not idle[node]
        changes.append((time_s, node, bool(idle[node])))
    return log(12, changes, float(times[-1]) + mean_gap_s, range(6))


def unequal_jobs() -> JobSet:
    """Four jobs whose curves bend at different places: each change of the pool moves the optimum."""
    return JobSet(
        job(f"job{k}", rates=tuple(10.0 * (k + 2) * n ** (0.6 + 0.1 * k) for n in range(9)), up_s=15.0, down_s=10.0)
        for k in range(4)
    )


def run(events: NodeEvents, jobs: JobSet, t_fwd_s: float | str = "auto", **options: object) -> RunResult:
    return replay_log(events, jobs, BFTrainerPolicy(t_fwd_s), efficiency=False, bound=False, **options)


def samples(result: RunResult) -> float:
    return float(result.summary["ledger"]["samples"])


@pytest.mark.often("400.0-600")
@pytest.mark.parametrize(
    ("mean_gap_s", "n_changes"), [(8.0, 1500), pytest.param(40.0, 1500, marks=pytest.mark.thorough), (400.0, 600)]
)
def test_it_ends_near_the_best_fixed_value_however_fast_the_pool_changes(mean_gap_s, n_changes):
    events, jobs = random_log(mean_gap_s, n_changes), unequal_jobs()
    fixed = [samples(run(events, jobs, t_fwd_s, unlimited_work=True)) for t_fwd_s in CANDIDATES_S]
    assert min(fixed) < 0.97 * max(fixed), "the example no longer tells good from bad"
    assert samples(run(events, jobs, unlimited_work=True)) > 0.99 * max(fixed)


def test_what_comes_later_changes_no_decision():
    whole = random_log(20.0, 600)
    at_us = int(whole.window_start_us + (whole.window_end_us - whole.window_start_us) * 0.4)
    rows = [
        run(part, unequal_jobs()).table("decisions").to_pylist()
        for part in (whole, whole.between(whole.window_start_us, at_us))
    ]
    n_before = sum(row["time"].timestamp() * 1e6 < at_us for row in rows[0])
    assert n_before > 100
    assert len({row["t_fwd_s"] for row in rows[0][:n_before]}) > 20, "it learns in this example"
    assert rows[0][:n_before] == rows[1][:n_before]


def test_a_run_is_repeated_to_the_byte_by_a_policy_that_has_run_before(tmp_path):
    events, jobs = random_log(20.0, 300), unequal_jobs()
    policy = BFTrainerPolicy("auto")
    for name, using in (("one", policy), ("two", policy), ("three", BFTrainerPolicy("auto"))):
        replay_log(events, jobs, using, efficiency=False, bound=False, out=tmp_path / name)
    for file in ("run.json", "decisions.parquet", "jobs.parquet", "allocations.parquet"):
        one, *others = ((tmp_path / name / file).read_bytes() for name in ("one", "two", "three"))
        assert all(other == one for other in others), file


def test_each_decision_is_posed_again_with_the_time_it_was_made_with(tmp_path):
    events, jobs = random_log(20.0, 200), unequal_jobs()
    made = run(events, jobs, out=tmp_path / "run")
    column = made.table("decisions")["t_fwd_s"].to_pylist()
    assert len(set(column[-50:])) > 5
    wanted = list(range(0, len(column), 7))
    for found in recorded_decisions(tmp_path / "run", wanted, events=events, jobs=jobs):
        assert found.about["t_fwd_s"] == column[found.index]
        recorded = found.about["answer"]["objective"]
        assert objective_of(found.problem, found.counts) == pytest.approx(recorded, rel=1e-12)
    (other,) = recorded_decisions(made, [wanted[-1]], events=events, jobs=jobs, t_fwd_s=33.0)
    assert other.about["t_fwd_s"] == 33.0


def test_the_seeded_first_map_was_posed_to_nobody_and_is_posed_with_the_default():
    events, jobs = random_log(20.0, 60), unequal_jobs()
    made = run(events, jobs, settings=ReplaySettings(semantics=Semantics.PUBLISHED))
    assert made.table("decisions")["t_fwd_s"][0].as_py() is None
    first, later = recorded_decisions(made, [0, 40], events=events, jobs=jobs)
    assert first.about["t_fwd_s"] == 120.0
    assert later.about["t_fwd_s"] == made.table("decisions")["t_fwd_s"][40].as_py()


def test_the_record_tells_what_was_learnt_with_and_the_summary_the_word():
    made = run(random_log(20.0, 30), unequal_jobs())
    policy = made.record.to_json()["config"]["policy"]
    assert policy["forward_time"]["name"] == "auto"
    assert "t_fwd_s" not in policy
    assert "bftrainer, decided by exact, T_fwd auto" in render(made)


def test_dedicated_nodes_are_measured_with_the_default():
    made = replay_log(random_log(20.0, 60), unequal_jobs(), BFTrainerPolicy("auto"), unlimited_work=True)
    assert made.summary["efficiency"]["t_fwd_s"] == 120.0
    assert 0 < made.summary["efficiency"]["u"] <= 1.05


def test_it_goes_with_curves_that_are_learnt():
    events, jobs = random_log(20.0, 300), unequal_jobs()
    results = [
        replay_log(events, jobs, LearningPolicy(BFTrainerPolicy("auto")), efficiency=False, bound=False)
        for _ in range(2)
    ]
    assert samples(results[0]) == samples(results[1]) > 0
    index = results[0].table("decisions").num_rows - 1
    (found,) = recorded_decisions(results[0], [index], events=events, jobs=jobs)
    assert found.about["t_fwd_s"] == results[0].table("decisions")["t_fwd_s"][index].as_py()


def test_logs_without_events_and_single_jobs_are_no_matter():
    quiet = log(4, [], 1000.0, range(4))
    assert samples(run(quiet, JobSet([job("only")]))) == pytest.approx(40_000.0)
    assert samples(run(quiet, unequal_jobs())) == samples(run(quiet, unequal_jobs(), 120.0))
    nobody = log(2, [(10, 0, True), (20, 0, False)], 30.0)
    assert samples(run(nobody, JobSet([job("only")]))) == pytest.approx(100.0)


@settings(max_examples=examples(40))
@given(
    events=logs(),
    jobs=job_sets(),
    semantics=st.sampled_from(list(Semantics)),
    max_parallel=st.integers(1, 4),
    unlimited_work=st.booleans(),
)
def test_any_small_run_ends_with_times_between_the_candidates(events, jobs, semantics, max_parallel, unlimited_work):
    made = run(events, jobs, settings=ReplaySettings(max_parallel, semantics), unlimited_work=unlimited_work)
    for row in made.table("decisions").select(["t_fwd_s", "solver"]).to_pylist():
        if row["solver"] == "exact":
            assert CANDIDATES_S[0] <= row["t_fwd_s"] <= CANDIDATES_S[-1]
        else:  # nothing to decide on, or the seeded first map
            assert row["t_fwd_s"] is None
    assert made.record["config"]["window_end_us"] == 300 * SECOND
