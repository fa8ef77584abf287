"""A made-up sacct export of a machine of 9,408 nodes: 2.0 million jobs a year, on lists of several ranges of nodes.

Run it: ``python benchmarks/year_log.py --out year.psv [--days 365] [--seed 0]``. Shorter logs are as dense as a year.

Jobs arrive by day and by night; most are small and short. A scheduler that wakes every ``TICK_S`` seconds starts them
in order of arrival and backfills behind a first job that waits (EASY). A job gets the free nodes of lowest number, so
no node has two jobs, and lists are in pieces. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bfreplay._compiled import compiled

N_NODES = 9_408
JOBS_A_DAY = 2_000_000 / 365
LOAD = 0.94  # share of the machine that the jobs would fill
TICK_S = 60
STARTS_A_SECOND = 4
DAY_S = 86_400
WARM_UP_DAYS = 3
START = np.datetime64("2024-01-01T00:00:00")
LOOK_BEHIND = 200  # jobs that may be backfilled
PLAN_S = 900
LIMITS_MIN = np.array([10, 20, 30, 60, 120, 240, 360, 720, 1_440, 2_880])
HEADER = "JobIDRaw|State|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NodeList\n"
WRITTEN_ROWS = 50_000


class Jobs(NamedTuple):
    """Jobs by arrival, ``(J,)`` each; times in seconds from the start of the log, which the warm-up precedes."""

    arrival_s: np.ndarray
    n_nodes: np.ndarray
    length_s: np.ndarray
    limit_s: np.ndarray


class Started(NamedTuple):
    """Jobs in order of start; the nodes of the i-th are the ranges ``first_range[i]`` to ``first_range[i + 1]``."""

    job: np.ndarray
    start_s: np.ndarray
    first_range: np.ndarray
    range_first: np.ndarray
    range_last: np.ndarray


def made_up_jobs(days: int, rng: np.random.Generator) -> Jobs:
    """Draw jobs for the warm-up and ``days`` days, which together ask for ``LOAD`` of the machine."""
    span_s = (WARM_UP_DAYS + days) * DAY_S
    n_jobs = round(JOBS_A_DAY * (WARM_UP_DAYS + days))
    hours = np.arange(span_s // 3_600)
    is_weekend = hours // 24 % 7 >= 5
    rate = (1 + 0.25 * np.sin((hours % 24 - 9) / 24 * 2 * np.pi)) * np.where(is_weekend, 0.85, 1.0)
    hour = rng.choice(hours, n_jobs, p=rate / rate.sum())
    arrival_s = np.sort(hour * 3_600 + rng.integers(0, 3_600, n_jobs)) - WARM_UP_DAYS * DAY_S
    low, high = np.array([1, 2, 9, 65, 513]), np.array([2, 9, 65, 513, 4_097])
    kind = rng.choice(5, n_jobs, p=[0.56, 0.3, 0.12, 0.0193, 0.0007])
    n_nodes = np.floor(low[kind] * (high[kind] / low[kind]) ** rng.random(n_jobs)).astype(np.int64)
    length_s = np.exp(rng.normal(0.0, 1.5, n_jobs)) * 2_400
    shortest_s, longest_s = 30, 2 * DAY_S
    for _ in range(8):  # until the clipped lengths fill the machine
        fills = (np.clip(length_s, shortest_s, longest_s) * n_nodes).sum() / (N_NODES * span_s)
        length_s *= LOAD / fills
    length_s = np.clip(length_s, shortest_s, longest_s).astype(np.int64)
    asked_min = length_s / 60 * rng.uniform(1.0, 3.0, n_jobs)
    limit_s = 60 * LIMITS_MIN[np.minimum(np.searchsorted(LIMITS_MIN, asked_min), len(LIMITS_MIN) - 1)]
    is_stopped = rng.random(n_jobs) < 0.03
    limit_s = np.where(is_stopped, 60 * np.maximum(length_s // 60, 1), limit_s)
    length_s = np.where(is_stopped, limit_s + rng.integers(0, 30, n_jobs), length_s)
    return Jobs(arrival_s, n_nodes, length_s, limit_s)


@compiled
def schedule(jobs: Jobs, end_s: int, started: Started) -> int:
    """Fill ``started`` with the jobs that start before ``end_s``; return their number."""
    n_jobs = len(jobs.arrival_s)
    free = np.ones(N_NODES, np.bool_)
    lowest_free, n_free = 0, N_NODES
    row_of = np.full(n_jobs, -1, np.int64)
    ends = [(np.int64(0), np.int64(0))]
    ends.pop()
    queue = np.empty(n_jobs + 1, np.int64)
    queue_first = queue_end = arrived = n_started = n_ranges = 0
    planned_for, planned_at, shadow_s, spare = -1, 0, 0, 0
    now = jobs.arrival_s[0] // TICK_S * TICK_S
    started.first_range[0] = 0
    while now < end_s:
        while len(ends) > 0 and ends[0][0] <= now:
            row = row_of[heapq.heappop(ends)[1]]
            for r in range(started.first_range[row], started.first_range[row + 1]):
                free[started.range_first[r] : started.range_last[r] + 1] = True
                n_free += started.range_last[r] + 1 - started.range_first[r]
                lowest_free = min(lowest_free, int(started.range_first[r]))
        while arrived < n_jobs and jobs.arrival_s[arrived] <= now:
            queue[queue_end] = arrived
            queue_end += 1
            arrived += 1
        n_before = n_started
        at, last = queue_first, min(queue_end, queue_first + LOOK_BEHIND)
        while at < last:
            job = queue[at]
            n_nodes = jobs.n_nodes[job]
            head = queue[queue_first]
            if at > queue_first and (planned_for != head or now >= planned_at + PLAN_S):
                # the first job gets its nodes at the latest when running jobs reach their limits
                planned_for, planned_at, spare = head, now, n_free
                stops = [(jobs.limit_s[each] + started.start_s[row_of[each]], each) for _, each in ends]
                stops.sort()
                shadow_s = now
                for stop_s, each in stops:
                    if spare >= jobs.n_nodes[head]:
                        break
                    spare += jobs.n_nodes[each]
                    shadow_s = max(stop_s, now)
                spare -= jobs.n_nodes[head]
            is_late = at > queue_first and now + jobs.limit_s[job] > shadow_s
            if n_nodes > n_free or (is_late and n_nodes > spare):
                at += 1
                continue
            if is_late:
                spare -= n_nodes
            for i in range(at, queue_first, -1):  # close the gap that the started job leaves
                queue[i] = queue[i - 1]
            queue_first += 1
            at = max(at + 1, queue_first)
            n_free -= n_nodes
            while n_nodes > 0:
                while not free[lowest_free]:
                    lowest_free += 1
                started.range_first[n_ranges] = lowest_free
                while n_nodes > 0 and lowest_free < N_NODES and free[lowest_free]:
                    free[lowest_free] = False
                    lowest_free += 1
                    n_nodes -= 1
                started.range_last[n_ranges] = lowest_free - 1
                n_ranges += 1
            row_of[job] = n_started
            start_s = now + (n_started - n_before) // STARTS_A_SECOND
            started.job[n_started], started.start_s[n_started] = job, start_s
            n_started += 1
            started.first_range[n_started] = n_ranges
            heapq.heappush(ends, (start_s + jobs.length_s[job], job))
        now += TICK_S
    return n_started


def lines(jobs: Jobs, started: Started, rows: np.ndarray, end_s: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield the text of the ``rows`` of ``started`` that run inside the log, in blocks."""
    numbers = [f"{node:05d}" for node in range(1, N_NODES + 1)]
    for begin in range(0, len(rows), WRITTEN_ROWS):
        block = rows[begin : begin + WRITTEN_ROWS]
        job, start_s = started.job[block], started.start_s[block]
        stop_s = start_s + jobs.length_s[job]
        is_running = stop_s > end_s
        states = np.where(
            jobs.length_s[job] >= jobs.limit_s[job],
            "TIMEOUT",
            rng.choice(["COMPLETED", "FAILED", "CANCELLED by 4711"], len(block), p=[0.84, 0.1, 0.06]),
        )
        states = np.where(is_running, "RUNNING", states)
        starts = np.datetime_as_string(START + start_s.astype("timedelta64[s]"))
        stops = np.where(is_running, "Unknown", np.datetime_as_string(START + stop_s.astype("timedelta64[s]")))
        elapsed = np.minimum(stop_s, end_s) - start_s
        columns = (job + 1, states, starts, stops, elapsed, jobs.limit_s[job] // 60, jobs.n_nodes[job], block)
        text = []
        for *cells, row in zip(*(column.tolist() for column in columns), strict=True):
            first, last = started.first_range[row], started.first_range[row + 1]
            pairs = zip(started.range_first[first:last].tolist(), started.range_last[first:last].tolist(), strict=True)
            parts = [numbers[a] if a == b else f"{numbers[a]}-{numbers[b]}" for a, b in pairs]
            listed = ",".join(parts)
            nodes = f"frontier{listed}" if cells[-1] == 1 else f"frontier[{listed}]"
            text.append("|".join(map(str, cells)) + f"|{nodes}\n")
        yield "".join(text)


def write_log(out: Path, days: int = 365, seed: int = 0) -> int:
    """Write the log of ``days`` days; return its rows."""
    rng = np.random.default_rng(seed)
    jobs = made_up_jobs(days, rng)
    n_jobs, most_ranges = len(jobs.arrival_s), int(jobs.n_nodes.sum())
    started = Started(
        np.empty(n_jobs, np.int64),
        np.empty(n_jobs, np.int64),
        np.empty(n_jobs + 1, np.int64),
        np.empty(most_ranges, np.int16),
        np.empty(most_ranges, np.int16),
    )
    end_s = days * DAY_S
    n_started = schedule(jobs, end_s, started)
    rows = np.arange(n_started)
    rows = rows[started.start_s[:n_started] + jobs.length_s[started.job[:n_started]] > 0]
    with out.open("w") as file:
        file.write(HEADER)
        for text in lines(jobs, started, rows, end_s, rng):
            file.write(text)
    return len(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{write_log(given.out, given.days, given.seed):,} rows in {given.out}")
