"""Columns of the table of results: what is taken of each run's summary, and as what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NODE_HOURS = ("idle", "useful", "rescaling", "lost_to_preemption", "unused", "unused_free", "unused_stalled")
JOB_STATUSES = (
    "finished", "pruned", "failed", "stopped", "running", "waiting", "paused", "queued", "not_submitted",
)  # fmt: skip

Take = Callable[[Mapping[str, Any]], Any]


def _at(*path: str) -> Take:
    """Take what stands at a path; ``None`` where a part of it is not there."""

    def take(summary: Mapping[str, Any]) -> Any:
        found: Any = summary
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    return take


OF_SUMMARY: Mapping[str, tuple[str, Take]] = {
    "duration_s": ("double", _at("duration_s")),
    "equivalent_nodes": ("double", _at("equivalent_nodes")),
    "samples": ("double", _at("ledger", "samples")),
    "u": ("double", _at("efficiency", "u")),
    "dedicated_samples": ("double", _at("efficiency", "dedicated_samples")),
    "bound_samples": ("double", _at("bound", "samples")),
    "share_of_bound": ("double", _at("bound", "share")),
    "learning_lost": ("double", _at("learning", "lost")),
    "best_score": ("double", _at("scores", "best_score")),
    **{f"{name}_node_hours": ("double", _at("ledger", "node_hours", name)) for name in NODE_HOURS},
    "n_pool_events": ("int64", _at("n_pool_events")),
    "n_decisions": ("int64", _at("n_decisions")),
    "n_fallbacks": ("int64", lambda summary: sum(summary["fallbacks"].values())),
    "n_preemptions": ("int64", _at("n_preemptions")),
    "n_grown": ("int64", _at("n_grown")),
    "n_shrunk": ("int64", _at("n_shrunk")),
    **{f"jobs_{status}": ("int64", _at("jobs", status)) for status in JOB_STATUSES},
    "n_measured_jobs": ("int64", _at("scheduling", "n_jobs")),
    "n_measured_completed": ("int64", _at("scheduling", "n_completed")),
    "average_jct_s": ("double", _at("scheduling", "average_jct_s")),
    "makespan_s": ("double", _at("scheduling", "makespan_s")),
    "utilisation": ("double", _at("scheduling", "utilisation")),
    "cost": ("double", _at("scheduling", "cost")),
    "average_rho": ("double", _at("scheduling", "finish_time_fairness", "average_rho")),
    "largest_rho": ("double", _at("scheduling", "finish_time_fairness", "largest_rho")),
    "share_of_rho_above_1": ("double", _at("scheduling", "finish_time_fairness", "share_above_1")),
    "deadlines_met": ("int64", _at("deadlines", "met")),
    "deadlines_missed": ("int64", _at("deadlines", "missed")),
    "median_submit_to_start_s": ("double", _at("job_times", "submit_to_start", "median_s")),
    "median_submit_to_finish_s": ("double", _at("job_times", "submit_to_finish", "median_s")),
    "last_finish": ("timestamp", _at("last_finish_us")),
    "log_verdict": ("string", _at("log_warnings", "verdict")),
    "warnings": ("strings", _at("warnings")),
}
"""Column to its type and where its value stands in the summary of a run with its warnings."""

OF_STATE = ("id", "status", "error")

RESULT_COLUMNS = frozenset((*OF_STATE, *OF_SUMMARY))
"""Every column but those of what varies."""

TIMINGS: Mapping[str, tuple[str, Take]] = {
    "started": ("string", _at("started")),
    "worker": ("string", _at("worker")),
    "load_s": ("double", _at("load_s")),
    **{
        name: ("double", _at("seconds", name))
        for name in ("parse_s", "decide_s", "loop_s", "write_s", "dedicated_s", "bound_s")
    },
    "peak_memory_mb": ("double", _at("peak_memory_mb")),
}
"""The same for what was measured, which stands in the session of a run."""
