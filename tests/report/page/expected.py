"""The numbers of a run worked out from its tables alone, by other code than the page's."""

from __future__ import annotations

import json

import pandas as pd

from bfreplay.runs.metrics import METRICS
from bfreplay.runs.step_functions import StepSeries, even_columns

_HOUR_US = 3.6e9
_ENDED = ("finished", "pruned", "failed", "stopped", "declined")


def expected_facts(folder):
    """By the key that the page gives them; what no table tells is as the record has it: the last lines."""
    record = json.loads((folder / "run.json").read_text())
    session = json.loads((folder / "session.json").read_text())
    decisions, jobs, timings, allocations, pool, idle_intervals = (
        pd.read_parquet(folder / f"{name}.parquet")
        for name in ("decisions", "jobs", "timings", "allocations", "pool", "idle_intervals")
    )
    start, end = (pd.Timestamp(record["config"][f"window_{edge}_us"], unit="us", tz="UTC") for edge in ("start", "end"))
    until = pd.concat([pool["time"].iloc[1:], pd.Series([end])], ignore_index=True)
    idle_us = float(((until - pool["time"]).dt.total_seconds() * pool["n_idle"]).sum() * 1e6)
    allocations["node_us"] = (allocations["to"] - allocations["from"]).dt.total_seconds() * allocations["count"] * 1e6
    if "sharing" in allocations:
        allocations.loc[allocations["sharing"] > 0, "node_us"] /= 2  # both jobs have a row
    held_us = float(allocations["node_us"].sum())
    parts = {
        "useful": jobs["useful_node_us"].sum(),
        "rescaling": jobs["rescaling_node_us"].sum(),
        "preempted": jobs["preempted_node_us"].sum(),
        "repeated": jobs["repeated_node_us"].sum(),
        "stalled": jobs["stalled_node_us"].sum(),
    }
    parts["unallocated"] = idle_us - sum(parts.values())
    status = jobs["status"].astype(str)
    proven = decisions["quality"].astype(str) == "proven"
    feasible = decisions["quality"].astype(str) == "feasible"
    unanswered = decisions["quality"].astype(str) == "none"
    trivial = (decisions["n_idle"] == 0) | (decisions["n_jobs"] == 0)
    all_left = len(jobs) > 0 and status.isin(_ENDED).all()
    facts = {
        "window.duration_s": (end - start).total_seconds(),
        "nodes": record["inputs"]["events"]["n_nodes"],
        "idle.node_hours": idle_us / _HOUR_US,
        "idle.mean_nodes": idle_us / ((end - start).total_seconds() * 1e6),
        "idle.most_nodes": int(pool["n_idle"].max()),
        "node_hours.held": held_us / _HOUR_US,
        "share.held": held_us / idle_us if idle_us else None,
        "samples": float(jobs["done_samples"].sum()),
        "samples.rescaling": float(jobs["rescale_cost_samples"].sum()),
        "samples.preemption": float(jobs["preemption_cost_samples"].sum()),
        "samples.repeated": float(jobs["repeated_samples"].sum()),
        "jobs": len(jobs),
        "done_s": (jobs["ended"].max() - start).total_seconds() if all_left else None,
        "rescales.up": int(jobs["n_scale_ups"].sum()),
        "rescales.down": int(jobs["n_scale_downs"].sum()),
        "preemptions": int(jobs["n_preemptions"].sum()),
        "decisions": len(decisions),
        "decisions.proven": int((proven & ~trivial & decisions["fell_back_from"].isna()).sum()),
        "decisions.proven_by_fallback": int((proven & ~trivial & decisions["fell_back_from"].notna()).sum()),
        "decisions.proven_trivially": int((proven & trivial).sum()),
        "decisions.feasible": int((feasible & decisions["solver_status"].notna()).sum()),
        "decisions.unproven_by_design": int(
            (feasible & decisions["solver_status"].isna() & (decisions["process_status"].astype(str) == "ok")).sum()
        ),
        "decisions.none": int(unanswered.sum()),
        "decisions.wrong": int((decisions["quality"].astype(str) == "wrong").sum()),
        "fallbacks": int((decisions["fell_back_from"].notna() | unanswered).sum()),
        "decisions.slowest_s": float(timings["decide_s"].max()) if timings["decide_s"].any() else None,
        "seconds": sum(session["seconds"].values()) + session.get("load_s", 0.0),
        "idle_intervals": int(idle_intervals["n_intervals"].sum()),
        "idle_intervals.censored": int(idle_intervals["n_censored"].sum()),
    }
    overhead_us = parts["rescaling"] + parts["preempted"] + parts["repeated"]
    facts["share.overhead"] = float(overhead_us) / held_us if held_us else None
    facts["share.until_done"] = None
    if all_left:
        done, since = jobs["ended"].max(), pool["time"]
        until_done_us = float(
            ((until.clip(upper=done) - since.clip(upper=done)).dt.total_seconds() * pool["n_idle"]).sum() * 1e6
        )
        facts["share.until_done"] = float(parts["useful"]) / until_done_us if until_done_us else None
    for name, node_us in parts.items():
        facts[f"node_hours.{name}"] = float(node_us) / _HOUR_US
        facts[f"share.{name}"] = float(node_us) / idle_us if idle_us else None
    for name in (*_ENDED, "running", "waiting", "paused", "queued", "not_submitted"):
        facts[f"jobs.{name}"] = int((status == name).sum())
    if len(decisions) and not all_left:  # decisions then tell of the whole window
        facts["pool_events"] = int(((decisions["n_joined"] > 0) | (decisions["n_reclaimed"] > 0)).iloc[1:].sum())
    facts |= _of_jobs(jobs) | _cut_off(jobs, record["summary"]["n_jobs_wider_than_the_pool"])
    facts |= _of_scheduling(jobs, allocations, record, facts)
    facts |= _of_campaign(folder, jobs, record, start)
    facts |= _of_other_replays(record, facts["samples"]) | _of_batch_jobs(folder, record)
    dropped = {f"skipped.{reason}": n for reason, n in record["inputs"]["events"]["metadata"]["skipped"].items()}
    return _as_recorded(record) | dropped | facts


