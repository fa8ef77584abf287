"""Random replays are checked by a second engine, and the second engine finds what is wrong."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from tests.replay.random_replays import case_of, run, run_and_check, run_and_check_portions
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

    def fails(seed, folder):
        raise AssertionError(f"seed {seed} differs")

    monkeypatch.setattr("tests.replay.random_replays.run_and_check", fails)
    done, failed = script.check_seeds(7, 1)
    assert done.total() == 0
    ((seed, text),) = failed
    assert seed == 7
    assert "seed 7 differs" in text
