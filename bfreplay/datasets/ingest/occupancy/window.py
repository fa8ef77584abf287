"""Window: the part of a log without missing jobs at its edges.

A log selected by submit or start times begins with a machine that seems empty; one selected by end times ends with one.
So the window lies where jobs both start and end, and begins (ends) where the load reaches half of its usual value there
(the median).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord, Window
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.times import US, iso_utc
from bfreplay.errors import InputError

BINS = 2_000
FEWEST_BINS = 20
USUAL_SHARE = 0.5
MOST_ROUNDS = 12
STRAY_SHARE = 0.001


def choose_window(record: ScheduleRecord, rules: OccupancyRules, log_end_us: int) -> Window:
    """Return the window that the rules ask for.

    Raises
    ------
    InputError
        The log has no length, or the given times are not a valid window.
    """
    first_us = first_time_us(record)
    coverage = record.coverage
    if first_us >= log_end_us or (coverage is not None and coverage.start_us >= coverage.end_us):
        raise InputError(
            "the log covers no time",
            value=f"{iso_utc(first_us)} to {iso_utc(log_end_us)}" if first_us != OPEN_END else "no interval",
            expected="jobs (or samples of node states) over some time",
            fix="check that this is the whole log",
        )
    if not isinstance(rules.window, str):
        return _window_of_option(rules.window, first_us, log_end_us)
    if rules.window == "full":
        return Window(first_us, log_end_us, "the whole log, as requested: from the first start to the last time in it")
    if coverage is not None:
        return coverage
    if record.first_end_us >= record.last_start_us:
        return Window(first_us, log_end_us, "the whole log: it is too short to find its edges")
    return _estimate_window(record, first_us, log_end_us)


def longest_gap_us(record: ScheduleRecord, window: Window) -> tuple[int, int]:
    """Return the longest time in a window without a start or end of a job, to a 2,000th of its length."""
    bin_width = -(-(window.end_us - window.start_us) // BINS)
    has_job = np.zeros(BINS, np.bool_)
    for job_rows, _ in record.jobs.slices():
        for time_us in (job_rows.start_us, job_rows.end_us):
            inside = time_us[(time_us >= window.start_us) & (time_us <= window.end_us)]
            has_job[np.minimum((inside - window.start_us) // bin_width, BINS - 1)] = True
    bins_with_job = np.concatenate([[-1], np.flatnonzero(has_job), [BINS]])
    longest = int(np.argmax(np.diff(bins_with_job)))
    first_bin, last_bin = int(bins_with_job[longest] + 1), int(bins_with_job[longest + 1])
    return window.start_us + first_bin * bin_width, window.start_us + last_bin * bin_width


def first_time_us(record: ScheduleRecord) -> int:
    """Return the start of the log: its first job, or its claim, or the first sample if it has no jobs."""
    start_times = [record.first_start_us]
    if record.first_start_us == OPEN_END:
        start_times += [outage.start_us for outage in record.outages]
    if record.coverage is not None:
        start_times.append(record.coverage.start_us)
    return min(start_times)


def _window_of_option(window: tuple[int, int], first_us: int, log_end_us: int) -> Window:
    start_us, end_us = window
    if start_us >= end_us or end_us <= first_us or start_us >= log_end_us:
        raise InputError(
            "the window is empty: its end is not after its start"
            if start_us >= end_us
            else "the window lies outside the log",
            column="--window",
            value=f"{iso_utc(start_us)} to {iso_utc(end_us)}",
            expected=f"start before end, within {iso_utc(first_us)} to {iso_utc(log_end_us)}",
            fix="swap the two times" if start_us > end_us else "choose a window inside the log",
        )
    return Window(start_us, end_us, "as given")


def _estimate_window(record: ScheduleRecord, first_us: int, log_end_us: int) -> Window:
    core_us = max(record.first_end_us, first_us), min(record.last_start_us, log_end_us)
    edges, load = _closely(record, first_us, log_end_us)
    inside = (edges[:-1] >= core_us[0]) & (edges[1:] <= core_us[1]) & (load > 0)
    if np.count_nonzero(inside) < FEWEST_BINS:
        if core_us[0] >= core_us[1] or not _is_used(record, core_us):
            return Window(first_us, log_end_us, "the whole log: it is too short to find its edges")
        why_this_window = "from the first end to the last start of a job: too few jobs to use the load"
        return Window(*core_us, why_this_window, _share(load, (edges[1:] > core_us[0]) & (edges[:-1] < core_us[1])))
    usual_load = float(np.median(load[inside]))
    enough_load = np.flatnonzero(inside & (load >= USUAL_SHARE * usual_load))
    start_us, end_us = int(edges[enough_load[0]]), int(edges[enough_load[-1] + 1])
    if -(-start_us // US) < end_us // US:
        start_us, end_us = -(-start_us // US) * US, end_us // US * US
    return Window(
        start_us,
        end_us,
        f"estimated: jobs both start and end between {iso_utc(core_us[0])} and {iso_utc(core_us[1])}; edges in which "
        f"less than half of the usual {usual_load:,.1f} nodes are busy are cut off (--full-window keeps the whole log)",
        _share(load, slice(enough_load[0], enough_load[-1] + 1)),
    )


def _share(load: NDArray[np.float64], inside: NDArray[np.bool_] | slice) -> float:
    return float(load[inside].sum()) / max(float(load.sum()), 1e-300)


def _closely(record: ScheduleRecord, first_us: int, log_end_us: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the load over the part of the log with nearly all jobs, so that a stray date does not widen the bins."""
    span_us = first_us, log_end_us
    for _ in range(MOST_ROUNDS):
        edges, load = _load(record, *span_us)
        cumulative_share = np.cumsum(load) / max(float(load.sum()), 1e-300)
        begin_bin = int(np.searchsorted(cumulative_share, STRAY_SHARE))
        end_bin = int(np.searchsorted(cumulative_share, 1 - STRAY_SHARE))
        closer_span_us = int(edges[max(begin_bin - 1, 0)]), int(edges[min(end_bin + 2, BINS)])
        if closer_span_us[1] - closer_span_us[0] > (span_us[1] - span_us[0]) // 2:
            break
        span_us = max(first_us, closer_span_us[0]), min(log_end_us, closer_span_us[1])
    return edges, load


def _is_used(record: ScheduleRecord, span_us: tuple[int, int]) -> bool:
    """Return whether any job runs in a span."""
    jobs_of_slices = (jobs for jobs, _ in record.jobs.slices())
    return any(((jobs.start_us < span_us[1]) & (jobs.end_us > span_us[0])).any() for jobs in jobs_of_slices)


def _load(record: ScheduleRecord, first_us: int, last_us: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the mean nodes held by jobs in each of ``BINS`` equal parts of a span."""
    bin_width = -(-(last_us - first_us) // BINS)
    bin_edges = first_us + bin_width * np.arange(BINS + 1, dtype=np.int64)
    starts, partial_us = np.zeros(BINS), np.zeros(BINS)
    for rows, _ in record.jobs.slices():
        start_us, end_us = (np.clip(time_us, first_us, bin_edges[-1] - 1) for time_us in (rows.start_us, rows.end_us))
        for time_us, sign in ((start_us, 1.0), (end_us, -1.0)):
            bin_index = (time_us - first_us) // bin_width
            starts += np.bincount(bin_index, sign * rows.count, BINS)
            partial_us += np.bincount(bin_index, sign * rows.count * (bin_edges[bin_index + 1] - time_us), BINS)
    node_time_us = partial_us + bin_width * (np.cumsum(starts) - starts)
    return bin_edges, node_time_us / bin_width