def _of_jobs(jobs):
    """Times and deadlines."""
    facts = {}
    for key, event in (("submit_to_start", "first_start"), ("submit_to_finish", "finished")):
        seconds = (jobs[event] - jobs["submitted"]).dt.total_seconds().dropna()
        for name, share in (("median_s", 0.5), ("p95_s", 0.95)):
            facts[f"{key}.{name}"] = float(seconds.quantile(share)) if len(seconds) else None
    has_one = jobs["deadline"].notna()
    has_left = jobs["status"].astype(str).isin(_ENDED)
    for name, which in (
        ("met", jobs["deadline_met"].eq(True)),
        ("missed", jobs["deadline_met"].eq(False)),
        ("open", jobs["deadline_met"].isna() & ~has_left),
        ("void", jobs["deadline_met"].isna() & has_left),
        ("declined", jobs["status"].astype(str).eq("declined")),
    ):
        facts[f"deadlines.{name}"] = int((has_one & which).sum()) if has_one.any() else None
    facts["deadlines.satisfied"] = facts["deadlines.met"] / int(has_one.sum()) if has_one.any() else None
    return facts


def _of_scheduling(jobs, allocations, record, facts):
    """Of the measured jobs, and of the nodes of all."""
    config, summary = record["config"], record["summary"]
    mine = jobs.iloc[slice(*(config.get("measured") or (None,)))]
    jct_s = (mine["finished"] - mine["submitted"]).dt.total_seconds()
    rho = (jct_s / mine["isolated_jct_s"]).dropna()
    start = pd.Timestamp(config["window_start_us"], unit="us", tz="UTC")
    ran = [facts[f"share.{name}"] for name in ("useful", "rescaling", "preempted", "repeated")]
    prices, types = config.get("prices", {}), record["inputs"]["events"]["metadata"].get("node_types", ["any"])
    cost = None
    if set(types) <= set(prices):
        cost = float((allocations["node_us"] / _HOUR_US * allocations["node_type"].astype(str).map(prices)).sum())
    rounds = summary["policy"] or {}
    return {
        "measured.jobs": len(mine),
        "measured.completed": int(mine["finished"].notna().sum()),
        "jct.mean_s": None if jct_s.isna().all() else float(jct_s.mean()),
        "makespan_s": None if jct_s.isna().any() or not len(mine) else (mine["finished"].max() - start).total_seconds(),
        "utilisation": None if None in ran else sum(ran),
        "cost": cost,
        "rho.mean": float(rho.mean()) if len(rho) else None,
        "rho.most": float(rho.max()) if len(rho) else None,
        "rho.above_1": float((rho > 1).mean()) if len(rho) else None,
        "plans": rounds.get("plans"),
        "plans.stopped": rounds["stopped_by_time_limit"] + rounds["without_answer"] if "plans" in rounds else None,
        "rounds": rounds.get("n_rounds"),
        "rounds.recomputations": rounds.get("n_recomputations"),
        "leases": rounds.get("lease_extensions"),
        "leases.opportunities": rounds.get("lease_opportunities"),
    }


