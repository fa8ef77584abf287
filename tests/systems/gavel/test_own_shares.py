"""Gavel's policies with their own shares beside the published program's, on the recorded traces."""

from pathlib import Path
from typing import Any

import pytest

from bfreplay.experiments.parity.gavel import FOLLOW_A_RULE
from bfreplay.experiments.parity.recorded.gavel import completion_s, record_of, replay_scenario
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.runs import RunResult


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


def _figures(run: RunResult) -> tuple[float, float]:
    """Average JCT and the time from 0 to the end, seconds."""
    found = [value for value in completion_s(run).values() if value is not None]
    return sum(found) / len(found), run.record["config"]["window_end_us"] / 1e6


def _run(record: dict[str, Any], folder: Path, spec: str) -> RunResult:
    return replay_scenario(record, folder, policy_of(f"gavel.{spec}", t_fwd_s=120, solver=ExactSolver()))


@pytest.mark.parametrize(
    "scenario", ["static8_single", "cont12_single", "static12_multi", "cont10_prio", "quirk_stall"]
)
def test_as_published_those_that_follow_a_rule_end_every_job_when_it_did(
    scenario: str, shared: Path, folder: Path
) -> None:
    record = record_of(shared, scenario)
    for name in FOLLOW_A_RULE:
        if name not in record["results"]:
            continue
        result = record["results"][name]
        found = completion_s(_run(record, folder, f"{name}(published=true)"))
        for job, there in result["jobs"].items():
            assert found[int(job)] == pytest.approx(there["jct"], abs=1e-3), (name, job)


@pytest.mark.parametrize("scenario", ["static8_single", "cont12_single", "static12_multi", "cont10_prio"])
def test_as_published_those_that_optimise_come_to_much_the_same(scenario: str, shared: Path, folder: Path) -> None:
    """Other shares of equal worth give other rounds: up to 6 % in the average JCT, 10 % in the end of the last job."""
    record = record_of(shared, scenario)
    for name, result in record["results"].items():
        if name in FOLLOW_A_RULE:
            continue
        jct, end = _figures(_run(record, folder, f"{name}(published=true)"))
        assert jct == pytest.approx(result["average_jct"], rel=0.06), name
        assert end == pytest.approx(result["total_duration_from_t0"], rel=0.10), name


def test_without_the_throttle_arrivals_and_completions_count_at_once_and_jobs_wait_less(
    shared: Path, folder: Path
) -> None:
    """On the recorded traces with arrivals the published program's least 1,920 s cost about a seventh of the JCT."""
    record = record_of(shared, "cont12_single")
    ratios = []
    for name in ("max_min_fairness_perf", "finish_time_fairness_perf", "fifo_perf", "max_min_fairness", "isolated"):
        here = _figures(_run(record, folder, name))[0]
        ratios.append(here / record["results"][name]["average_jct"])
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
