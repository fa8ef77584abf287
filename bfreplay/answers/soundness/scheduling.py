"""What the metrics of scheduling have to be beside the tables, the ledger and the prices of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bfreplay.answers.saved import NODE_US_PER_HOUR, allocations_of
from bfreplay.replay.placed_runs import node_types_of
from bfreplay.replay.result import RunResult
from bfreplay.replay.scheduling import cost_of, fairness_of, mean, weight_text

_RAN = ("useful_node_us", "rescaling_node_us", "preempted_node_us")


def of_scheduling(run: RunResult) -> Iterator[tuple[str, Any, Any, str]]:
    """Path, what is there, what it has to be, and why; nothing for a run of an older version."""
    told = run.summary.get("scheduling")
    if told is None:
        return
    ledger, hours = run.summary["ledger"], _node_hours(run)
    ran = sum(ledger[name] for name in _RAN) / ledger["idle_node_us"] if ledger["idle_node_us"] else None
    by_weight = _by_weight(run)
    yield from _of_object("average_jct_s_by_weight", told, by_weight, "the mean of the table 'jobs'")
    yield from _of_object("node_hours_by_type", told, hours, "those of the table 'allocations'")
    expected = {
        **_of_jobs(run),
        "utilisation": (ran, "useful, rescaling and preempted node time over the idle one"),
        "cost": (cost_of(hours, run.record["config"].get("prices", {})), "node-hours by type at their prices"),
    }
    for name, (value, why) in expected.items():
        yield f"summary.scheduling.{name}", told[name], value, why
    yield from _of_fairness(run, told["finish_time_fairness"])


def _of_object(
    name: str, told: Mapping[str, Any], expected: Mapping[str, Any], why: str
) -> Iterator[tuple[str, Any, Any, str]]:
    path = f"summary.scheduling.{name}"
    yield path, sorted(told[name]), sorted(expected), "what there is"
    for key, value in told[name].items():
        yield f"{path}.{key}", float(value), expected[key], why


def _measured(run: RunResult) -> slice:
    """Rows of the table of jobs that the run is about."""
    return slice(*(run.record["config"].get("measured") or (None,)))


def _column(run: RunResult, name: str) -> list[Any]:
    column = run.table("jobs")[name]
    values = column.cast("int64") if name in ("submitted", "finished") else column
    found: list[Any] = values.to_pylist()[_measured(run)]
    return found


def _jct_s(run: RunResult) -> list[float | None]:
    """Of each job that the run is about; ``None`` for one that did not finish."""
    times = zip(_column(run, "submitted"), _column(run, "finished"), strict=True)
    return [None if finished is None else (finished - submitted) / 1e6 for submitted, finished in times]


def _of_jobs(run: RunResult) -> dict[str, tuple[Any, str]]:
    jct_s = _jct_s(run)
    done = [each for each in jct_s if each is not None]
    last_us = max((each for each in _column(run, "finished") if each is not None), default=0)
    makespan_s = (last_us - run.record["config"]["window_start_us"]) / 1e6 if done and len(done) == len(jct_s) else None
    return {
        "n_jobs": (len(jct_s), "the jobs of the table 'jobs' that the run is about"),
        "n_completed": (len(done), "those of them that finished"),
        "average_jct_s": (mean(done), "their mean time from submission to finish"),
        "makespan_s": (makespan_s, "when the last of them finished, null unless all did"),
    }


def _by_weight(run: RunResult) -> dict[str, float | None]:
    found: dict[str, list[float]] = {}
    for weight, jct_s in zip(_column(run, "weight"), _jct_s(run), strict=True):
        if jct_s is not None:
            found.setdefault(weight_text(weight), []).append(jct_s)
    return {weight: mean(each) for weight, each in found.items()}


def _node_hours(run: RunResult) -> dict[str, float]:
    """Held, by type; of every type of the log."""
    held = allocations_of(run)
    node_us = np.zeros(len(held.type_names), dtype=np.int64)
    np.add.at(node_us, held.node_type, held.count * held.charged_us)
    by_name = dict(zip(held.type_names, node_us.tolist(), strict=True))
    return {name: by_name.get(name, 0) / NODE_US_PER_HOUR for name in node_types_of(run)}


def _of_fairness(run: RunResult, told: Mapping[str, Any] | None) -> Iterator[tuple[str, Any, Any, str]]:
    isolated = _column(run, "isolated_jct_s")
    rhos = [
        here / there for here, there in zip(_jct_s(run), isolated, strict=True) if here is not None and there
    ]  # fmt: skip
    path, why = "summary.scheduling.finish_time_fairness", "as the column 'isolated_jct_s' of the table 'jobs' has it"
    if told is None:
        yield path, None, fairness_of(rhos) if rhos else None, why
        return
    for name, value in fairness_of(rhos).items():
        yield f"{path}.{name}", told[name], value, why