def _cut_off(jobs, n_too_wide):
    """Jobs that the end of the window kept from going on, and those that no window would have let begin."""
    status, has_started = jobs["status"].astype(str), jobs["first_start"].notna()
    facts = {f"cut.{name}": int((has_started & (status == name)).sum()) for name in ("running", "paused", "waiting")}
    never = int((~has_started & status.isin(["waiting", "queued"])).sum())
    return facts | {"cut.not_started": never - n_too_wide, "jobs.too_wide": n_too_wide}


def _of_campaign(folder, jobs, record, start):
    """Scores, from the reports of jobs to their source; none without one."""
    source = record["inputs"]["jobs"]["source"]
    if source is None:
        return {}
    reports = pd.read_parquet(folder / "reports.parquet")
    facts = {"reports": int(jobs["n_reports"].sum())}  # the table has orders of the source too
    sign = 1 if source["higher_is_better"] else -1
    finished = jobs[(jobs["status"].astype(str) == "finished") & jobs["last_score"].notna()]
    if len(finished):
        last = finished.loc[(sign * finished["last_score"]).idxmax()]
        facts |= {"best_finished.score": last["last_score"], "best_finished.job": last["job"]}
    if reports["score"].notna().any():
        best = reports.loc[(sign * reports["score"]).idxmax()]
        params = jobs.set_index("job")["params"][best["job"]]
        facts |= {
            "best.score": best["score"],
            "best.job": best["job"],
            "best.after_s": (best["time"] - start).total_seconds(),
            "best.params": _params(params) if isinstance(params, str) else None,
        }
    return facts


def _params(text):
    return ", ".join(f"{name} {value:.6g}" for name, value in json.loads(text).items())


def _of_batch_jobs(folder, record):
    """Starts as recorded (tests/replay/test_batch_starts.py recomputes those), delays from their table."""
    starts, delays = (record["summary"].get(name) for name in ("batch_starts", "batch_delays"))
    facts = {}
    if starts is not None:
        hours, busy = starts["delay_node_us"] / _HOUR_US, starts["busy_node_us"] / _HOUR_US
        facts |= {
            "batch_starts.met_share": starts["n_starts_met"] / starts["n_starts"] if starts["n_starts"] else None,
            "batch_delay.node_hours": hours,
            "batch_delay.share": hours / busy if busy else None,
            "batch_delay.clear_s": record["config"].get("clear_s", 0.0),
        }
    if delays is not None:
        table = pd.read_parquet(folder / "batch_delays.parquet")
        seconds = table["delay_s"].sort_values(ignore_index=True)
        facts |= {
            "batch_jobs.late": len(table),
            "batch_jobs.late_node_hours": float((table["delay_s"] * table["n_nodes"]).sum() / 3600),
            "batch_jobs.median_s": seconds[-(-len(seconds) // 2) - 1] if len(seconds) else None,
            "batch_jobs.p99_s": seconds[-(-99 * len(seconds) // 100) - 1] if len(seconds) else None,
            "batch_jobs.worst_s": float(seconds.max()) if len(seconds) else 0.0,
            "batch_jobs.worst": table.loc[table["delay_s"].idxmax(), "job"] if len(seconds) else None,
        }
    return facts


def _of_other_replays(record, samples):
    """Shares of other replays and bounds are of the run's own samples."""
    summary, is_source = record["summary"], record["inputs"]["jobs"]["source"] is not None
    efficiency, learning, bound = (summary[name] or {} for name in ("efficiency", "learning", "bound"))

    def share(whole):
        return samples / whole if whole else None

    known = None if is_source else share(learning.get("known_samples"))
    return {
        "u": None if is_source else share(efficiency.get("dedicated_samples")),
        "learning.lost": None if known is None else 1 - known,
        "learning.gained": None if known is None else known - 1,
        "bound.share": share(bound.get("samples")),
    }


def _as_recorded(record):
    """What the record says, of which no table tells: other replays, bounds; ``None`` for what follows from others."""
    facts = {}
    for metric in METRICS:
        entry = record["summary"]
        for name in metric.value.split(".") if isinstance(metric.value, str) else ("",):
            entry = entry.get(name) if isinstance(entry, dict) else None
        is_instant = entry is not None and metric.kind == "seconds" and metric.value.endswith("_us")
        facts[metric.figure_key] = (entry - record["config"]["window_start_us"]) / 1e6 if is_instant else entry
    return facts


def columns_of(series: StepSeries, start_us: int, end_us: int, columns: int) -> StepSeries:
    """Return a part of the window, as fine as the columns of a picture allow.

    Parameters
    ----------
    series
        The step function.
    start_us, end_us
        Part of the window of ``series``.
    columns
        Most columns: a part with no more steps is returned step by step, cut at its ends; else in ``even_columns``.
    """
    part = series.between(start_us, end_us)
    return part if len(part.mean) <= columns else series.in_columns(even_columns(start_us, end_us, columns))
