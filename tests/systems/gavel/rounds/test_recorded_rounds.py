"""Every published simulation of Gavel, repeated round by round."""

from pathlib import Path

import numpy as np
import pytest

from bfreplay.systems.gavel.rounds.state import NOBODY
from tests.systems.gavel.rounds.recorded_simulation import (
    SCENARIOS,
    Outcome,
    Recorded,
    Scenario,
    rules_of,
    scenario,
    simulate,
)

NEAR = {"rel": 0.0, "abs": 1e-6}


def repeat(case: Scenario, policy: str) -> Outcome:
    """The published simulation again."""
    packs = policy == "gandiva" or policy.endswith("packed")
    events = case.results[policy]["allocation_events"]
    return simulate(case, rules_of(policy, case), packs, Recorded(events))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_round_of_a_published_simulation_is_repeated(shared: Path, name: str) -> None:
    case = scenario(shared, name)
    for policy, record in case.results.items():
        out = repeat(case, policy)
        where = f"{name}, {policy}"
        assert [(pytest.approx(e["t"], **NEAR), e["round"]) for e in record["allocation_events"]] == out.resets, where
        assert len(out.rounds) == record["num_rounds"] == len(record["rounds"]), where
        for k, (start_s, round_, then) in enumerate(zip(out.starts_s, out.rounds, record["rounds"], strict=True)):
            assert start_s == pytest.approx(then["t"], **NEAR), f"{where}, round {k}"
            names = [",".join(str(j) for j in member if j != NOBODY) for member in round_.member]
            assert sorted(names) == sorted(then["run"]), f"{where}, round {k}"
            for task, job in enumerate(names):
                theirs = then["run"][job]
                got = {
                    "type": case.type_names[round_.node_type[task]],
                    "workers": round_.nodes_of(task).tolist(),
                    "steps": [s for s, j in zip(round_.steps[task], round_.member[task], strict=True) if j != NOBODY],
                    "finish": pytest.approx(round_.finish_s[task], **NEAR),
                }
                assert theirs == got, f"{where}, round {k}, job {job}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_sum_of_a_published_simulation_is_repeated(shared: Path, name: str) -> None:
    case = scenario(shared, name)
    for policy, record in case.results.items():
        out = repeat(case, policy)
        where = f"{name}, {policy}"
        for job, theirs in record["jobs"].items():
            assert out.jct_s[int(job)] == (theirs["jct"] and pytest.approx(theirs["jct"], **NEAR)), (
                f"{where}, job {job}"
            )
        done = [jct for jct in out.jct_s.values() if jct is not None]
        assert np.mean(done) == pytest.approx(record["average_jct"], **NEAR), where
        assert out.end_s == pytest.approx(record["total_duration_from_t0"], **NEAR), where
        assert len(out.resets) == record["num_allocation_computations"], where
        assert out.state.extensions == record["lease_extensions"], where
        assert out.state.opportunities == record["lease_extension_opportunities"], where
        busy = [record["per_worker_busy_seconds"][str(node)] for node in range(case.node_type.shape[0])]
        assert out.busy_s.tolist() == pytest.approx(busy, **NEAR), where
        assert out.utilisation == pytest.approx(record["cluster_utilization"], rel=0, abs=1e-9), where


def test_recorded_priorities_and_deficits_are_repeated(shared: Path) -> None:
    n_compared = 0
    for name in SCENARIOS:
        case = scenario(shared, name)
        for policy, record in case.results.items():
            if "priorities" not in record["rounds"][0]:
                continue
            out = repeat(case, policy)
            for seen, then in zip(out.priorities, record["rounds"], strict=True):
                jobs = [str(job) for job in seen["job"][:, 0]]
                for theirs, got in ((then["priorities"], seen["priority"]), (then["deficits"], seen["deficit"])):
                    for j, kind in enumerate(case.type_names):
                        expected = dict(zip(jobs, got[:, j], strict=True))
                        assert theirs[kind] == pytest.approx(expected, rel=1e-9, abs=1e-9), f"{name}, {policy}"
                        n_compared += len(expected)
    assert n_compared > 1000
