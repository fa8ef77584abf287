"""Every recorded simulation of the published program, through the replay engine."""

from pathlib import Path
from typing import Any

import pytest

from bfreplay.experiments.parity.recorded.gavel import (
    SCENARIOS,
    RecordedPolicy,
    RecordedShares,
    completion_s,
    record_of,
    recorded_rounds,
    replay_scenario,
)

_ROUNDING_S = 1e-6
"""Of one round: the replay's clock is in whole microseconds, the published one in seconds with rounding of its own."""


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    record = record_of(shared, request.param)
    folder = tmp_path_factory.mktemp("recorded")
    found = []
    for name, result in record["results"].items():
        policy = RecordedPolicy(name, RecordedShares(name, result["allocation_events"]), record["seed"])
        run = replay_scenario(record, folder, policy, record_nodes=True)
        found.append((name, result, policy, run))
    return found


def test_every_round_has_the_recorded_jobs_on_the_recorded_workers_for_the_recorded_steps(scenario) -> None:
    for name, result, policy, _ in scenario:
        recorded = recorded_rounds(result)
        assert len(policy.rounds) == len(recorded), name
        for k, ((time_s, ran), (there_s, there)) in enumerate(zip(policy.rounds, recorded, strict=True)):
            assert time_s == pytest.approx(there_s, abs=(k + 1) * _ROUNDING_S), (name, k)
            assert ran == there, (name, k)


def test_every_job_completes_when_it_did(scenario) -> None:
    for name, result, _, run in scenario:
        found = completion_s(run)
        assert len(found) == len(result["jobs"])
        for job, there in result["jobs"].items():
            if there["jct"] is None:
                assert found[int(job)] is None, (name, job)
                assert run.jobs["status"][int(job)] == "failed"
            else:
                assert found[int(job)] == pytest.approx(there["jct"], abs=len(result["rounds"]) * _ROUNDING_S), name


def test_shares_are_recomputed_and_leases_extended_as_often(scenario) -> None:
    for name, result, policy, _ in scenario:
        asked = [event for event in result["allocation_events"] if event["allocation"]]
        assert policy.counts["n_recomputations"] == len(asked), name
        assert policy.counts["lease_extensions"] == result["lease_extensions"], name
        assert policy.counts["lease_opportunities"] == result["lease_extension_opportunities"], name


def test_nodes_are_as_busy(scenario) -> None:
    """Two nodes a row: the published one counts the gap before a stale round as busy (``stale_round_start``)."""
    for name, result, policy, run in scenario:
        end_s = result["total_duration_from_t0"]
        there = sum(result["per_worker_busy_seconds"].values()) / len(result["per_worker_busy_seconds"]) / end_s
        busy_s = policy.counts["busy_node_s"] / len(result["per_worker_busy_seconds"])
        assert busy_s / end_s == pytest.approx(there, rel=1e-9), name
        if result["cluster_utilization"] is not None:
            assert there == pytest.approx(result["cluster_utilization"], rel=1e-9), name
        ledger = run.summary["ledger"]
        true = (ledger["useful_node_us"] + ledger["rescaling_node_us"]) / ledger["idle_node_us"]
        assert true <= there * (1 + 1e-6), name
