"""Random replays are checked by a second engine, and the second engine finds what is wrong."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.replay.random_cases import case_of, portions_case_of
from tests.replay.random_replays import run, run_and_check, run_and_check_portions
from tests.replay.second_checks import check_tables
from tests.replay.second_engine import check

SCRIPT = Path(__file__).resolve().parents[2] / "fuzz/replays.py"


@pytest.mark.often("0", "100")
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_the_second_engine_computes_the_same_runs(first, tmp_path):
    for seed in range(first, first + 20):
        run_and_check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in range(20, 100, 20))]
)
def test_the_second_engine_computes_the_same_runs_of_published_systems_and_portions(first, tmp_path):
    for seed in range(first, first + 20):
        run_and_check_portions(seed, tmp_path)


@pytest.mark.often("0")
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_the_second_engine_computes_the_same_runs_with_real_costs(first, tmp_path):
    for seed in range(first, first + 20):
        run_and_check(seed, tmp_path, with_costs=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in range(20, 60, 20))]
)
def test_the_second_engine_computes_the_same_runs_of_published_systems_with_real_costs(first, tmp_path):
    for seed in range(first, first + 20):
        run_and_check_portions(seed, tmp_path, with_costs=True)


@pytest.mark.parametrize("drawn", [case_of, portions_case_of])
def test_cases_with_real_costs_have_every_kind_of_cost_and_are_never_published(drawn):
    cases = [drawn(seed, with_costs=True) for seed in range(200)]
    assert not any(case.rules.is_published or all(job.is_published for job in case.jobs) for case in cases)
    jobs = [job for case in cases for job in case.jobs]
    assert {(job.saves, job.pauses) for job in jobs if job.every_us} == set(
        product(["never", "on-notice", "on-resize"], [False, True])
    )
    assert any(job.start_s and not (job.up_s or job.down_s or job.every_us) for job in jobs)
    assert any(job.every_us and not (job.start_s or job.up_s or job.down_s) for job in jobs)
    assert any(isinstance(job.up_s, float) and 0 < job.every_us < job.up_s * 1e6 for job in jobs)
    assert any(isinstance(job.down_s, dict) for job in jobs)
    assert any(len(job.counts) > 2 for job in jobs)
    rules = [case.rules for case in cases]
    assert {None, 0, 30_000_000} <= {rule.notice_us for rule in rules}
    assert any(rule.settle_us and rule.on_runs for rule in rules)


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A run of a policy that decides on counts, in which jobs rescale, are preempted and finish."""
    folder = tmp_path_factory.mktemp("run")
    for seed in range(1000):
        case = case_of(seed)
        has_plain_costs = all(job.is_published for job in case.jobs)
        if case.policy == "bftrainer" and has_plain_costs and not case.rules.is_published and case.log.types is None:
            result = run(case, folder)
            summary = result.summary
            jobs = result.table("jobs").to_pandas()
            lost = jobs["preemption_cost_samples"].sum()
            has_grown = (jobs["n_scale_ups"] > jobs["n_starts"]).any()
            n_finished = summary["jobs"]["finished"]
            if lost > 0 and has_grown and summary["n_scale_ups"] > 5 and summary["n_scale_downs"] and n_finished > 1:
                return case, result
    raise AssertionError("no such case")


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("up_s", lambda job: job.up_s + 1),
        ("down_s", lambda job: job.down_s + 1),
        ("work", lambda job: job.work * 1.001),
        ("submit_us", lambda job: job.submit_us - 1),
        ("rates", lambda job: {"any": [rate * 1.001 for rate in job.rates["any"]]}),
    ],
)
def test_a_run_of_other_jobs_is_found(checked, field, change):
    case, result = checked
    fresh = case_of(case.seed)
    jobs = [replace(job, **{field: change(job)}) for job in fresh.jobs]
    with pytest.raises(AssertionError):
        check(fresh.log, jobs, fresh.rules, result)


def test_a_run_of_another_log_is_found(checked):
    case, result = checked
    fresh = case_of(case.seed)
    log = replace(fresh.log, changes=fresh.log.changes[1:])
    with pytest.raises(AssertionError, match="idle"):
        check_tables(log, fresh.jobs, result)


def test_a_decision_that_is_not_optimal_is_found(tmp_path):
    for seed in range(1000):
        case = case_of(seed)
        if case.policy == "bftrainer" and case.rules.solves_own_objective and not case.unlimited_work:
            short_sighted = run(replace(case, t_fwd_s=0.01), tmp_path)
            table = short_sighted.table("decisions")
            if table["counts"] != run(case, tmp_path).table("decisions")["counts"]:
                break
    column = table.schema.get_field_index("t_fwd_s")
    short_sighted.tables["decisions"] = table.set_column(column, "t_fwd_s", [[case.t_fwd_s] * table.num_rows])
    with pytest.raises(AssertionError, match=r"objective|optimum"):
        check(case.log, case.jobs, case.rules, short_sighted)


def test_the_script_counts_its_replays_and_names_seeds_that_fail(monkeypatch):
    specification = importlib.util.spec_from_file_location("fuzz_replays", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    done, failed = script.check_seeds(0, 3)
    assert (done.total(), failed) == (3, [])

    def fails(seed, folder, *, with_costs):
        raise AssertionError(f"seed {seed} differs")

    monkeypatch.setattr("tests.replay.random_replays.run_and_check", fails)
    done, failed = script.check_seeds(7, 1)
    assert done.total() == 0
    ((seed, text),) = failed
    assert seed == 7
    assert "seed 7 differs" in text
