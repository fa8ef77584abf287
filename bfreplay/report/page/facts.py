"""What the page tells about a run in words: each number with a key, so that it is said the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.result import RunResult
from bfreplay.replay.scheduling import ISOLATED_POLICY
from bfreplay.replay.scheduling_text import rounds_of
from bfreplay.report.tables import HELD_NOTHING_MADE, Kind, written

_LABELS = (
    ("useful", "useful"),
    ("rescaling", "rescaling"),
    ("lost_to_preemption", "lost to preemption"),
    ("unused", "unused"),
)
_TIMES = (("submit_to_start", "first start"), ("submit_to_finish", "finish"))
_DEADLINES = (
    ("met", "deadlines met"),
    ("missed", "deadlines missed"),
    ("open", "deadlines that may still be met at the end of the window"),
    ("void", "deadlines of jobs that the source ended before"),
)
_DECISIONS = {
    "proven": "decisions proven optimal",
    "proven_by_fallback": "decisions proven optimal by the fallback",
    "proven_trivially": "decisions with no job or no idle node",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One number or name: ``key`` names it, ``words`` tell a person what it is; ``value`` is ``None`` for none."""

    key: str
    words: str
    value: Any
    kind: Kind


def facts_of(run: RunResult) -> dict[str, Fact]:
    """Every number and name of ``run`` that sentences and key figures tell, by key, in the order of that table.

    Each run has the same keys; runs of older versions lack some values: these are ``None``.
    """
    return {fact.key: fact for fact in _facts(run)}


def _facts(run: RunResult) -> Iterator[Fact]:
    yield from _of_idle_nodes(run)
    yield from _of_node_hours(run.summary["ledger"]["node_hours"])
    yield from _of_samples(run)
    yield from _of_learning(run)
    yield from _of_jobs(run)
    yield from _of_scheduling(run)
    yield from _of_scores(run)
    yield from _of_decisions(run)


def _of_idle_nodes(run: RunResult) -> Iterator[Fact]:
    summary = run.summary
    yield Fact("window.duration_s", "length of the window", summary["duration_s"], "seconds")
    yield Fact("nodes", "nodes of the machine", run.record["inputs"]["events"]["n_nodes"], "count")
    yield Fact("idle.node_hours", "idle node-hours", summary["ledger"]["node_hours"]["idle"], "amount")
    yield Fact("idle.mean_nodes", "idle nodes on average", summary["equivalent_nodes"], "amount")
    yield Fact("idle.most_nodes", "most nodes idle at once", summary.get("most_idle_nodes"), "count")
    yield Fact("pool_events", "times at which nodes became idle or were reclaimed", summary["n_pool_events"], "count")


def _of_node_hours(hours: Mapping[str, float]) -> Iterator[Fact]:
    idle = hours["idle"]
    for key, words in _LABELS:
        yield Fact(f"node_hours.{key}", f"node-hours {words}", hours[key], "amount")
        yield Fact(f"share.{key}", f"share of the idle node-hours {words}", _over(hours[key], idle), "percent")
    held = idle - hours["unused_free"]
    yield Fact("node_hours.held", "node-hours held by jobs", held, "amount")
    yield Fact("share.held", "share of the idle node-hours held by jobs", _over(held, idle), "percent")
    stalled = hours["unused_stalled"]
    yield Fact("node_hours.stalled", f"unused node-hours that were {HELD_NOTHING_MADE}", stalled, "amount")


def _of_samples(run: RunResult) -> Iterator[Fact]:
    ledger, is_source = run.summary["ledger"], _source(run) is not None
    yield Fact("samples", "samples processed", ledger["samples"], "samples")
    yield Fact("samples.rescaling", "samples lost to rescaling", ledger["rescale_samples"], "samples")
    yield Fact("samples.preemption", "samples lost to preemption", ledger["preempt_samples"], "samples")
    there = run.summary.get("efficiency") or {}
    where = "on as many dedicated nodes" + (", of other jobs perhaps" if is_source else "")
    yield Fact("dedicated.samples", f"samples {where}", there.get("dedicated_samples"), "samples")
    yield Fact("u", "U: samples over those on as many dedicated nodes", there.get("u"), "ratio")
    bound = run.summary.get("bound") or {}
    yield Fact("bound.samples", "samples that nobody could exceed", bound.get("samples"), "samples")
    yield Fact("bound.share", "share of the most that anyone could process, at least", bound.get("share"), "at-least")
    done_s = _after_s(run, run.summary.get("last_finish_us"))
    yield Fact("done_s", "until all jobs had left", done_s, "seconds")
    dedicated_s = _after_s(run, there.get("dedicated_last_finish_us"))
    yield Fact("dedicated.done_s", f"until all jobs had left {where}", dedicated_s, "seconds")
    earliest_s = _after_s(run, bound.get("earliest_finish_us"))
    yield Fact("bound.done_s", "before which nobody could be done with all jobs", earliest_s, "seconds")


def _of_learning(run: RunResult) -> Iterator[Fact]:
    """Against the same run with known curves."""
    learning = run.summary.get("learning") or {}
    known_s = _after_s(run, learning.get("known_last_finish_us"))
    yield Fact("learning.lost", "share of the samples that learning the curves cost", learning.get("lost"), "percent")
    yield Fact("known.samples", "samples with known curves", learning.get("known_samples"), "samples")
    yield Fact("known.done_s", "until all jobs had left with known curves", known_s, "seconds")
    yield Fact("known.best_score", "best score with known curves", learning.get("known_best_score"), "number")


