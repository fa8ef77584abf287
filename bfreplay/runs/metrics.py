"""The metrics of a run, declared once for pages, notebooks, sweeps, comparisons and docs."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.ledger import NodeHours
from bfreplay.runs.metric import KeyFigure, Metric, ValueOfRun
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import plans_of, rounds_of
from bfreplay.wording import Kind

HELD_NOTHING_MADE = "held, nothing made"
"""Label of node time that a job held without being able to make a sample; the ledger calls it stalled."""


def _over(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _overhead(hours: NodeHours) -> float:
    return hours.rescaling + hours.preempted + hours.repeated


def _of_idle(hours_of: Callable[[NodeHours], float]) -> ValueOfRun:
    """Return the share of the idle node-hours."""
    return lambda run: _over(hours_of(run.summary.ledger.node_hours), run.summary.ledger.node_hours.idle)


def _entry(figure_key: str, words: str, kind: Kind, path: str) -> Metric:
    """Return a metric whose column is called as its entry in the summary."""
    return Metric(figure_key, words, kind, path, path.rpartition(".")[2])


def _node_hours(label: str, words: str) -> tuple[Metric, Metric]:
    """Return the metrics of one label of the ledger: node-hours, and their share of the idle node-hours."""
    path, column, share = f"ledger.node_hours.{label}", f"{label}_node_hours", _of_idle(attrgetter(label))
    return (
        Metric(f"node_hours.{label}", f"node-hours {words}", "amount", path, column),
        Metric(f"share.{label}", f"share of the idle node-hours {words}", "percent", share),
    )


def idle_until_done_us(result: RunResult) -> int | None:
    """Idle node-microseconds before the last job ended; ``None`` with jobs left, or without the table of idle nodes."""
    done_us = result.summary.last_finish_us
    if done_us is None or not result.has_table("pool"):
        return None
    idle_us, until_us = 0, done_us
    for rows in result.batches("pool", ("time", "n_idle"), backwards=True):
        since, n_idle = (np.asarray(rows[name].cast("int64"), dtype=np.int64) for name in ("time", "n_idle"))
        idle_us += int(n_idle @ np.diff(np.minimum(np.append(since, until_us), done_us)))
        until_us = int(since[0]) if since.size else until_us
    return idle_us


def _useful_share_before_end(result: RunResult) -> float | None:
    idle_us = idle_until_done_us(result)
    return None if idle_us is None else _over(result.summary.ledger.useful_node_us, idle_us)


def _job_hours(hours: NodeHours) -> float:
    return hours.idle - hours.unallocated


def _plans(position: int) -> ValueOfRun:
    return lambda run: None if (plans := plans_of(run.record)) is None else plans[position]


def _rounds(name: str) -> ValueOfRun:
    return lambda run: (rounds_of(run.record) or {}).get(name)


def _status(status: str) -> Metric:
    words = f"jobs {status.replace('_', ' ')}"
    return Metric(f"jobs.{status}", words, "count", lambda run: run.summary.jobs.get(status, 0), f"jobs_{status}")


def _times(name: str, words: str) -> tuple[Metric, Metric]:
    path = f"job_times.{name}"
    return (
        Metric(f"{name}.median_s", f"submit to {words}, median", "seconds", f"{path}.median_s", f"median_{name}_s"),
        Metric(f"{name}.p95_s", f"submit to {words}, 95 % within", "seconds", f"{path}.p95_s"),
    )


def _deadlines(name: str, words: str) -> Metric:
    def deadlines(result: RunResult) -> int | None:
        n_by_outcome = result.summary.deadlines
        return n_by_outcome.get(name, 0) if any(n_by_outcome.values()) else None

    return Metric(f"deadlines.{name}", words, "count", deadlines)


def _deadlines_share(result: RunResult) -> float | None:
    n_by_outcome = result.summary.deadlines
    return _over(n_by_outcome.get("met", 0), sum(n_by_outcome.values()))


def _acceptance_share(result: RunResult) -> float | None:
    """Share of jobs accepted, by the policy's own counts; ``None`` without such counts."""
    counts = result.summary.policy or {}
    n_accepts, n_declines = counts.get("accepted"), counts.get("declined")
    if not (isinstance(n_accepts, int) and isinstance(n_declines, int)):
        return None
    return _over(n_accepts, n_accepts + n_declines)


