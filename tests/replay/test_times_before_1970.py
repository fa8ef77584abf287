"""A log of 1969 is replayed like the same log of 2020: no time is taken for "none"."""

from dataclasses import replace

import pytest

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay.progress import Semantics
from bfreplay.workload import Colocation
from tests.replay.placed import run, typed_job

S = 1_000_000
IN_1969, IN_2020 = -20_000_000 * S, 1_580_000_000 * S
TOGETHER = Colocation({("a", "b", 1, "v100"): (7.0, 4.0), ("b", "c", 1, "v100"): (6.0, 6.0)})


def replayed(start_us, policy, **settings):
    changes = [(0, 0, True), (0, 1, True), (90, 1, False), (120, 2, True), (200, 0, False), (260, 0, True)]
    rows = [(start_us + t * S, node, NodeState.IDLE if idle else NodeState.BUSY) for t, node, idle in changes]
    events = NodeEvents.from_arrays(
        ["n0", "n1", "n2"],
        [NodeState.BUSY] * 3,
        *zip(*rows, strict=True),
        start_us,
        start_us + 400 * S,
        node_types=["v100"] * 3,
    )
    jobs = [
        replace(typed_job(name, {"v100": (0.0, 10.0, 20.0)}, work=work, up_s=2, down_s=1), submit_us=start_us + at * S)
        for name, work, at in (("a", 1_500, -50), ("b", 900, 0), ("c", 5_000, 100), ("d", 200, 350))
    ]
    made = policy_of(policy, t_fwd_s=60, solver=ExactSolver())
    together = TOGETHER if settings["semantics"] == "continuous" else None
    return run(events, jobs, made, colocation=together, **settings)


def since_the_start(result, table, start_us):
    """Rows of a table, its times as microseconds after the start of the log."""
    columns = result.table(table).to_pydict()
    return {
        name: [
            value if not hasattr(value, "timestamp") else round(value.timestamp() * S) - start_us for value in values
        ]
        for name, values in columns.items()
    }


@pytest.mark.parametrize(
    ("policy", "semantics"),
    [
        ("bftrainer", Semantics.CONTINUOUS),
        ("bftrainer", Semantics.PUBLISHED),
        ("gavel.max_min_fairness(round_s=50)", Semantics.CONTINUOUS),
        ("gavel.max_min_fairness_packed(round_s=50, published=true)", Semantics.CONTINUOUS),
    ],
)
def test_a_log_of_1969_gives_the_run_of_the_same_log_in_2020(policy, semantics):
    runs = {start: replayed(start, policy, semantics=semantics) for start in (IN_1969, IN_2020)}
    for table in ("jobs", "allocations", "decisions"):
        before, after = (since_the_start(run, table, start) for start, run in runs.items())
        assert before == after
    assert "finished" in since_the_start(runs[IN_2020], "jobs", IN_2020)["status"]
    assert runs[IN_1969].summary["ledger"] == runs[IN_2020].summary["ledger"]
