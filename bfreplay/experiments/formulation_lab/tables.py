"""The lab's tables, column by column; docs/formulation-lab.md explains each."""

from __future__ import annotations

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")

DECISIONS = pa.schema(
    [
        ("index", pa.int64()),
        ("time", _TIME),
        ("n_idle", pa.int64()),
        ("n_jobs", pa.int64()),
        ("n_held", pa.int64()),
        ("optimum", pa.float64()),
        ("published_optimum", pa.float64()),
        ("stratum", pa.string()),
    ]
)
ANSWERS = pa.schema(
    [
        ("decision", pa.int64()),
        ("pair", pa.string()),
        ("formulation", pa.string()),
        ("backend", pa.string()),
        ("outcome", pa.string()),
        ("process_status", pa.string()),
        ("solver_status", pa.string()),
        ("quality", pa.string()),
        ("objective", pa.float64()),
        ("bound", pa.float64()),
        ("gap", pa.float64()),
        ("posed_optimum", pa.float64()),
        ("optimum", pa.float64()),
        ("relative_loss", pa.float64()),
        ("build_s", pa.float64()),
        ("solve_s", pa.float64()),
        ("total_s", pa.float64()),
        ("columns", pa.int64()),
        ("integer_columns", pa.int64()),
        ("rows", pa.int64()),
        ("entries", pa.int64()),
        ("sets", pa.int64()),
        ("worker_lost", pa.bool_()),
        ("message", pa.string()),
    ]
)
SUMMARY = pa.schema(
    [
        ("pair", pa.string()),
        ("formulation", pa.string()),
        ("backend", pa.string()),
        ("decisions", pa.int64()),
        ("solved", pa.int64()),
        ("proven", pa.int64()),
        ("feasible", pa.int64()),
        ("wrong", pa.int64()),
        ("crashed", pa.int64()),
        ("timed_out", pa.int64()),
        ("refused", pa.int64()),
        ("error", pa.int64()),
        ("no_answer", pa.int64()),
        ("fastest", pa.int64()),
        ("build_median_s", pa.float64()),
        ("build_p95_s", pa.float64()),
        ("solve_median_s", pa.float64()),
        ("solve_p95_s", pa.float64()),
        ("total_median_s", pa.float64()),
        ("total_p95_s", pa.float64()),
        ("sgm_s", pa.float64()),
        ("times_exact", pa.float64()),
        ("columns_median", pa.float64()),
        ("rows_median", pa.float64()),
        ("entries_median", pa.float64()),
        ("gap_median", pa.float64()),
        ("gap_worst", pa.float64()),
        ("loss_median", pa.float64()),
        ("loss_worst", pa.float64()),
        ("loss_proven_worst", pa.float64()),
        ("better_than_exact", pa.int64()),
        ("workers_lost", pa.int64()),
    ]
)
PROFILE = pa.schema([("field", pa.string()), ("pair", pa.string()), ("tau", pa.float64()), ("share", pa.float64())])
TIME_BY_SIZE = pa.schema(
    [
        ("pair", pa.string()),
        ("size_from", pa.int64()),
        ("size_to", pa.int64()),
        ("decisions", pa.int64()),
        ("proven", pa.int64()),
        ("n_jobs_median", pa.float64()),
        ("n_idle_median", pa.float64()),
        ("columns_median", pa.float64()),
        ("total_median_s", pa.float64()),
    ]
)
SCHEMAS = {
    "decisions": DECISIONS,
    "answers": ANSWERS,
    "summary": SUMMARY,
    "profile": PROFILE,
    "time_by_size": TIME_BY_SIZE,
}
