"""Saved runs whose policy chose the nodes of jobs, not only their number."""

from __future__ import annotations

import pyarrow.compute as pc

from bfreplay.errors import InputError
from bfreplay.replay.result import RunResult


def is_placed_by_policy(run: RunResult) -> bool:
    """Whether the policy chose nodes, not only their number, so that counts alone do not repeat its decisions."""
    words = run.table("decisions")["trigger"].cast("string").unique().to_pylist()
    return (
        len(run.record.inputs.node_types) > 1
        or _has_shared_nodes(run)
        or any("round" in word.split("+") for word in words)
    )


def refuse_placed_by_policy(run: RunResult, fix: str) -> None:
    """Raise ``InputError`` for a run whose decisions cannot be posed again; ``fix`` says what can be done instead."""
    if is_placed_by_policy(run):
        raise InputError(
            f"the policy {run.record['config']['policy']['name']!r} chose the nodes of jobs itself: there was no "
            "question of how many each gets that could be posed again",
            file=run.folder, column="policy", fix=fix,
        )  # fmt: skip


def _has_shared_nodes(run: RunResult) -> bool:
    if not run.has_table("allocations"):
        return False
    table = run.table("allocations")
    return "sharing" in table.column_names and bool(pc.any(pc.greater(table["sharing"], 0)).as_py())
