"""The recorded decisions of BFTrainer's published program as allocation problems."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.experiments.parity.recorded.records import golden
from bfreplay.milp.problem import AllocationProblem

Record = dict[str, Any]


@cache
def decision_records(shared: Path) -> tuple[Record, ...]:
    """Read all recorded decisions of golden/bftrainer/decisions.json.gz, in file order."""
    return tuple(golden(shared, "bftrainer/decisions"))


def problem_of(record: Record) -> AllocationProblem:
    """Return the problem of a decision: gain is T_fwd times the curve, a loss the current rate times the cost."""
    current = np.array([len(nodes) for nodes in record["current_nodes"]], dtype=np.int64)
    min_nodes = np.array(record["min_nodes"], dtype=np.int64)
    max_nodes = np.array(record["max_nodes"], dtype=np.int64)
    width = 1 + max(int(max_nodes.max(initial=0)), int(current.max(initial=0)))
    counts = np.arange(width, dtype=np.float64)
    objective = np.array(
        [
            np.interp(counts, nodes, values)
            for nodes, values in zip(record["curve_nodes"], record["curve_objective"], strict=True)
        ]
    ).reshape(len(current), width)
    running = current >= min_nodes
    rate_now = np.where(running, objective[np.arange(len(current)), current], 0.0)
    problem = AllocationProblem(
        current=current,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        gain=record["t_fwd_s"] * objective,
        scale_up_loss=rate_now * np.array(record["scale_up_cost_s"]),
        scale_down_loss=rate_now * np.array(record["scale_down_cost_s"]),
        capacity=int(record["n_nodes"]),
    )
    problem.validate()
    return problem
