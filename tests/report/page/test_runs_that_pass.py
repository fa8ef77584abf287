"""Runs that are whole pass, whoever decided, whatever fell back, whichever version made them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import replay_log
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.report.page.document import one_run_page, write_report
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.runs.explain.little_source import Scripted

_EVENTS = log(3, [(10, 0, False), (20, 1, True), (30, 0, True), (40, 2, True), (45, 1, False)], 60, idle_first=[0])
_JOBS = JobSet([job("a", work=150.0, up_s=3.0, down_s=2.0), job("b", submit_s=5, up_s=1.0, down_s=1.0)])
_FAILURES = (
    (ProcessStatus.CRASHED, SolverStatus.UNKNOWN, Quality.NONE),
    (ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG),
    (ProcessStatus.OK, SolverStatus.FEASIBLE, Quality.FEASIBLE),
    (ProcessStatus.OK, SolverStatus.INFEASIBLE, Quality.NONE),
)


class _Moody:
    """Falls back for each reason in turn, and at last has no answer at all, or one that is not proven."""

    name = "moody"

    def __init__(self):
        self.asked = 0
        self.exact = ExactSolver()

    def solve(self, problem):
        answer = self.exact.solve(problem)
        self.asked += 1
        if self.asked <= len(_FAILURES):
            failed = Solution(None, float("nan"), float("inf"), *_FAILURES[self.asked - 1], "moody")
            return replace(answer, rejected=failed, message="why")
        if self.asked % 2:
            return replace(answer, quality=Quality.FEASIBLE)
        return Solution(
            None, float("nan"), float("inf"), ProcessStatus.TIMED_OUT, SolverStatus.UNKNOWN, Quality.NONE, "moody"
        )

    def describe(self):
        return {"name": self.name, "moods": [1, 2]}

    def close(self):
        pass


class _Stranger(EqualSharePolicy):
    def describe(self):
        return {"name": "of a stranger", "learning": "yes", "t_fwd_s": 1, "inner": {"deep": None}, "events": []}


def test_decisions_and_fallbacks_of_every_kind_add_up(tmp_path):
    run = replay_log(_EVENTS, _JOBS, BFTrainerPolicy(60.0, _Moody()))
    assert set(run.summary["fallbacks"]) == {"crashed", "wrong", "not_proven", "infeasible", "timed_out"}
    assert {"feasible", "none", "proven_by_fallback"} <= set(run.summary["decisions"])
    assert run.summary["decisions"]["proven_by_fallback"] == len(_FAILURES)
    assert sum(run.summary["decisions"].values()) == run.summary["n_decisions"]
    write_report(run, tmp_path / "page.html")


def test_a_policy_may_say_anything_of_itself_that_a_record_takes(tmp_path):
    run = replay_log(_EVENTS, _JOBS, _Stranger())
    assert run.folder is None
    assert {"unproven_by_design"} <= set(run.summary["decisions"])
    assert "of a stranger" in write_report(run, tmp_path / "page.html").read_text()


def test_the_published_clock_may_charge_more_samples_than_are_made():
    jobs = JobSet([job("a", up_s=3_000.0, down_s=2_000.0), job("b", submit_s=5, up_s=3_000.0, down_s=2_000.0)])
    run = replay_log(_EVENTS, jobs, EqualSharePolicy(), ReplaySettings(semantics=Semantics.PUBLISHED))
    assert run.summary["ledger"]["samples"] < 0
    one_run_page(run)


def test_a_run_of_a_job_source_passes_and_its_reports_are_of_it(no_jobs_run):
    one_run_page(no_jobs_run)
    run = replay_log(_EVENTS, Scripted([job("a", work=150.0)]), EqualSharePolicy())
    assert run.summary["efficiency"]["u"] is None
    assert run.summary["bound"] is None
    one_run_page(run)


@pytest.mark.parametrize("name", ["all_idle_run", "never_idle_run"])
def test_odd_runs_pass(request, name):
    one_run_page(request.getfixturevalue(name))


def test_a_run_without_baselines_or_end_passes():
    one_run_page(replay_log(_EVENTS, _JOBS, efficiency=False, bound=False))
    one_run_page(replay_log(_EVENTS, _JOBS, unlimited_work=True))
