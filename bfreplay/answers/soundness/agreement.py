"""What the entries of a record have to be beside one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bfreplay.answers.saved import NODE_US_PER_HOUR
from bfreplay.answers.soundness.damage import damaged
from bfreplay.answers.soundness.scheduling import of_scheduling
from bfreplay.replay.job_outcomes import ENDED
from bfreplay.replay.result import RunResult

_ROUNDING = 1e-9
_HOURS = {
    "idle": ("idle_node_us",),
    "useful": ("useful_node_us",),
    "rescaling": ("rescaling_node_us",),
    "lost_to_preemption": ("preempted_node_us",),
    "unused": ("free_node_us", "stalled_node_us"),
    "unused_free": ("free_node_us",),
    "unused_stalled": ("stalled_node_us",),
}
_HELD = ("useful_node_us", "rescaling_node_us", "preempted_node_us", "stalled_node_us")
_Entry = tuple[str, Any, Any, str]
"""Path, what is there, what it has to be, and why."""


def check_agreement(run: RunResult) -> None:
    """Raise ``InputError`` where one entry of the record, or of the session, contradicts another, or a table."""
    for entries, file in ((_of_record(run), run.kind.record_file), (_of_session(run), run.kind.more_documents[0])):
        for path, value, expected, why in entries:
            if not _agree(value, expected):
                raise damaged(
                    run, "the run contradicts itself", file=file, column=path, value=value,
                    expected=f"{expected!r}, {why}",
                )  # fmt: skip


def _agree(value: Any, expected: Any) -> bool:
    """Equal; numbers with a fraction but for their rounding."""
    if isinstance(value, float) and isinstance(expected, float):
        return abs(value - expected) <= _ROUNDING * max(abs(value), abs(expected))
    return bool(value == expected)


def _of_record(run: RunResult) -> Iterator[_Entry]:
    config, summary = run.record["config"], run.summary
    start_us, end_us = config["window_start_us"], config["window_end_us"]
    yield "config.window_end_us", end_us, max(end_us, start_us + 1), "a time after the window's start"
    yield "summary.duration_s", float(summary["duration_s"]), (end_us - start_us) / 1e6, "the length of the window"
    yield from _of_ledger(run)
    mean_idle = summary["ledger"]["idle_node_us"] / (end_us - start_us)
    yield "summary.equivalent_nodes", float(summary["equivalent_nodes"]), mean_idle, "idle node time over the window's"
    yield from _of_yardsticks(summary)
    yield from _of_times(run)
    yield from of_scheduling(run)
    by_type = run.record["inputs"]["events"]["metadata"].get("node_types")
    if by_type:
        n_nodes = sum(map(len, by_type.values()))
        yield "inputs.events.n_nodes", run.record["inputs"]["events"]["n_nodes"], n_nodes, "the nodes of all types"
    if run.has_table("pool") and summary.get("most_idle_nodes") is not None:
        most = int(np.asarray(run.table("pool")["n_idle"]).max(initial=0))
        yield "summary.most_idle_nodes", summary["most_idle_nodes"], most, "the most in the table 'pool'"


def _of_ledger(run: RunResult) -> Iterator[_Entry]:
    ledger = run.summary["ledger"]
    held = sum(ledger[name] for name in _HELD)
    why = "the sum of all labels of node time"
    yield "summary.ledger.idle_node_us", ledger["idle_node_us"], held + ledger["free_node_us"], why
    why = "the sum of the labels of held node time"
    yield "summary.ledger.allocated_node_us", ledger["allocated_node_us"], held, why
    for name, parts in _HOURS.items():
        hours = sum(ledger[part] for part in parts) / NODE_US_PER_HOUR
        path = f"summary.ledger.node_hours.{name}"
        yield path, float(ledger["node_hours"][name]), hours, f"{' + '.join(parts)} in hours"
    costs = ledger["rescale_samples"] + ledger["preempt_samples"]
    scale = _ROUNDING * max(ledger["gross_samples"], costs, abs(ledger["samples"]))
    spent = ledger["samples"] + costs + ledger["trimmed_samples"]
    for name, other, why in (
        ("gross_samples", spent, "progress, costs and what was trimmed"),
        ("samples_by_job", ledger["samples"], "samples"),
    ):
        value = ledger[name]
        yield f"summary.ledger.{name}", value, value if abs(value - other) <= scale else other, f"the sum of {why}"


def _of_yardsticks(summary: dict[str, Any]) -> Iterator[_Entry]:
    samples = float(summary["ledger"]["samples"])
    efficiency, bound, learning = (summary.get(name) or {} for name in ("efficiency", "bound", "learning"))
    for name, found in (("efficiency", efficiency), ("learning", learning)):
        if found:
            yield f"summary.{name}.samples", float(found["samples"]), samples, "those of the ledger"
            path, done_us = f"summary.{name}.last_finish_us", summary.get("last_finish_us")
            yield path, found.get("last_finish_us"), done_us, "that of the summary"
    for path, share, whole, part in (
        ("summary.efficiency.u", efficiency.get("u"), efficiency.get("dedicated_samples"), samples),
        ("summary.bound.share", bound.get("share"), bound.get("samples"), samples),
    ):
        if share is not None:
            yield path, float(share), part / whole if whole else None, "samples over those of the yardstick"
    if learning.get("lost") is not None:
        known = learning["known_samples"]
        lost = 1 - samples / known if known else None
        yield "summary.learning.lost", float(learning["lost"]), lost, "the share of the samples with known curves"


def _of_times(run: RunResult) -> Iterator[_Entry]:
    config, summary, jobs = run.record["config"], run.summary, run.table("jobs")
    start_us, end_us = config["window_start_us"], config["window_end_us"]
    for path in (
        "efficiency.dedicated_last_finish_us", "bound.earliest_finish_us", "learning.known_last_finish_us",
        "scores.best_time_us",
    ):  # fmt: skip
        part, name = path.split(".")
        time_us = (summary.get(part) or {}).get(name)
        if time_us is not None:
            yield f"summary.{path}", time_us, min(max(time_us, start_us), end_us), "a time in the window"
    done_us = summary.get("last_finish_us")
    if done_us is not None:
        column = jobs["ended" if "ended" in jobs.column_names else "finished"].cast("int64").to_pylist()
        has_left = all(status in ENDED for status in jobs["status"].to_pylist())
        last_us = max((time_us for time_us in column if time_us is not None), default=None)
        yield "summary.last_finish_us", done_us, last_us if has_left else None, "when the last job left"


def _of_session(run: RunResult) -> Iterator[_Entry]:
    slowest = run.session.get("slowest_decision")
    if slowest is not None:
        longest = float(np.asarray(run.table("timings")["decide_s"]).max(initial=0.0))
        yield "slowest_decision.decide_s", float(slowest["decide_s"]), longest, "the longest in the table 'timings'"
