"""Published simulations in which a defect shows, without the defect."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bfreplay.systems.gavel.quirks import Quirks
from tests.systems.gavel.rounds.recorded_simulation import Outcome, Scenario, rules_of, scenario, shares_of, simulate
from tests.systems.gavel.rounds.small_rounds import give, rules, run_round, who, with_jobs


def first_come_first_served(case: Scenario, active: NDArray[np.int64], now_s: float, n_before: int) -> Any:
    """Whole shares for the first jobs that fit, on one node type."""
    free, given = case.node_type.shape[0], {}
    for job in active:
        given[str(job)] = {case.type_names[0]: float(free >= case.gang[job])}
        free -= case.gang[job] if free >= case.gang[job] else free
    return shares_of({"allocation": given}, case)


def again(case: Scenario, least_reset_s: float = 1920.0, **quirks: bool) -> Outcome:
    """First come, first served."""
    how = rules_of("fifo_perf", case, least_reset_s=least_reset_s, quirks=Quirks(**quirks))
    return simulate(case, how, packs=False, answer=first_come_first_served)


def test_no_defect_is_repeated_unless_asked_for():
    assert not any(getattr(Quirks(), field.name) for field in fields(Quirks))
    assert all(getattr(Quirks.published(), field.name) for field in fields(Quirks))


@pytest.mark.parametrize("name", ["quirk_stall", "quirk_idle_gap", "quirk_few_steps"])
def test_the_rule_of_these_tests_is_the_published_policy(shared: Path, name: str) -> None:
    case = scenario(shared, name)
    how = rules_of("fifo_perf", case)
    out = simulate(case, how, packs=False, answer=first_come_first_served)
    record = case.results["fifo_perf"]["jobs"]
    assert out.jct_s == {int(job): told["jct"] and pytest.approx(told["jct"], abs=1e-6) for job, told in record.items()}


def test_a_job_of_100_s_does_not_wait_for_the_next_arrival(shared: Path) -> None:
    case = scenario(shared, "quirk_stall")
    assert again(case, reset_at_zero_means_never=True).jct_s[1] == pytest.approx(200_000.0, abs=1.0)
    # one node: job 0 until 2,000 s, then job 1 for 100 s, then job 2 for 500 s; they came at 0, 100 and 400 s
    for least_reset_s in (0.0, 1920.0):
        out = again(case, least_reset_s)
        assert [out.jct_s[job] for job in range(4)] == pytest.approx([2000.0, 2000.0, 2200.0, 600.0], abs=1.0)


def test_an_idle_gap_is_not_busy(shared: Path) -> None:
    case = scenario(shared, "quirk_idle_gap")
    assert again(case, stale_round_start=True).utilisation == pytest.approx(0.52, abs=0.005)
    # 1,500, 2,200 and 900 s of two nodes in 50,900 s
    out = again(case)
    assert out.utilisation == pytest.approx(4600.0 / (2 * 50_900.0), abs=1e-5)
    assert out.busy_s.tolist() == pytest.approx([2400.0, 2200.0], abs=0.2)


def test_a_gang_ends_with_its_last_few_steps(shared: Path) -> None:
    case = scenario(shared, "quirk_few_steps")
    assert again(case, few_steps_fail=True).jct_s[0] is None
    out = again(case)
    # three rounds of 25,182 steps and the last 2 of 75,548, which take 0.03 s
    assert out.jct_s[0] == pytest.approx(3 * 359.997336 + 2 / 69.95, abs=1e-3)
    assert None not in out.jct_s.values()


def test_a_job_without_shares_runs_on_nodes_that_would_stay_empty():
    how = rules(least_reset_s=1920.0)
    for quirk, expected in ((False, [("0", 0, [0]), ("1", 0, [1])]), (True, [("0", 0, [0])])):
        how = replace(how, quirks=Quirks(shareless_jobs_take_nodes=quirk))
        state = with_jobs(how, [1], [[1.0]])
        give(state, how, 0.0, [[1.0]])
        state.add_jobs(how, np.array([1]), np.array([1]), np.ones((1, 1)))
        assert who(run_round(state, how, 100.0, [0, 0])) == expected


def test_as_published_it_keeps_the_nodes_from_those_behind_it():
    # job 0 has no share of type 0 and a negative deficit there, job 1 has no shares at all: it is chosen first
    for quirk, expected in ((False, "1"), (True, None)):
        how = rules(quirks=Quirks(shareless_jobs_take_nodes=quirk))
        state = with_jobs(how, [1], [[1.0]])
        give(state, how, 0.0, [[0.0]])
        state.entries.deficit_s[0, 0] = -10.0
        state.add_jobs(how, np.array([1]), np.array([1]), np.ones((1, 1)))
        assert [job for job, _, _ in who(run_round(state, how, 100.0, [0]))] == ([expected] if expected else [])
