"""Gavel's policies without the published throttle and defects, on the recorded traces."""

from pathlib import Path
from typing import Any

import pytest

from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.runs import RunResult
from tests.parity.gavel_records import completion_s, record_of, replay_scenario


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


def _run(record: dict[str, Any], folder: Path, spec: str) -> RunResult:
    return replay_scenario(record, folder, policy_of(f"gavel.{spec}", t_fwd_s=120, solver=ExactSolver()))


def test_without_the_throttle_arrivals_and_completions_count_at_once_and_jobs_wait_less(
    shared: Path, folder: Path
) -> None:
    """On the recorded traces with arrivals the published program's least 1,920 s cost about a seventh of the JCT."""
    record = record_of(shared, "cont12_single")
    ratios = []
    for name in ("max_min_fairness_perf", "finish_time_fairness_perf", "fifo_perf", "max_min_fairness", "isolated"):
        average_s = _run(record, folder, name).summary["scheduling"]["average_jct_s"]
        ratios.append(average_s / record["results"][name]["average_jct"])
    assert max(ratios) < 0.90
    assert 0.80 < sum(ratios) / len(ratios) < 0.88


def test_without_the_defects_nobody_starves_and_gaps_are_no_work(shared: Path, folder: Path) -> None:
    stalled = completion_s(_run(record_of(shared, "quirk_stall"), folder, "fifo_perf"))
    assert max(stalled.values()) < 3_000  # 199,999 s in the published program
    gap = _run(record_of(shared, "quirk_idle_gap"), folder, "fifo_perf")
    ledger = gap.summary["ledger"]
    assert ledger["useful_node_us"] / ledger["idle_node_us"] == pytest.approx(0.0452, abs=2e-4)  # 0.52 there
    few = completion_s(_run(record_of(shared, "quirk_few_steps"), folder, "fifo_perf"))
    assert None not in few.values()  # the published program drops a job
