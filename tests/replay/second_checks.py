"""What the second engine compares: tables of a run with one another, and with what it has computed itself."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.replay.second_jobs import LABELS, RELATIVE, US, Job, Log

if TYPE_CHECKING:
    from tests.replay.second_engine import SecondEngine


def rows_of(table) -> list[dict]:
    """Rows of an Arrow table; times as whole microseconds."""
    columns = {
        name: (table[name].cast("int64") if str(table.schema.field(name).type).startswith("timestamp") else table[name])
        for name in table.column_names
    }
    lists = {name: column.to_pylist() for name, column in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def near(found: float, expected: float, scale: float = 1.0) -> bool:
    """Whether two floating-point sums agree."""
    return math.isclose(found, expected, rel_tol=RELATIVE, abs_tol=RELATIVE * max(1.0, abs(scale)))


def same(what: str, found: object, expected: object) -> None:
    """Raise AssertionError unless both are equal."""
    assert found == expected, f"{what}: the run has {found!r}, the second engine {expected!r}"


def close(what: str, found: float, expected: float, scale: float = 1.0) -> None:
    """Raise AssertionError unless both agree up to rounding."""
    assert near(found, expected, scale), f"{what}: the run has {found!r}, the second engine {expected!r}"


def joined(intervals) -> list[tuple]:
    """Sorted (job, count, from, to); a job that loses and regains nodes at one instant may have two rows or one."""
    found: list[tuple] = []
    for name, count, start, stop in sorted(intervals, key=lambda each: (each[0], each[2])):
        if found and found[-1][:2] == (name, count) and found[-1][3] == start:
            start = found.pop()[2]
        found.append((name, count, start, stop))
    return found


# -- what the second engine has computed ----------------------------------------------------------------------


def check_end(engine: SecondEngine) -> None:
    """Compare what has become of the jobs and the nodes, when the second engine is at the end of the window."""
    result, jobs = engine.result, engine.jobs
    same("number of decisions", len(engine.rows), engine.n_rows)
    same("answers of the policy that nobody asked for", engine.answers or [], [])
    by_name = {job.name: job for job in jobs}
    for row in rows_of(result.table("jobs")):
        _check_job(row, by_name[row["job"]], engine)
    _check_losses(engine)
    found = joined((row["job"], row["count"], row["from"], row["to"]) for row in rows_of(result.table("allocations")))
    same("allocations", found, joined((job.name, *span) for job in jobs for span in job.intervals))
    found = sorted((row["node"], row["job"], row["from"], row["to"]) for row in rows_of(result.table("nodes")))
    same("nodes", found, sorted(engine.node_spans))
    same("pool", [(row["time"], row["n_idle"]) for row in rows_of(result.table("pool"))], engine.pool)
    _check_summary(engine)


def _check_job(row: dict, job: Job, engine: SecondEngine) -> None:
    how, ended_us = job.left_as or ("finished", job.finished_us)
    expected = {
        "status": how if ended_us is not None else engine.statuses[job.name],
        "submitted": job.submit_us,
        "admitted": job.admitted_us,
        "first_start": job.first_start_us,
        "finished": job.finished_us,
        "ended": ended_us,
        "n_starts": job.starts,
        "n_scale_ups": job.grown,
        "n_scale_downs": job.shrunk,
        "n_preemptions": job.preempted,
    }
    for name, value in expected.items():
        same(f"{name} of {job.name}", row[name], value)
    # rounding is that of all that it made: most of it may have gone into debts, or been taken off again
    close(f"samples of {job.name}", row["done_samples"], job.progress, job.gross)
    if engine.rules.is_published:
        return
    for label in LABELS:
        found, expected_us = row[f"{label}_node_us"], job.label_us[label]
        allowed = job.slack_us + RELATIVE * expected_us
        assert abs(found - expected_us) <= allowed, (job.name, label, found, expected_us, allowed)


def _check_losses(engine: SecondEngine) -> None:
    rows = rows_of(engine.result.table("losses")) if engine.result.has_table("losses") else []
    jobs = {job.name: job for job in engine.jobs}
    lost = {(time_us, job.name): (samples, us) for job in engine.jobs for time_us, samples, us in job.lost}
    recorded = {(row["time"], row["job"]): (row["samples"], row["node_us"]) for row in rows}
    same("number of losses", len(recorded), len(rows))
    for key in lost.keys() | recorded.keys():
        found, found_us = recorded.get(key, (0, 0))
        samples, node_us = lost.get(key, (0, 0))
        close(f"samples lost at {key}", found, samples, jobs[key[1]].gross)
        allowed_us = jobs[key[1]].slack_us + RELATIVE * node_us
        assert abs(found_us - node_us) <= allowed_us, f"node time lost at {key}: the run has {found_us}, not {node_us}"


def _check_summary(engine: SecondEngine) -> None:
    summary, jobs, log = engine.result.summary, engine.jobs, engine.log
    ledger = summary["ledger"]
    same("idle node time", ledger["idle_node_us"], engine.idle_us)
    same("unallocated node time", ledger["unallocated_node_us"], engine.free_us)
    same("pool events", summary["n_pool_events"], engine.n_pool_events)
    same("most idle nodes", summary["most_idle_nodes"], engine.most_idle)
    close("equivalent nodes", summary["equivalent_nodes"], engine.idle_us / (log.end_us - log.start_us))
    for name, key in (("preempted", "n_preemptions"), ("grown", "n_scale_ups"), ("shrunk", "n_scale_downs")):
        same(key, summary[key], sum(getattr(job, name) for job in jobs))
    gross = sum(job.gross for job in jobs)
    close("samples", ledger["samples"], engine.total, gross)
    if not engine.rules.is_published:
        lost = sum(samples for job in jobs for _, samples, _ in job.lost)
        close("gross samples", ledger["gross_samples"], gross, gross + engine.rounding / RELATIVE)
        close("repeated samples", ledger["repeated_samples"], lost, gross)
        for label, key in (("rescaling", "rescale"), ("preempted", "preemption")):
            close(f"samples of {label}", ledger[f"{key}_samples"], sum(job.paid[label] for job in jobs), gross)
    same("batch starts", summary["batch_starts"].to_json(), engine.started)
    finished = [job for job in jobs if job.finished_us is not None]
    if finished:
        jct = sum(job.finished_us - job.submit_us for job in finished) / len(finished) / US
        close("average JCT", summary["scheduling"]["average_jct_s"], jct, jct)


# -- the tables of any run ------------------------------------------------------------------------------------


def check_tables(log: Log, jobs: list[Job], result) -> None:
    """Raise AssertionError where the tables of any run contradict its log, its jobs or one another."""
    by_name = {job.name: job for job in jobs}
    position = {name: k for k, name in enumerate(log.nodes)}
    idle = log.idle_spans()
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    holders: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows_of(result.table("nodes")):
        start, stop = row["from"], row["to"]
        assert any(a <= start < stop <= b for a, b in idle[position[row["node"]]]), f"held while not idle: {row}"
        holders[row["node"]].append((start, stop))
        spans[row["job"]].append((start, stop))
    for node, held in holders.items():
        assert not _overlap(held), f"two holders of {node}"
    held_us: dict[str, int] = defaultdict(int)
    could: dict[str, float] = defaultdict(float)
    intervals: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows_of(result.table("allocations")):
        job = by_name[row["job"]]
        dt = row["to"] - row["from"]
        assert dt > 0, row
        assert 1 <= row["count"] <= job.max_nodes, row
        held_us[job.name] += row["count"] * dt
        could[job.name] += job.rate_on(row["node_type"], row["count"]) * dt / US
        intervals[job.name].append((row["from"], row["to"]))
    for name, taken in intervals.items():
        assert not _overlap(taken), f"two counts of {name} at once"
        same(f"node time of {name} by node", sum(b - a for a, b in spans[name]), held_us[name])
    ledger = result.summary["ledger"]
    idle_us = sum(b - a for each in idle.values() for a, b in each)
    same("idle node time of the log", ledger["idle_node_us"], idle_us)
    for row in rows_of(result.table("jobs")):
        name, job = row["job"], by_name[row["job"]]
        node_us = [row[f"{label}_node_us"] for label in LABELS]
        assert min(node_us) >= 0, row
        same(f"labels of {name}", sum(node_us), held_us[name])
        most = could[name] * (1 + RELATIVE) + RELATIVE
        assert row["done_samples"] <= most, f"{row}: {most} samples could be made"
        if row["status"] == "finished":
            same(f"work of {name}", row["done_samples"], job.work)
            assert row["finished"] >= row["first_start"] >= row["admitted"] >= row["submitted"] or (
                row["submitted"] < log.start_us or row["first_start"] is None
            ), row
    same("all labels", sum(held_us.values()) + ledger["unallocated_node_us"], idle_us)
    paid = ledger["rescale_samples"] + ledger["preemption_samples"] + ledger["repeated_samples"]
    made = ledger["samples"] + paid + ledger["trimmed_samples"]
    close("gross samples", ledger["gross_samples"], made, abs(ledger["gross_samples"]) + abs(made))
    idle_intervals = rows_of(result.table("idle_intervals"))
    same("idle intervals", sum(row["n_intervals"] for row in idle_intervals), sum(len(each) for each in idle.values()))
    same("idle node time of intervals", sum(row["idle_node_us"] for row in idle_intervals), idle_us)
    same("held node time of intervals", sum(row["allocated_node_us"] for row in idle_intervals), sum(held_us.values()))
    bound = result.summary["bound"]
    if bound is not None and bound["share"] is not None:
        assert bound["share"] <= 1 + 1e-9, f"the run processed {bound['share']} of what no policy can exceed"


def _overlap(spans: list[tuple[int, int]]) -> bool:
    return any(stop > start for (_, stop), (start, _) in pairwise(sorted(spans)))