def _decisions(kind: str, words: str) -> Metric:
    return Metric(f"decisions.{kind}", words, "count", lambda run: run.summary.decisions.get(kind, 0))


def _params(result: RunResult) -> str | None:
    """Parameters of the job with the best score, as text."""
    params = None if result.summary.scores is None else result.summary.scores.best_params
    if not params:
        return None
    texts = {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in sorted(params.items())}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


_FINISH_TIME_FAIRNESS = "scheduling.finish_time_fairness"
_CONTENTION_FAIRNESS = "scheduling.contention_fairness"

METRICS: tuple[Metric, ...] = (
    _entry("window.duration_s", "length of the window", "seconds", "duration_s"),
    Metric("nodes", "nodes of the machine", "count", lambda run: run.record.inputs.events.n_nodes),
    Metric("idle.node_hours", "idle node-hours", "amount", "ledger.node_hours.idle", "idle_node_hours"),
    _entry("idle.mean_nodes", "idle nodes on average", "amount", "equivalent_nodes"),
    Metric("idle.most_nodes", "most nodes idle at once", "count", "most_idle_nodes"),
    _entry("pool_events", "times at which nodes became idle or were reclaimed", "count", "n_pool_events"),
    Metric("", "node-hours on which a job worked", "amount", "ledger.node_hours.used", "used_node_hours"),
    *_node_hours("useful", "useful"),
    *_node_hours("rescaling", "rescaling"),
    *_node_hours("preempted", "preempted"),
    *_node_hours("repeated", "repeated: the work was lost"),
    *_node_hours("unallocated", "unallocated"),
    *_node_hours("stalled", f"stalled: {HELD_NOTHING_MADE}"),
    Metric(
        "share.overhead",
        "share of the node-hours held by jobs that went into rescaling{repeated} or was preempted",
        "percent",
        lambda run: _over(_overhead(hours := run.summary.ledger.node_hours), _job_hours(hours)),
    ),
    Metric(
        "share.until_done",
        "share of the node-hours idle until all jobs were done, useful",
        "percent",
        _useful_share_before_end,
    ),
    Metric(
        "node_hours.held", "node-hours held by jobs", "amount", lambda run: _job_hours(run.summary.ledger.node_hours)
    ),
    Metric("share.held", "share of the idle node-hours held by jobs", "percent", _of_idle(_job_hours)),
    Metric(
        "",
        "samples that the allocated nodes could have made",
        "samples",
        lambda run: _over(run.summary.ledger.gross_samples, run.summary.ledger.node_hours.used) or 0.0,
        "gross_samples_per_used_node_hour",
    ),
    _entry("samples", "samples processed", "samples", "ledger.samples"),
    _entry("samples.rescaling", "samples lost to rescaling", "samples", "ledger.rescale_samples"),
    _entry("samples.preemption", "samples lost to preemption", "samples", "ledger.preemption_samples"),
    _entry("samples.repeated", "samples lost since checkpoints", "samples", "ledger.repeated_samples"),
    _entry(
        "dedicated.samples", "samples on as many dedicated nodes{others}", "samples", "efficiency.dedicated_samples"
    ),
    _entry("u", "U: samples over those on as many dedicated nodes", "ratio", "efficiency.u"),
    Metric("bound.samples", "upper bound on the samples", "samples", "bound.samples", "bound_samples"),
    Metric("bound.share", "share of the upper bound, at least", "at-least", "bound.share", "share_of_bound"),
    Metric("done_s", "until all jobs were done", "seconds", "last_finish_us", "done_s"),
    Metric(
        "dedicated.done_s",
        "until all jobs were done on as many dedicated nodes{others}",
        "seconds",
        "efficiency.dedicated_last_finish_us",
    ),
    Metric("bound.done_s", "lower bound on the time until all jobs are done", "seconds", "bound.earliest_finish_us"),
    Metric("", "end of the last job", "time", "last_finish_us", "last_finish"),
    Metric(
        "learning.lost", "share of the samples lost to learning the curves", "percent", "learning.lost", "learning_lost"
    ),
    Metric("known.samples", "samples with known curves", "samples", "learning.known_samples"),
    Metric("known.done_s", "until all jobs were done with known curves", "seconds", "learning.known_last_finish_us"),
    _entry("known.jct.mean_s", "submit to finish with known curves, mean", "seconds", "learning.known_average_jct_s"),
    Metric("known.best_score", "{best} score with known curves", "number", "learning.known_best_score"),
    Metric("jobs", "jobs", "count", lambda run: sum(run.summary.jobs.values())),
    *map(_status, STATUSES),
    Metric("", "jobs that started", "count", "job_times.submit_to_start.n_jobs", "n_jobs_started"),
    *_times("submit_to_start", "first start of jobs that started"),
    *_times("submit_to_finish", "finish of jobs that finished"),
    _deadlines("met", "deadlines met"),
    _deadlines("missed", "deadlines missed"),
    _deadlines("declined", "deadlines of declined jobs"),
    _deadlines("open", "deadlines undecided at the end of the window"),
    _deadlines("void", "deadlines of jobs that the source ended earlier"),
    Metric("", "deadlines met", "count", "deadlines.met", "deadlines_met"),
    Metric("deadlines.satisfied", "share of the deadlines met", "percent", _deadlines_share, "deadlines_satisfied"),
    Metric(
        "",
        "share of the deadlines met, as a published program counts them",
        "percent",
        _acceptance_share,
        "accepted_as_published",
    ),
    Metric("measured.jobs", "jobs included in averages", "count", "scheduling.n_jobs", "n_measured_jobs"),
    Metric(
        "measured.completed",
        "jobs included in averages that finished",
        "count",
        "scheduling.n_completed",
        "n_measured_completed",
    ),
    _entry("jct.mean_s", "submit to finish, mean", "seconds", "scheduling.average_jct_s"),
    Metric(
        "ideal.jct.mean_s",
        "submit to finish without rounds, mean",
        "seconds",
        "ideal.average_jct_s",
        "ideal_average_jct_s",
    ),
    _entry("makespan_s", "makespan of {whom}", "seconds", "scheduling.makespan_s"),
    _entry("utilisation", "share of the node-hours in which a job ran", "percent", "scheduling.utilisation"),
    _entry("cost", "cost of the held node-hours, dollars", "amount", "scheduling.cost"),
    _entry("rho.mean", "rho: time of a job over that {under}, mean", "ratio", f"{_FINISH_TIME_FAIRNESS}.average_rho"),
    _entry("rho.most", "largest rho", "ratio", f"{_FINISH_TIME_FAIRNESS}.largest_rho"),
    Metric(
        "rho.above_1",
        "share of the jobs that took longer than {under}",
        "percent",
        f"{_FINISH_TIME_FAIRNESS}.share_above_1",
        "share_of_rho_above_1",
    ),
    _entry("", "jobs over nodes", "ratio", f"{_CONTENTION_FAIRNESS}.contention"),
    Metric(
        "",
        "largest rho: time of a job over that alone, times contention",
        "ratio",
        f"{_CONTENTION_FAIRNESS}.largest_rho",
        "worst_rho",
    ),
    _entry("", "share of the jobs whose rho is above 1.05", "percent", f"{_CONTENTION_FAIRNESS}.unfair_share"),
    Metric(
        "",
        "largest rho, by the contention during each job",
        "ratio",
        f"{_CONTENTION_FAIRNESS}.largest_rho_by_presence",
        "worst_rho_by_presence",
    ),
    _entry("", "submit to finish, geometric mean", "seconds", "scheduling.geometric_mean_jct_s"),
    _entry("", "submit to finish, harmonic mean", "seconds", "scheduling.harmonic_mean_jct_s"),
    Metric("plans", "plans of rounds ahead", "count", _plans(0), "n_plans"),
    Metric(
        "plans.stopped",
        "solves of plans without a proven answer in their time limit",
        "count",
        _plans(1),
        "n_plan_solves_stopped",
    ),
    Metric("", "deadlines missed", "count", "deadlines.missed", "deadlines_missed"),
    Metric("rounds", "rounds", "count", _rounds("n_rounds")),
    Metric("rounds.recomputations", "times shares were computed", "count", _rounds("n_recomputations")),
    Metric("leases", "times a job kept its nodes for another round", "count", _rounds("lease_extensions")),
    Metric("leases.opportunities", "times a job might have kept its nodes", "count", _rounds("lease_opportunities")),
    Metric("reports", "reports of jobs to their source", "count", "scores.n_reports"),
    _entry("best.score", "{best} score", "number", "scores.best_score"),
    Metric("best.job", "job with the {best} score", "text", "scores.best_job"),
    Metric("best.params", "its parameters", "text", _params),
    Metric("best.after_s", "until the {best} score", "seconds", "scores.best_time_us"),
    Metric("best_finished.score", "{best} last score of a finished job", "number", "scores.best_finished_score"),
    Metric("best_finished.job", "finished job with that score", "text", "scores.best_finished_job"),
    Metric(
        "dedicated.best_score",
        "{best} score on as many dedicated nodes",
        "number",
        "efficiency.dedicated_best_score",
    ),
    _entry("rescales.up", "times a job gained nodes by a decision", "count", "n_scale_ups"),
    _entry("rescales.down", "times a job lost nodes by a decision", "count", "n_scale_downs"),
    _entry("preemptions", "times a job lost nodes to the batch scheduler", "count", "n_preemptions"),
    Metric("batch_starts", "starts of batch jobs", "count", "batch_starts.n_starts", "n_batch_starts"),
    Metric(
        "batch_starts.met",
        "starts of batch jobs that met a node of a training job",
        "count",
        "batch_starts.n_starts_met",
        "n_batch_starts_met",
    ),
    Metric(
        "batch_starts.met_share",
        "share of the starts of batch jobs that met a node of a training job",
        "percent",
        "batch_starts.met_share",
    ),
    Metric(
        "batch_starts.nodes_met",
        "nodes of training jobs that starts of batch jobs met",
        "count",
        "batch_starts.n_nodes_met",
        "n_batch_nodes_met",
    ),
    Metric(
        "batch_delay.node_hours",
        "node-hours for which batch jobs started late",
        "amount",
        "batch_starts.delay_node_hours",
        "batch_delay_node_hours",
    ),
    Metric(
        "batch_delay.share",
        "the same as a share of the node-hours of batch jobs",
        "percent",
        "batch_starts.delay_share",
        "batch_delay_share",
    ),
    Metric("batch_jobs", "batch jobs", "count", "batch_delays.n_jobs"),
    Metric(
        "batch_jobs.late", "batch jobs that started late", "count", "batch_delays.n_jobs_delayed", "n_batch_jobs_late"
    ),
    Metric(
        "batch_jobs.late_node_hours",
        "node-hours for which batch jobs started late, propagated",
        "amount",
        "batch_delays.node_hours",
        "propagated_delay_node_hours",
    ),
    Metric("batch_jobs.median_s", "delay of a late batch job, median", "seconds", "batch_delays.median_s"),
    Metric("batch_jobs.p99_s", "delay of a late batch job, 99 % within", "seconds", "batch_delays.p99_s"),
    Metric("batch_jobs.worst_s", "longest delay of a batch job", "seconds", "batch_delays.worst_s"),
    Metric("batch_jobs.worst", "batch job with the longest delay", "text", "batch_delays.worst_job"),
    Metric(
        "batch_delay.clear_s",
        "time to clear a node for a batch job",
        "seconds",
        lambda run: None if run.summary.batch_starts is None else run.record.config.clear_s,
    ),
    _entry("decisions", "decisions", "count", "n_decisions"),
    _decisions("proven", "decisions proven optimal"),
    _decisions("proven_by_fallback", "decisions proven optimal by the fallback"),
    _decisions("proven_trivially", "decisions with no job or no idle node"),
    Metric(
        "fallbacks", "decisions that fell back", "count", lambda run: sum(run.summary.fallbacks.values()), "n_fallbacks"
    ),
    Metric(
        "decisions.slowest_s",
        "slowest decision",
        "ms",
        lambda run: getattr(run.session.slowest_decision, "decide_s", None),
    ),
    Metric(
        "seconds",
        "duration of the replay",
        "seconds",
        lambda run: run.session.seconds.total_s + (run.session.load_s or 0.0),
    ),
    Metric(
        "",
        "verdict on the idle nodes of the log",
        "text",
        lambda run: run.record.inputs.events.metadata.log_warnings.to_json()["verdict"],
        "log_verdict",
    ),
)
"""All metrics, in the order of the page's key figures."""

BY_COLUMN = {metric.column: metric for metric in METRICS if metric.column}


def key_figures(result: RunResult) -> dict[str, KeyFigure]:
    """Return the key figures of ``result`` by key; every run has the same keys."""
    return {
        metric.figure_key: KeyFigure(metric.figure_key, metric.words_for(result), metric.of(result), metric.kind)
        for metric in METRICS
        if metric.figure_key
    }
