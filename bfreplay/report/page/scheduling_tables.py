"""Tables of what jobs held of each type of nodes, and of how long jobs of each weight took."""

from __future__ import annotations

from collections import Counter

from bfreplay.replay.result import RunResult
from bfreplay.replay.scheduling import cost_of, weight_text
from bfreplay.report.tables import Column, ShownTable

_TYPES = (
    Column("node_type", "node type"),
    Column("nodes", "nodes", "count"),
    Column("held_node_hours", "node-hours held", "amount"),
    Column("price", "dollars a node-hour", "number"),
    Column("cost", "cost, dollars", "amount"),
)
_WEIGHTS = (
    Column("weight", "weight"),
    Column("n_jobs", "jobs", "count"),
    Column("n_completed", "completed", "count"),
    Column("average_jct_s", "submit to finish, mean", "seconds"),
)


def scheduling_tables(run: RunResult) -> list[ShownTable]:
    """Types where the log tells them apart, and weights where jobs have several."""
    told = run.summary.scheduling
    tables = []
    by_type = run.record.inputs.events.metadata.node_types
    if by_type:
        prices = run.record.config.prices
        rows = [
            [name, len(by_type[name]), hours, prices.get(name), cost_of({name: hours}, prices)]
            for name, hours in told.node_hours_by_type.items()
        ]
        tables.append(ShownTable("Node types", _TYPES, rows))
    jobs = run.table("jobs").select(["weight", "finished"])
    measured = slice(*(run.record.config.measured or (None,)))
    weights = jobs["weight"].to_pylist()[measured]
    if len(set(weights)) > 1:
        is_done = jobs["finished"].is_valid().to_pylist()[measured]
        there = Counter(map(weight_text, weights))
        done = Counter(weight_text(weight) for weight, ended in zip(weights, is_done, strict=True) if ended)
        rows = [
            [weight, n, done[weight], told.average_jct_s_by_weight.get(weight)]
            for weight, n in sorted(there.items(), key=lambda each: float(each[0]))
        ]
        tables.append(ShownTable("Weights of jobs", _WEIGHTS, rows))
    return tables
