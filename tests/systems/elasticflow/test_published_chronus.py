"""The published Chronus: its rules by hand, and its lease model against brute force."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from bfreplay.errors import InputError, SolverUnavailableError
from bfreplay.milp.backends import BackendAnswer, SolveOptions
from bfreplay.milp.backends.backend import Capabilities
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus
from bfreplay.systems.elasticflow.published.chronus import ChronusRun, chronus
from bfreplay.systems.elasticflow.published.leases import (
    LeaseMilp,
    LeaseProblem,
    LeaseRequest,
    Plan,
    fits,
    interval_model,
    pack,
    postpone,
)
from bfreplay.systems.elasticflow.published.program import NO_DEADLINE_S, Servers, TraceJob

ONE_GPU = Servers(1, 1)


def job(index: int, submit_s: int, duration_s: int, deadline_s: int, gpus: int = 1) -> TraceJob:
    """A job that does an iteration a second."""
    return TraceJob(index, submit_s, deadline_s, gpus, duration_s, duration_s, {gpus: 1.0}, gpus)


def ends(run: ChronusRun) -> dict[int, float]:
    """Return the end of each job."""
    return {each.index: each.end_s for each in run.ends}


# --- admission and leases by hand: leases and slots of 240 s; 240 s of work on one GPU need two leases (264 s)


@pytest.mark.parametrize(("deadline_s", "refused"), [(719, [0]), (720, [])])
def test_a_job_is_accepted_if_its_enlarged_duration_fits_in_whole_leases(deadline_s: int, refused: list[int]) -> None:
    assert chronus([job(0, 0, 240, deadline_s)], ONE_GPU, 240).refused == refused


def test_a_start_counts_in_the_enlarged_duration() -> None:
    # 1.1 * 218 = 239.8 would be one lease; with 0.5 s more of work, 1.1 * 218 * (1 + 0.5 / 240) = 240.3 are two
    assert [chronus([job(0, 0, s, 480)], ONE_GPU, 240).refused for s in (217, 219)] == [[], [0]]


@pytest.mark.parametrize(("gpus", "refused"), [(1, [1]), (2, [])])
def test_accepted_jobs_hold_their_leases_against_later_ones(gpus: int, refused: list[int]) -> None:
    jobs = [job(0, 0, 240, 720), job(1, 0, 240, 720)]
    assert chronus(jobs, Servers(1, gpus), 240).refused == refused


@pytest.mark.parametrize(("gpus", "refused"), [(3, [1]), (2, [])])
def test_leases_of_three_gpus_are_planned_as_leases_of_four(gpus: int, refused: list[int]) -> None:
    jobs = [job(0, 0, 240, 720, gpus=gpus), job(1, 0, 240, 720)]
    assert chronus(jobs, Servers(1, 4), 240).refused == refused


def test_accepted_jobs_that_are_not_planned_yet_hold_leases_in_later_slots() -> None:
    jobs = [job(0, 0, 240, 720), job(1, 60, 240, 720)]
    assert chronus(jobs, ONE_GPU, 60, slot_s=60).refused == [1]


@pytest.mark.parametrize(("submit_s", "deadline_s", "refused"), [(0, 720, [0, 1]), (0, 1200, [0]), (1, 960, [0])])
def test_a_refused_job_holds_back_those_of_its_slot_only(submit_s: int, deadline_s: int, refused: list[int]) -> None:
    jobs = [job(0, 0, 240, 719), job(1, submit_s, 240, deadline_s)]
    assert chronus(jobs, ONE_GPU, 240).refused == refused


def test_an_accepted_job_is_judged_by_the_start_of_the_lease_in_which_its_deadline_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # it gets no lease, runs from 720 s on, when it can no longer be in time, and ends between 960 s and 1199 s
    monkeypatch.setattr(
        "bfreplay.systems.elasticflow.published.chronus.pack",
        lambda requests, free, n_gpus: [np.zeros(each.available, dtype=np.bool_) for each in requests],
    )
    run = chronus([job(0, 0, 300, 1199)], ONE_GPU, 240)
    (end,) = run.ends
    assert (end.start_s, end.end_s, end.is_met) == (720.0, 1021.0, False)
    assert (run.refused, run.accepted, run.declined) == ([], 0, 1)


def test_a_refused_job_is_judged_by_its_own_deadline() -> None:
    run = chronus([job(0, 0, 300, 310)], ONE_GPU, 240)
    (end,) = run.ends
    assert (end.start_s, end.end_s, end.is_met) == (0.0, 301.0, True)
    assert (run.refused, run.accepted, run.declined) == ([0], 1, 0)


def test_waiting_before_a_lease_counts_as_progress() -> None:
    # five leases, planned for 1200 s on; the credit makes every other one superfluous
    published = chronus([job(0, 0, 960, 2400)], ONE_GPU, 240)
    assert ends(published) == {0: 1921.5}
    assert (published.starts, published.stops) == ({0: 3}, {0: 2})
    assert [each.time_s for each in published.moments if each.running] == [1200.0, 1680.0, 2160.0]


def test_the_credit_may_end_a_short_job_before_it_starts() -> None:
    (end,) = chronus([job(0, 0, 66, 2400)], ONE_GPU, 240).ends
    assert (end.start_s, end.end_s) == (2160.0, 1986.5)


def test_a_job_without_acceptance_is_started_anew_at_each_lease() -> None:
    run = chronus([job(0, 0, 600, 700, gpus=2)], Servers(1, 2), 240)
    assert (run.starts, run.stops) == ({0: 3}, {0: 2})
    assert ends(run) == {0: 600 + 3 * 1.0}
    assert [each.running[0].overhead_s for each in run.moments if each.running] == [1.0, 1.0, 1.0]


def test_of_jobs_without_acceptance_those_that_can_be_in_time_run_first_then_short_ones() -> None:
    late, long, short = job(0, 0, 240, 100), job(1, 0, 480, 600), job(2, 0, 240, 500)
    first = chronus([late, long, short], ONE_GPU, 240).moments[0]
    assert list(first.running) == [2]


def test_a_job_that_outlasts_its_enlarged_duration_runs_first_however_late() -> None:
    # 8 s on 64 GPUs and 3.5 s to start, enlarged to 8 s: not done after 10 s, and stopped by the lease at 240 s
    late, other = job(0, 230, 8, 235, gpus=64), job(1, 240, 100, 345, gpus=64)
    run = chronus([late, other], Servers(8, 8), 10, slot_s=10)
    assert run.refused == [0, 1]
    assert ends(run) == {0: 230 + 8 + 2 * 3.5, 1: 250 + 100 + 3.5}


def test_of_equal_requests_the_one_of_the_longer_job_gets_the_later_leases() -> None:
    # job 0 holds the only GPU when the others arrive, so none of them is started, but they are put in order
    jobs = [job(0, 0, 240, 720), job(1, 240, 240, 1680), job(2, 240, 300, 1680)]
    run = chronus(jobs, ONE_GPU, 240)
    assert ends(run) == {0: 240.5, 1: 720.5, 2: 1260.5}  # each 240 s earlier: the wait before its lease is credited


def test_jobs_get_the_lowest_free_gpus() -> None:
    jobs = [job(0, 0, 100, 10), job(1, 0, 50, 10), job(2, 120, 60, 130)]
    run = chronus(jobs, Servers(1, 2), 60, slot_s=60)
    assert [sorted((k, each.gpus) for k, each in moment.running.items()) for moment in run.moments] == [
        [(0, (0,)), (1, (1,))],
        [(0, (0,))],
        [(2, (0,))],
        [],
    ]


def test_large_jobs_are_placed_first() -> None:
    moment = chronus([job(0, 0, 100, 10), job(1, 0, 100, 10, gpus=2)], Servers(1, 3), 240).moments[0]
    assert {index: each.gpus for index, each in moment.running.items()} == {0: (2,), 1: (0, 1)}


@pytest.mark.parametrize(
    ("check_s", "lease_s", "slot_s"), [(1, 240, 240), (0, 240, 240), (60, 90, 240), (60, 240, 90), (10, 30, 30)]
)
def test_checks_that_miss_leases_or_slots_are_refused(check_s: int, lease_s: int, slot_s: int) -> None:
    with pytest.raises(InputError, match="slot_s"):
        chronus([job(0, 0, 240, 720)], ONE_GPU, check_s, lease_s=lease_s, slot_s=slot_s)


@pytest.mark.parametrize("bad", [job(0, 0, 240, NO_DEADLINE_S), job(0, 0, 240, 720, gpus=2)])
def test_jobs_that_cannot_be_planned_are_refused(bad: TraceJob) -> None:
    with pytest.raises(InputError, match="job 0"):
        chronus([bad], ONE_GPU, 240)


# --- greedy packing


def test_packing_takes_the_latest_leases_wide_requests_first() -> None:
    requests = [LeaseRequest(1, 2, 3), LeaseRequest(2, 1, 3)]
    plans = pack(requests, np.array([2, 1], dtype=np.int64), 2)
    assert [None if each is None else each.tolist() for each in plans] == [[True, True, False], [False, False, True]]


def test_of_requests_as_wide_those_with_little_slack_then_with_late_deadlines_come_first() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    by_slack = pack([LeaseRequest(1, 1, 3), LeaseRequest(1, 3, 4)], nothing, 1)
    assert [each is not None and np.flatnonzero(each).tolist() for each in by_slack] == [[0], [1, 2, 3]]
    by_deadline = pack([LeaseRequest(1, 1, 2), LeaseRequest(1, 2, 3)], nothing, 1)
    assert [each is not None and np.flatnonzero(each).tolist() for each in by_deadline] == [[0], [1, 2]]


def test_a_request_that_does_not_fit_takes_nothing() -> None:
    requests = [LeaseRequest(2, 3, 3), LeaseRequest(1, 2, 3)]
    free = np.array([1, 2, 2], dtype=np.int64)
    assert [each is None for each in pack(requests, free, 2)] == [True, False]
    assert not fits(requests, free, 2)
    assert fits(requests[1:], free, 2)


def test_a_postponed_request_fits_with_the_earliest_deadline_that_bisection_finds() -> None:
    assert postpone([LeaseRequest(1, 2, 2), LeaseRequest(1, 2, 2)], np.zeros(0, dtype=np.int64), 1).available == 4


def test_bisection_begins_at_the_deadline_asked_for() -> None:
    # greedy packing is not monotone: a deadline after 3 leases would do as well, but 4 were asked for
    others = [LeaseRequest(1, 3, 3), LeaseRequest(2, 1, 1), LeaseRequest(2, 1, 4), LeaseRequest(2, 2, 5)]
    nothing = np.zeros(0, dtype=np.int64)
    assert [fits([*others, LeaseRequest(2, 2, last)], nothing, 4) for last in (3, 4, 5)] == [True, False, True]
    assert postpone([*others, LeaseRequest(2, 2, 4)], nothing, 4).available == 5


# --- the lease model


def best_first_lease(problem: LeaseProblem) -> int | None:
    """GPUs of the best first lease, by trying all plans; ``None`` where there is none."""
    best: int | None = None
    length = int(problem.available.max())
    choices = [
        [np.isin(np.arange(length), each) for each in itertools.combinations(range(available), needed)]
        for available, needed in zip(problem.available.tolist(), problem.needed.tolist(), strict=True)
    ]
    for plan in itertools.product(*choices):
        used = problem.gpus @ np.array(plan)
        if (used <= problem.n_gpus).all():
            first = int(used[0])
            best = first if best is None else (max if problem.fill_first else min)(best, first)
    return best


def first_lease(requests: Sequence[LeaseRequest], plans: list[Plan] | None) -> int | None:
    """GPUs that plans use in the first lease."""
    return None if plans is None else sum(each.gpus * int(plan[0]) for each, plan in zip(requests, plans, strict=True))


def is_kept(requests: Sequence[LeaseRequest], plans: list[Plan], n_gpus: int) -> bool:
    """Return whether plans give each job its leases and no lease more GPUs than exist."""
    used: Counter[int] = Counter()
    for each, plan in zip(requests, plans, strict=True):
        if plan.shape != (each.available,) or int(plan.sum()) != each.needed:
            return False
        for lease in np.flatnonzero(plan).tolist():
            used[lease] += each.gpus
    return all(gpus <= n_gpus for gpus in used.values())


def random_requests(rng: np.random.Generator) -> list[LeaseRequest]:
    """Two to four jobs and at most five leases."""
    requests = []
    for _ in range(rng.integers(2, 5)):
        available = int(rng.integers(1, 6))
        gpus = int(rng.choice([1, 2, 3, 4]))
        requests.append(LeaseRequest(gpus, int(rng.integers(1, available + 1)), available))
    return requests


@pytest.mark.parametrize("fill_first", [True, False])
def test_plans_are_feasible_and_as_good_as_the_best_of_all_plans(*, fill_first: bool) -> None:
    rng = np.random.default_rng(5)
    solver = LeaseMilp(time_limit_s=1200.0)
    outcomes: Counter[bool] = Counter()
    for _ in range(150):
        requests = random_requests(rng)
        best = best_first_lease(LeaseProblem.of(requests, 4, fill_first=fill_first))
        plans = solver.plans(requests, 4, fill_first=fill_first)
        assert first_lease(requests, plans) == best
        assert plans is None or is_kept(requests, plans, 4)
        outcomes[plans is None] += 1
    assert min(outcomes[True], outcomes[False]) > 20


def test_counts_that_cannot_be_spread_over_leases_are_no_answer() -> None:
    # all in the two later leases would leave no GPU free, but three jobs in both of them leave one GPU in each
    requests = [LeaseRequest(2, 1, 3), *[LeaseRequest(1, 2, 3)] * 3]
    problem = LeaseProblem.of(requests, 4, fill_first=False)
    model, _, _ = interval_model(problem, problem.deadlines())
    assert model.n_columns == 8
    assert best_first_lease(problem) == 1
    plans = LeaseMilp(time_limit_s=1200.0).plans(requests, 4, fill_first=False)
    assert plans is not None
    assert is_kept(requests, plans, 4)
    assert first_lease(requests, plans) == 1


def test_jobs_that_cannot_be_in_time_have_no_plan() -> None:
    assert LeaseMilp().plans([LeaseRequest(1, 2, 1)], 1, fill_first=True) is None
    assert LeaseMilp().plans([LeaseRequest(1, 2, 2), LeaseRequest(1, 1, 2)], 1, fill_first=True) is None


class Breaks:
    """A back end whose answers break every rule."""

    name = "breaks"
    capabilities = Capabilities(sos=False)

    def available(self) -> str:
        return ""

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        return BackendAnswer(SolverStatus.OPTIMAL, np.ones(model.n_columns), 0.0, 0.0)


class NeverAnswers(Breaks):
    """A back end that finds nothing."""

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        return BackendAnswer(SolverStatus.NO_SOLUTION)


class Unavailable(Breaks):
    """A back end that does not work here."""

    def available(self) -> str:
        return "not installed"


@pytest.mark.parametrize("backend", [Breaks, NeverAnswers])
def test_wrong_or_missing_answers_of_a_back_end_are_no_plans(backend: type) -> None:
    solver = LeaseMilp(f"{backend.__module__}:{backend.__name__}")
    try:
        assert solver.plans([LeaseRequest(1, 1, 3)], 1, fill_first=True) is None
    finally:
        solver.close()


def test_a_back_end_that_does_not_work_here_is_refused() -> None:
    with pytest.raises(SolverUnavailableError, match="not installed"):
        LeaseMilp(f"{Unavailable.__module__}:{Unavailable.__name__}")
