"""The numbers about a run that the page tells in words: each with a name, so that it is said the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bfreplay.replay.result import RunResult
from bfreplay.report.tables import Kind

_LABELS = (
    ("useful", "useful"),
    ("rescaling", "rescaling"),
    ("lost_to_preemption", "lost to preemption"),
    ("unused", "unused"),
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One number: ``key`` names it, ``words`` tell a person what it is; ``value`` is ``None`` where there is none."""

    key: str
    words: str
    value: Any
    kind: Kind


def facts_of(run: RunResult) -> dict[str, Fact]:
    """Every number of ``run`` that sentences and the table of key figures use, by key, in the order of that table.

    Runs of older versions lack some: these are ``None``.
    """
    return {fact.key: fact for fact in _facts(run)}


def _facts(run: RunResult) -> Iterator[Fact]:
    summary, config, inputs = run.summary, run.record["config"], run.record["inputs"]
    ledger = summary["ledger"]
    hours = ledger["node_hours"]
    idle = hours["idle"]
    duration_s = summary["duration_s"]
    start_us = config["window_start_us"]
    yield Fact("window.duration_s", "length of the window", duration_s, "seconds")
    yield Fact("nodes", "nodes of the machine", inputs["events"]["n_nodes"], "count")
    yield Fact("idle.node_hours", "idle node-hours", idle, "amount")
    yield Fact("idle.mean_nodes", "idle nodes on average", summary["equivalent_nodes"], "amount")
    yield Fact("idle.most_nodes", "most nodes idle at once", summary.get("most_idle_nodes"), "count")
    yield Fact("pool_events", "times at which nodes became idle or were reclaimed", summary["n_pool_events"], "count")
    for key, words in _LABELS:
        yield Fact(f"node_hours.{key}", f"node-hours {words}", hours[key], "amount")
        yield Fact(f"share.{key}", f"share of the idle node-hours {words}", _over(hours[key], idle), "percent")
    held = idle - hours["unused_free"]
    yield Fact("node_hours.held", "node-hours held by training", held, "amount")
    yield Fact("share.held", "share of the idle node-hours held by training", _over(held, idle), "percent")
    yield Fact("samples", "samples processed", ledger["samples"], "samples")
    yield Fact("samples.rescaling", "samples lost to rescaling", ledger["rescale_samples"], "samples")
    yield Fact("samples.preemption", "samples lost to preemption", ledger["preempt_samples"], "samples")
    efficiency = summary.get("efficiency") or {}
    yield Fact("u", "U: samples over those on as many dedicated nodes", efficiency.get("u"), "ratio")
    bound = summary.get("bound") or {}
    yield Fact("bound.share", "share of the most that anyone could process, at least", bound.get("share"), "at-least")
    jobs = summary["jobs"]
    yield Fact("jobs", "jobs", sum(jobs.values()), "count")
    for status, n in jobs.items():
        yield Fact(f"jobs.{status}", f"jobs {status.replace('_', ' ')}", n, "count")
    done_us = summary.get("last_finish_us")
    done_s = None if done_us is None else (done_us - start_us) / 1e6
    yield Fact("done_s", "until all jobs had left", done_s, "seconds")
    yield Fact("rescales.grown", "times a job grew", summary["n_grown"], "count")
    yield Fact("rescales.shrunk", "times a job shrank by a decision", summary["n_shrunk"], "count")
    yield Fact("preemptions", "times a job lost nodes to the batch scheduler", summary["n_preemptions"], "count")
    yield Fact("decisions", "decisions", summary["n_decisions"], "count")
    for kind in ("proven", "proven_trivially"):
        yield Fact(f"decisions.{kind}", _DECISIONS[kind], summary["decisions"].get(kind, 0), "count")
    yield Fact("fallbacks", "decisions that fell back", sum(summary["fallbacks"].values()), "count")
    slowest = run.session.get("slowest_decision")
    yield Fact("decisions.slowest_s", "slowest decision", None if slowest is None else slowest["decide_s"], "ms")
    yield Fact("seconds", "seconds that the replay took", _seconds(run.session), "seconds")


_DECISIONS = {"proven": "decisions proven optimal", "proven_trivially": "decisions with no job or no idle node"}


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _seconds(session: Mapping[str, Any]) -> float | None:
    """Of the whole replay, reading and yardsticks included."""
    seconds = session.get("seconds")
    return None if seconds is None else float(sum(seconds.values()) + session.get("load_s", 0.0))
