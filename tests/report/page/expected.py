"""The numbers of a run worked out from its tables alone, by other code than the page's."""

from __future__ import annotations

import json

import pandas as pd

_HOUR_US = 3.6e9
_ENDED = ("finished", "pruned", "failed", "stopped")


def expected_facts(folder):
    """By the key that the page gives them; what the tables do not tell is not in it."""
    record = json.loads((folder / "run.json").read_text())
    session = json.loads((folder / "session.json").read_text())
    decisions, jobs, timings, allocations, pool, holes = (
        pd.read_parquet(folder / f"{name}.parquet")
        for name in ("decisions", "jobs", "timings", "allocations", "pool", "holes")
    )
    start, end = (pd.Timestamp(record["config"][f"window_{edge}_us"], unit="us", tz="UTC") for edge in ("start", "end"))
    until = pd.concat([pool["time"].iloc[1:], pd.Series([end])], ignore_index=True)
    idle_us = float(((until - pool["time"]).dt.total_seconds() * pool["n_idle"]).sum() * 1e6)
    held_us = float(((allocations["to"] - allocations["from"]).dt.total_seconds() * allocations["count"]).sum() * 1e6)
    parts = {
        "useful": jobs["useful_node_us"].sum(),
        "rescaling": jobs["rescaling_node_us"].sum(),
        "lost_to_preemption": jobs["lost_to_preemption_node_us"].sum(),
    }
    parts["unused"] = idle_us - sum(parts.values())
    status = jobs["status"].astype(str)
    proven = decisions["quality"].astype(str) == "proven"
    feasible = decisions["quality"].astype(str) == "feasible"
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
        "samples.preemption": float(jobs["preempt_cost_samples"].sum()),
        "jobs": len(jobs),
        "done_s": (jobs["ended"].max() - start).total_seconds() if all_left else None,
        "rescales.grown": int(jobs["n_grown"].sum()),
        "rescales.shrunk": int(jobs["n_shrunk"].sum()),
        "preemptions": int(jobs["n_preempted"].sum()),
        "decisions": len(decisions),
        "decisions.proven": int((proven & ~trivial).sum()),
        "decisions.proven_trivially": int((proven & trivial).sum()),
        "decisions.feasible": int((feasible & decisions["solver_status"].notna()).sum()),
        "decisions.unproven_by_design": int(
            (feasible & decisions["solver_status"].isna() & (decisions["process_status"].astype(str) == "ok")).sum()
        ),
        "fallbacks": int(decisions["fell_back_from"].notna().sum()),
        "decisions.slowest_s": float(timings["decide_s"].max()) if len(timings) else None,
        "seconds": sum(session["seconds"].values()) + session.get("load_s", 0.0),
        "holes": int(holes["n_holes"].sum()),
        "holes.cut": int(holes["n_cut"].sum()),
    }
    for name, node_us in parts.items():
        facts[f"node_hours.{name}"] = float(node_us) / _HOUR_US
        facts[f"share.{name}"] = float(node_us) / idle_us if idle_us else None
    for name in (*_ENDED, "running", "waiting", "paused", "queued", "not_submitted"):
        facts[f"jobs.{name}"] = int((status == name).sum())
    if len(decisions) and not all_left:  # decisions then tell of the whole window
        facts["pool_events"] = int(((decisions["n_joined"] > 0) | (decisions["n_left"] > 0)).iloc[1:].sum())
    else:
        facts["pool_events"] = record["summary"]["n_pool_events"]
    efficiency, bound = record["summary"]["efficiency"], record["summary"]["bound"]
    if efficiency is not None and efficiency["u"] is not None:
        facts["u"] = facts["samples"] / efficiency["dedicated_samples"]
    if bound is not None and bound["share"] is not None:
        facts["bound.share"] = facts["samples"] / bound["samples"]
    return facts