def _of_jobs(run: RunResult) -> Iterator[Fact]:
    jobs = run.summary["jobs"]
    yield Fact("jobs", "jobs", sum(jobs.values()), "count")
    for status in STATUSES:
        yield Fact(f"jobs.{status}", f"jobs {status.replace('_', ' ')}", jobs.get(status, 0), "count")
    for key, words in _TIMES:
        times = run.summary.get("job_times", {}).get(key, {})
        yield Fact(f"{key}.median_s", f"submit to {words}, median", times.get("median_s"), "seconds")
        yield Fact(f"{key}.p95_s", f"submit to {words}, 95 % within", times.get("p95_s"), "seconds")
    deadlines = run.summary.get("deadlines", {})
    has_deadlines = any(deadlines.values())
    for key, words in _DEADLINES:
        yield Fact(f"deadlines.{key}", words, deadlines.get(key, 0) if has_deadlines else None, "count")


def _of_scheduling(run: RunResult) -> Iterator[Fact]:
    """Of the jobs that the run is about, and of the nodes that all jobs held."""
    told: Mapping[str, Any] = run.summary.get("scheduling") or {}
    of = "the jobs that the run is about" if run.record["config"].get("measured") else "all jobs"
    yield Fact("measured.jobs", "jobs that averages are taken of", told.get("n_jobs"), "count")
    yield Fact("measured.completed", "those of them that completed", told.get("n_completed"), "count")
    yield Fact("jct.mean_s", "submit to finish, mean", told.get("average_jct_s"), "seconds")
    yield Fact("makespan_s", f"until {of} had completed", told.get("makespan_s"), "seconds")
    yield Fact("utilisation", "share of the node-hours in which a job ran", told.get("utilisation"), "percent")
    yield Fact("cost", "cost of the held node-hours, dollars", told.get("cost"), "amount")
    fairness: Mapping[str, Any] = told.get("finish_time_fairness") or {}
    there = f"under {fairness.get('policy', ISOLATED_POLICY)}"
    yield Fact("rho.mean", f"rho: time of a job over that {there}, mean", fairness.get("average_rho"), "ratio")
    yield Fact("rho.most", "largest rho", fairness.get("largest_rho"), "ratio")
    yield Fact(
        "rho.above_1", f"share of the jobs that took longer than {there}", fairness.get("share_above_1"), "percent"
    )
    rounds = rounds_of(run.record) or {}
    yield Fact("rounds", "rounds", rounds.get("n_rounds"), "count")
    yield Fact("rounds.recomputations", "times shares were computed", rounds.get("n_recomputations"), "count")
    yield Fact("leases", "times a job kept its nodes for another round", rounds.get("lease_extensions"), "count")
    of_rounds = rounds.get("lease_opportunities")
    yield Fact("leases.opportunities", "times a job might have kept its nodes", of_rounds, "count")


def _of_scores(run: RunResult) -> Iterator[Fact]:
    """Of a campaign."""
    scores = run.summary.get("scores") or {}
    there = run.summary.get("efficiency") or {}
    yield Fact("reports", "reports of jobs to their source", scores.get("n_reports"), "count")
    yield Fact("best.score", "best score", scores.get("best_score"), "number")
    yield Fact("best.job", "job with the best score", scores.get("best_job"), "text")
    yield Fact("best.params", "its parameters", _params(scores.get("best_params")), "text")
    yield Fact("best.after_s", "until the best score", _after_s(run, scores.get("best_time_us")), "seconds")
    yield Fact("best_finished.score", "best last score of a finished job", scores.get("best_finished_score"), "number")
    yield Fact("best_finished.job", "finished job with that score", scores.get("best_finished_job"), "text")
    best_there = there.get("dedicated_best_score")
    yield Fact("dedicated.best_score", "best score on as many dedicated nodes", best_there, "number")


def _of_decisions(run: RunResult) -> Iterator[Fact]:
    summary = run.summary
    yield Fact("rescales.grown", "times a job grew", summary["n_grown"], "count")
    yield Fact("rescales.shrunk", "times a job shrank by a decision", summary["n_shrunk"], "count")
    yield Fact("preemptions", "times a job lost nodes to the batch scheduler", summary["n_preemptions"], "count")
    yield Fact("decisions", "decisions", summary["n_decisions"], "count")
    for kind, words in _DECISIONS.items():
        yield Fact(f"decisions.{kind}", words, summary["decisions"].get(kind, 0), "count")
    yield Fact("fallbacks", "decisions that fell back", sum(summary["fallbacks"].values()), "count")
    slowest = run.session.get("slowest_decision")
    yield Fact("decisions.slowest_s", "slowest decision", None if slowest is None else slowest["decide_s"], "ms")
    yield Fact("seconds", "seconds that the replay took", _seconds(run.session), "seconds")


def _source(run: RunResult) -> Mapping[str, Any] | None:
    source: Mapping[str, Any] | None = run.record["inputs"]["jobs"].get("source")
    return source


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _after_s(run: RunResult, time_us: int | None) -> float | None:
    """Seconds since the start of the window."""
    return None if time_us is None else (time_us - run.record["config"]["window_start_us"]) / 1e6


def _params(params: Mapping[str, Any] | None) -> str | None:
    """As the job's parameters stand in a sentence; ``None`` where it has none."""
    if not params:
        return None
    return ", ".join(
        f"{name} {written(value, 'number') if isinstance(value, float) else value}"
        for name, value in sorted(params.items())
    )


def _seconds(session: Mapping[str, Any]) -> float | None:
    """Of the whole replay, reading and yardsticks included."""
    seconds = session.get("seconds")
    return None if seconds is None else float(sum(seconds.values()) + session.get("load_s", 0.0))
