"""Measures of a run in each bin of time (an hour, by default)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay.datasets.idleness.pool import StepColumns
from bfreplay.errors import InputError
from bfreplay.result_folders.records import table_by
from bfreplay.runs.comparison_tables import HOUR_WORDS
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR, SavedAllocations
from bfreplay.runs.run_result import RunResult

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

US_PER_S = 1_000_000
MOST_BINS = 100_000
MEASURES = tuple(HOUR_WORDS)
"""Measures of a bin, in the order of the table ``hours``."""


def bin_edges(start_us: int, end_us: int, bin_s: float) -> Ints:
    """Return (T + 1,) edges in microseconds since the epoch, from the start of the window; the last bin may be shorter.

    Raises
    ------
    InputError
        There would be more than ``MOST_BINS``.
    """
    step = round(bin_s * US_PER_S)
    n_bins = max(1, -(-(end_us - start_us) // step))
    if n_bins > MOST_BINS:
        raise InputError(
            f"there would be {n_bins:,} bins",
            column="bin",
            value=bin_s,
            expected=f"at most {MOST_BINS:,}",
            fix="use longer bins (--bin)",
        )
    return np.append(start_us + step * np.arange(n_bins, dtype=np.int64), end_us)


@dataclass(frozen=True, slots=True, eq=False)
class RunHours:
    """One run in T bins.

    Parameters
    ----------
    edge_us : (T + 1,) int64
        Bins, in microseconds since the epoch.
    values
        A ``(T,)`` float array for each of ``MEASURES``.
    """

    edge_us: Ints
    values: dict[str, Floats]


def run_hours(run: RunResult, edge_us: Ints, idle_node_hours: Floats | None = None) -> RunHours:
    """Compute the measures of ``run`` in each bin; ``idle_node_hours`` (T,) is by default its ``best_known_idle``.

    - ``samples``: progress since the previous row of the table ``decisions``, split over bins in proportion to time.
      The ledger's samples less the sum of all rows belong to the time after the last row, so that the bins add up to
      the samples of the run, to rounding.
    - ``held_node_hours``: allocated node-hours, exact, from the table ``allocations``.
    - ``free_node_hours``: idle less allocated node-hours.
    - ``rescale_cost_samples``, ``preemption_cost_samples``: costs charged in the bin, worked off a little later.
    - ``n_scale_ups``, ``n_scale_downs``, ``n_preemptions``: rescales and preemptions of single jobs.

    A bin includes its begin but not its end; the last bin includes both.
    """
    rescale_cost = (
        ("rescale_cost_samples", "rescale_cost_samples"),
        ("preemption_cost_samples", "preemption_cost_samples"),
        ("n_scale_ups", "n_jobs_scaled_up"),
        ("n_scale_downs", "n_jobs_scaled_down"),
        ("n_preemptions", "n_jobs_preempted"),
    )
    rows = run.columns("decisions", "time", "samples_since_last", *(column for _, column in rescale_cost))
    time_us = times_us(rows["time"])
    samples = _floats(rows["samples_since_last"])
    bin_index = np.clip(np.searchsorted(edge_us, time_us, side="right") - 1, 0, edge_us.size - 2)
    node_us = StepColumns(edge_us)
    for step_us, count in SavedAllocations.of(run).nodes_in_parts(int(edge_us[0]), int(edge_us[-1])):
        node_us.add(step_us, count)
    node_hours = node_us.area_us.astype(np.float64) / NODE_US_PER_HOUR
    idle = best_known_idle([run], edge_us) if idle_node_hours is None else idle_node_hours
    samples_by_bin = _samples_by_bin(run, time_us, samples, edge_us)
    values = {"samples": samples_by_bin, "held_node_hours": node_hours, "free_node_hours": idle - node_hours}
    for measure, column in rescale_cost:
        in_bin = np.bincount(bin_index, weights=_floats(rows[column]), minlength=edge_us.size - 1)
        values[measure] = np.asarray(in_bin, dtype=np.float64)
    return RunHours(edge_us, values)


def _samples_by_bin(run: RunResult, time_us: Ints, samples: Floats, edge_us: Ints) -> Floats:
    until = np.append(time_us, run.record.config.window_end_us)
    since = np.append(edge_us[0], time_us)
    samples_made = np.append(samples, run.summary.ledger.samples - float(samples.sum()))
    in_bin = np.zeros(edge_us.size - 1)
    # rows without duration (the first, or the last of the published clock) belong to one bin
    is_point = until <= since
    bin_index = np.clip(np.searchsorted(edge_us, until[is_point], side="right") - 1, 0, in_bin.size - 1)
    np.add.at(in_bin, bin_index, samples_made[is_point])
    since, until, samples_made = since[~is_point], until[~is_point], samples_made[~is_point]
    return in_bin + _in_proportion(since, until, samples_made, edge_us)


def _in_proportion(since: Ints, until: Ints, amount: Floats, edge_us: Ints) -> Floats:
    """Split the amounts of consecutive intervals over the bins in proportion to time."""
    if not since.size:
        return np.zeros(edge_us.size - 1)
    # times from the first edge, which floats hold exactly
    knots = np.append(since, until[-1]) - edge_us[0]
    upto = np.concatenate([[0.0], np.cumsum(amount)])
    at_edge = np.interp((edge_us - edge_us[0]).astype(np.float64), knots.astype(np.float64), upto)
    return np.asarray(np.diff(at_edge), dtype=np.float64)


def best_known_idle(runs: Sequence[RunResult], edge_us: Ints) -> Floats:
    """Return the idle node-hours of the log in each bin (T,), from runs that replay the same log.

    Every decision has the number of idle nodes from then on, and decisions end with the last job. So the run with the
    longest jobs is used, and the rest of its ledger is spread evenly over the time after that.
    """
    start_us, end_us = int(edge_us[0]), int(edge_us[-1])
    longest = max(runs, key=lambda run: _known_until(run, start_us, end_us))
    rows = longest.columns("decisions", "time", "n_idle")
    time_us, n_idle = times_us(rows["time"]), _floats(rows["n_idle"])
    end_of_record_us = _known_until(longest, start_us, end_us)
    until = np.append(time_us[1:], end_of_record_us)[: time_us.size]
    is_span = until > time_us
    in_bin = _in_proportion(time_us[is_span], until[is_span], (n_idle * (until - time_us))[is_span], edge_us)
    unknown_us = end_us - end_of_record_us
    if unknown_us:
        n_mean = (float(longest.summary.ledger.idle_node_us) - float(in_bin.sum())) / unknown_us
        covered_us = np.diff(np.minimum(edge_us, end_of_record_us))
        in_bin = in_bin + n_mean * (np.diff(edge_us) - covered_us).astype(np.float64)
    return in_bin / NODE_US_PER_HOUR


def _known_until(run: RunResult, start_us: int, end_us: int) -> int:
    """Return the time until which the decisions of a run have the number of idle nodes."""
    time_us = times_us(run.columns("decisions", "time")["time"])
    if not time_us.size:
        return start_us
    return end_us if run.summary.last_finish_us is None else int(time_us[-1])


def hours_table(runs: Sequence[RunHours], labels: Sequence[str]) -> pa.Table:
    """Return the rows of all runs, bin by bin: ``run``, ``begin``, ``end``, ``MEASURES``."""
    n_bins = runs[0].edge_us.size - 1
    times = np.tile(runs[0].edge_us.astype("datetime64[us]"), (len(runs), 1))
    columns = (np.concatenate([run.values[measure] for run in runs]) for measure in MEASURES)
    return table_by(HOURS, [np.repeat(labels, n_bins).tolist(), times[:, :-1].ravel(), times[:, 1:].ravel(), *columns])


HOURS = pa.schema(
    [
        ("run", pa.string()),
        ("begin", pa.timestamp("us", tz="UTC")),
        ("end", pa.timestamp("us", tz="UTC")),
        *((name, pa.float64()) for name in MEASURES),
    ]
)


def times_us(column: pa.ChunkedArray) -> Ints:
    """Return a column of times without nulls in microseconds since the epoch."""
    return np.asarray(column.cast("int64"), dtype=np.int64)


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column, dtype=np.float64)
