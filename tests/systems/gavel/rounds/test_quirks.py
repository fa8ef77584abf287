"""Published simulations in which a defect shows, without the defect."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest

from bfreplay.runs import RunResult
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.systems.gavel.quirks import Quirks
from tests.parity.gavel_records import completion_s, record_of, replay_scenario
from tests.systems.gavel.rounds.small_rounds import give, rules, run_round, who, with_jobs

NO_QUIRKS = Quirks()


@dataclass(frozen=True)
class WithQuirks(GavelOptions):
    """Options with some of the published defects."""

    some: Quirks = NO_QUIRKS

    @property
    def quirks_of_rounds(self) -> Quirks:
        return self.some


def again(shared: Path, folder: Path, scenario: str, least_reset_s: float = 1920.0, **quirks: bool) -> RunResult:
    """First come, first served."""
    policy = gavel_policy("fifo_perf")(WithQuirks(least_reset_s=least_reset_s, some=Quirks(**quirks)))
    return replay_scenario(record_of(shared, scenario), folder, policy)


def busy_s(run: RunResult) -> float:
    """Busy seconds of all nodes by the policy's own count, which the ledger does not have."""
    return run.summary["policy"]["busy_node_s"]


def test_no_defect_is_repeated_unless_asked_for():
    assert not any(getattr(Quirks(), field.name) for field in fields(Quirks))
    assert all(getattr(Quirks.published(), field.name) for field in fields(Quirks))


def test_a_job_of_100_s_does_not_wait_for_the_next_arrival(shared: Path, tmp_path: Path) -> None:
    stalled = completion_s(again(shared, tmp_path, "quirk_stall", reset_at_zero_means_never=True))
    assert stalled[1] == pytest.approx(200_000.0, abs=1.0)
    # one node: job 0 until 2,000 s, then job 1 for 100 s, then job 2 for 500 s; they came at 0, 100 and 400 s
    for least_reset_s in (0.0, 1920.0):
        jct_s = completion_s(again(shared, tmp_path, "quirk_stall", least_reset_s))
        assert [jct_s[job] for job in range(4)] == pytest.approx([2000.0, 2000.0, 2200.0, 600.0], abs=1.0)


def test_an_idle_gap_is_not_busy(shared: Path, tmp_path: Path) -> None:
    stale = again(shared, tmp_path, "quirk_idle_gap", stale_round_start=True)
    end_s = 50_900.0
    assert busy_s(stale) / (2 * end_s) == pytest.approx(0.52, abs=0.005)
    # 1,500, 2,200 and 900 s of two nodes
    assert busy_s(again(shared, tmp_path, "quirk_idle_gap")) == pytest.approx(4600.0, abs=0.4)


def test_a_gang_ends_with_its_last_few_steps(shared: Path, tmp_path: Path) -> None:
    assert completion_s(again(shared, tmp_path, "quirk_few_steps", few_steps_fail=True))[0] is None
    jct_s = completion_s(again(shared, tmp_path, "quirk_few_steps"))
    # three rounds of 25,182 steps and the last 2 of 75,548, which take 0.03 s
    assert jct_s[0] == pytest.approx(3 * 359.997336 + 2 / 69.95, abs=1e-3)
    assert None not in jct_s.values()


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
