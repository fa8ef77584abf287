"""Shockwave against its records, and what else the recorded plans show about ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bfreplay.milp.backends import SolveOptions, backend_of
from bfreplay.milp.solution import SolverStatus
from bfreplay.systems.shockwave.planner.problem import Floor, Level, counts_model, least_rounds
from bfreplay.systems.shockwave.planner.solve import backfill
from tests.parity import shockwave
from tests.parity.comparison import Table
from tests.parity.parts import check_part, parts_of
from tests.parity.shockwave_plan_records import RUNS, recorded_plans
from tests.systems.shockwave.planner.plans_by_definition import is_in_time, objective

SIMULATION = "tacc_32gpus/shockwave/simulation"


@pytest.mark.parametrize("part", parts_of("shockwave"))
def test_everything_agrees_or_differs_for_a_known_reason(shared, part):
    check_part(shared, "shockwave", part)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figure", "off"),
    [
        ("makespan", "makespan_s", 1.004),
        ("makespan", "makespan_s", 1 + 1e-8),
        ("geometric_mean_jct", "geometric_mean_jct_s", 1 + 1e-8),
        ("worst_ftf_themis", "worst_themis_rho", 1 + 1e-5),
        ("cluster_util", "utilisation", 1.004),
    ],
)
def test_a_total_that_is_a_little_off_fails(shared, monkeypatch, name, figure, off):
    read = shockwave.golden

    def changed(shared: Path, record: str):
        content = read(shared, record)
        if record != "published_results":
            return content
        results = content[SIMULATION]
        return {**content, SIMULATION: {**results, name: off * results[name]}}

    monkeypatch.setattr(shockwave, "golden", changed)
    table = Table()
    shockwave.compare_simulation(SIMULATION, table, shared)
    (item,) = [item for tally in table.tallies.values() for item in tally.unexplained]
    assert item.startswith(f"{SIMULATION}: {figure} differs by ")
    assert "," not in item


@pytest.mark.often("first12")
@pytest.mark.parametrize("name", RUNS)
def test_recorded_plans_are_worth_what_the_record_says(shared: Path, name: str) -> None:
    """Our objective is the published one. Their solver may plan fewer epochs than fit, so theirs is worth no less."""
    compared = 0
    for each in recorded_plans(shared, name)[0]:
        if not each.is_comparable:
            continue
        compared += 1
        call = each.solve["calls"][min(1, len(each.solve["calls"]) - 1)]
        theirs = objective(each.problem, each.level.weight, each.level.k, each.theirs)
        assert each.values.at(each.level, each.theirs.sum(axis=1)) == pytest.approx(theirs, rel=1e-9, abs=1e-12)
        ours = objective(each.problem, each.level.weight, each.level.k, each.plan.runs)
        assert each.values.at(each.level, each.plan.runs.sum(axis=1)) == pytest.approx(ours, rel=1e-9, abs=1e-12)
        assert call["obj"] - 1e-6 <= theirs <= -call["bound"] + 1e-6 * max(1.0, abs(call["bound"]))
    assert compared == {"first12": 9, "first20": 23, "first32": 14, "first12-F5": 37}[name]


@pytest.mark.often("first12")
@pytest.mark.parametrize("name", RUNS)
def test_finish_time_constraints_can_be_met_where_they_could(shared: Path, name: str) -> None:
    plans, _ = recorded_plans(shared, name)
    found = [each.plan.calls[0].status is not SolverStatus.INFEASIBLE for each in plans]
    assert found == [each.solve["calls"][0]["status"] == "optimal" for each in plans]
    for each, is_met in zip(plans, found, strict=True):
        assert len(each.plan.calls) == (2 if is_met else 3)
        assert is_in_time(each.problem, each.plan.runs) or not is_met


@pytest.mark.often("first12")
@pytest.mark.parametrize("name", RUNS)
def test_recorded_plans_become_the_recorded_schedules(shared: Path, name: str) -> None:
    plans, _ = recorded_plans(shared, name)
    for each in plans:
        problem, jobs = each.problem, each.solve["jobs"]
        schedule = backfill(each.theirs, problem.gang, lambda _, r=problem.remaining_s: r, problem.n_gpus)
        found = [[jobs[position] for position in positions] for positions in schedule]
        assert found == [sorted(round_) for round_ in each.solve["schedule"]], each.solve["round"]


@pytest.mark.often("first12")
@pytest.mark.parametrize("name", RUNS)
def test_plans_are_as_good_as_those_of_the_full_model(shared: Path, name: str) -> None:
    """Within the gap, and by weights that a solver can see."""
    gap = SolveOptions(1200.0, 1e-6)
    needed_rounds = 0
    for each in recorded_plans(shared, name)[0]:
        problem, values, is_met = each.problem, each.values, len(each.plan.calls) == 2
        level = Level(np.ones(problem.n_jobs), problem.k) if is_met else problem.levels(published=False)[-1]
        least = least_rounds(values) if is_met else np.zeros_like(problem.gang)
        floor = None
        if each.plan.n_levels > 1:  # what the plan gives urgent jobs is the most that they can have
            urgent = problem.levels(published=False)[0]
            most = backend_of("highs").solve(counts_model(values, urgent, least, None, per_round=True).model, gap)
            found = values.at(urgent, each.plan.runs.sum(axis=1))
            assert found >= values.at(urgent, least) + most.objective - 1e-6 * max(1.0, abs(found))
            floor = Floor(urgent, found)
        full = counts_model(values, level, least, floor, per_round=True)
        answer = backend_of("highs").solve(full.model, gap)
        best = values.at(level, least) + answer.objective
        assert each.plan.calls[-2].objective >= best - 1e-3 * answer.objective - 1e-9, each.solve["round"]
        needed_rounds += each.plan.calls[-2].per_round
    assert needed_rounds == {"first12": 0, "first20": 0, "first32": 0, "first12-F5": 2}[name]
