"""The metrics of a run, declared once for pages, notebooks, sweeps, comparisons and docs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Context
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from bfreplay.datasets.times import EPOCH
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.ledger import NodeHours
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import ISOLATED_POLICY, plans_of, rounds_of
from bfreplay.wording import amount, duration, percent, signed_amount

Kind = Literal[
    "text", "count", "amount", "percent", "at-least", "ratio", "seconds", "ms", "samples", "signed", "number", "time"
]
"""Format of a value, with three significant digits by default: ``count`` 1,234 in full; ``amount`` 1,660 (node-hours,
nodes); ``percent`` of a share, 12.3 %; ``at-least`` the same, rounded down; ``ratio`` 0.498; ``seconds`` as a duration,
3.40 h; ``ms`` of seconds, 0.356 ms; ``samples`` 8.11e+11; ``signed`` +12.3, of a difference; ``number`` six digits, of
scores; ``time`` of microseconds since the epoch, in UTC."""

MISSING = "–"
_DOWN = Context(prec=3, rounding=ROUND_FLOOR)


def value_text(value: Any, kind: Kind) -> str:
    """Text of a value; a dash for ``None`` and nan."""
    return MISSING if value is None or (isinstance(value, float) and math.isnan(value)) else _WRITERS[kind](value)


def share_at_least(share: float) -> str:
    """Percent, rounded down to three significant digits."""
    rounding_error = 1e-12  # a share of 1 may come out below 1
    return percent(float(_DOWN.create_decimal(share + rounding_error)) if share else 0.0)


_WRITERS: Mapping[Kind, Callable[[Any], str]] = {
    "text": str,
    "count": "{:,}".format,
    "amount": amount,
    "percent": percent,
    "at-least": share_at_least,
    "ratio": amount,
    "seconds": duration,
    "ms": lambda seconds: f"{amount(seconds * 1e3)} ms",
    "samples": amount,
    "signed": signed_amount,
    "number": "{:.6g}".format,
    "time": lambda time_us: f"{EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}",
}

HELD_NOTHING_MADE = "held, nothing made"
"""Label of node time that a job held without being able to make a sample; the ledger calls it stalled."""

Of = Callable[[RunResult], Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number or name of a run.

    Parameters
    ----------
    key
        Name of the key figure on the page; empty for a metric that is none.
    words
        Description; ``{others}``, ``{under}`` and ``{whom}`` depend on the run.
    kind
        Format of the value.
    value
        Value for a run (``None`` for none), or path of an entry of its summary, such as ``bound.share``. Of a time at
        such a path, a metric in seconds is the time from the start of the window.
    column
        Name of its column in tables and comparisons, with the unit; empty for none.
    on_log, on_cluster
        Heading in texts of sweeps with runs on a log, or on a cluster; empty if these do not print it.
    is_tabled
        True if the table of a sweep has the column.
    total
        Name in comparisons of runs; empty if it is not compared.
    """

    key: str
    words: str
    kind: Kind
    value: Of | str
    column: str = ""
    on_log: str = ""
    on_cluster: str = ""
    is_tabled: bool = True
    total: str = ""

    def of(self, run: RunResult) -> Any:
        """Return the value for a run; ``None`` for none, or where a part of the path is ``None``."""
        if not isinstance(self.value, str):
            return self.value(run)
        found: Any = run.summary
        for name in self.value.split("."):
            found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
        return run.record.config.after_s(found) if self.kind == "seconds" and self.value.endswith("_us") else found

    def words_for(self, run: RunResult | None = None) -> str:
        """Return the description, for this run or in general."""
        return self.words.format(**(_IN_GENERAL if run is None else _of_run(run)))

    @property
    def type(self) -> str:
        """Name of the pyarrow type of its column."""
        return {"text": "string", "count": "int64", "time": "timestamp[us, tz=UTC]"}.get(self.kind, "double")


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A metric of one run: name, description, value (``None`` for none) and format."""

    key: str
    words: str
    value: Any
    kind: Kind


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _overhead(hours: NodeHours) -> float:
    return hours.rescaling + hours.preempted


def _of_idle(hours_of: Callable[[NodeHours], float]) -> Of:
    """Return the share of the idle node-hours."""
    return lambda run: _over(hours_of(run.summary.ledger.node_hours), run.summary.ledger.node_hours.idle)


def _node_hours(label: str, words: str, total: str = "") -> tuple[Metric, Metric]:
    """Return the metrics of one label of the ledger: node-hours, and their share of the idle node-hours."""
    path, column, share = f"ledger.node_hours.{label}", f"{label}_node_hours", _of_idle(attrgetter(label))
    return (
        Metric(f"node_hours.{label}", f"node-hours {words}", "amount", path, column, total=total),
        Metric(f"share.{label}", f"share of the idle node-hours {words}", "percent", share),
    )


def idle_until_done_us(run: RunResult) -> int | None:
    """Idle node-microseconds before the last job ended; ``None`` with jobs left, or without the table of idle nodes."""
    done_us = run.summary.last_finish_us
    if done_us is None or not run.has_table("pool"):
        return None
    idle_us, until_us = 0, done_us
    for rows in run.batches("pool", ("time", "n_idle"), backwards=True):
        since, n_idle = (np.asarray(rows[name].cast("int64"), dtype=np.int64) for name in ("time", "n_idle"))
        idle_us += int(n_idle @ np.diff(np.minimum(np.append(since, until_us), done_us)))
        until_us = int(since[0]) if since.size else until_us
    return idle_us


def _useful_share_until_done(run: RunResult) -> float | None:
    idle_us = idle_until_done_us(run)
    return None if idle_us is None else _over(run.summary.ledger.useful_node_us, idle_us)


def _held_hours(hours: NodeHours) -> float:
    return hours.idle - hours.unallocated


def _plans(k: int) -> Of:
    return lambda run: None if (plans := plans_of(run.record)) is None else plans[k]


def _rounds(name: str) -> Of:
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
    def deadlines(run: RunResult) -> int | None:
        found = run.summary.deadlines
        return found.get(name, 0) if any(found.values()) else None

    return Metric(f"deadlines.{name}", words, "count", deadlines)


def _deadlines_share(run: RunResult) -> float | None:
    found = run.summary.deadlines
    return _over(found.get("met", 0), sum(found.values()))


def _accepted_share(run: RunResult) -> float | None:
    """Share of jobs accepted, by the policy's own counts; ``None`` without such counts."""
    found = run.summary.policy or {}
    n_accepted, n_declined = found.get("accepted"), found.get("declined")
    if not (isinstance(n_accepted, int) and isinstance(n_declined, int)):
        return None
    return _over(n_accepted, n_accepted + n_declined)


def _decisions(kind: str, words: str) -> Metric:
    return Metric(f"decisions.{kind}", words, "count", lambda run: run.summary.decisions.get(kind, 0))


def _params(run: RunResult) -> str | None:
    """Parameters of the job with the best score, as text."""
    params = None if run.summary.scores is None else run.summary.scores.best_params
    if not params:
        return None
    texts = {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in sorted(params.items())}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


_IN_GENERAL = {"others": "", "under": f"under {ISOLATED_POLICY}", "whom": "all jobs"}


def _of_run(run: RunResult) -> dict[str, str]:
    fairness = run.summary.scheduling.finish_time_fairness
    return {
        "others": " (other trials may be pruned there)" if run.record.inputs.jobs.of_source else "",
        "under": _IN_GENERAL["under"] if fairness is None else f"under {fairness.policy}",
        "whom": "the measured jobs" if run.record.config.measured else _IN_GENERAL["whom"],
    }


METRICS: tuple[Metric, ...] = (
    Metric("window.duration_s", "length of the window", "seconds", "duration_s", "duration_s"),
    Metric("nodes", "nodes of the machine", "count", lambda run: run.record.inputs.events.n_nodes),
    Metric("idle.node_hours", "idle node-hours", "amount", "ledger.node_hours.idle", "idle_node_hours"),
    Metric("idle.mean_nodes", "idle nodes on average", "amount", "equivalent_nodes", "equivalent_nodes"),
    Metric("idle.most_nodes", "most nodes idle at once", "count", "most_idle_nodes"),
    Metric(
        "pool_events", "times at which nodes became idle or were reclaimed", "count",
        "n_pool_events", "n_pool_events",
    ),
    Metric(
        "", "node-hours on which a job worked", "amount",
        "ledger.node_hours.used", "used_node_hours", is_tabled=False, total="node-hours used",
    ),
    *_node_hours("useful", "useful", "node-hours useful"),
    *_node_hours("rescaling", "rescaling", "node-hours of rescaling"),
    *_node_hours("preempted", "preempted", "node-hours preempted"),
    *_node_hours("unallocated", "unallocated", "node-hours unallocated"),
    *_node_hours("stalled", f"stalled: {HELD_NOTHING_MADE}", f"node-hours stalled: {HELD_NOTHING_MADE}"),
    Metric(
        "share.overhead", "share of the node-hours held by jobs that went into rescaling or was preempted", "percent",
        lambda run: _over(_overhead(hours := run.summary.ledger.node_hours), _held_hours(hours)),
    ),
    Metric(
        "share.until_done", "share of the node-hours idle until all jobs were done, useful", "percent",
        _useful_share_until_done,
    ),
    Metric(
        "node_hours.held", "node-hours held by jobs", "amount", lambda run: _held_hours(run.summary.ledger.node_hours)
    ),
    Metric("share.held", "share of the idle node-hours held by jobs", "percent", _of_idle(_held_hours)),
    Metric(
        "", "samples that the allocated nodes could have made", "samples",
        lambda run: _over(run.summary.ledger.gross_samples, run.summary.ledger.node_hours.used) or 0.0,
        "gross_samples_per_used_node_hour", is_tabled=False, total="samples made per used node-hour",
    ),
    Metric("samples", "samples processed", "samples", "ledger.samples", "samples", on_log="samples", total="samples"),
    Metric(
        "samples.rescaling", "samples lost to rescaling", "samples",
        "ledger.rescale_samples", "rescale_samples", is_tabled=False, total="samples that rescaling cost",
    ),
    Metric(
        "samples.preemption", "samples lost to preemption", "samples",
        "ledger.preemption_samples", "preemption_samples", is_tabled=False, total="samples that preemption cost",
    ),
    Metric(
        "dedicated.samples", "samples on as many dedicated nodes{others}", "samples",
        "efficiency.dedicated_samples", "dedicated_samples",
    ),
    Metric("u", "U: samples over those on as many dedicated nodes", "ratio", "efficiency.u", "u", on_log="U"),
    Metric("bound.samples", "upper bound on the samples", "samples", "bound.samples", "bound_samples"),
    Metric(
        "bound.share", "share of the upper bound, at least", "at-least",
        "bound.share", "share_of_bound", on_log="of the bound",
    ),
    Metric("done_s", "until all jobs were done", "seconds", "last_finish_us", "done_s", on_log="last finish"),
    Metric(
        "dedicated.done_s", "until all jobs were done on as many dedicated nodes{others}", "seconds",
        "efficiency.dedicated_last_finish_us",
    ),
    Metric("bound.done_s", "lower bound on the time until all jobs are done", "seconds", "bound.earliest_finish_us"),
    Metric("", "end of the last job", "time", "last_finish_us", "last_finish"),
    Metric(
        "learning.lost", "share of the samples lost to learning the curves", "percent",
        "learning.lost", "learning_lost",
    ),
    Metric("known.samples", "samples with known curves", "samples", "learning.known_samples"),
    Metric("known.done_s", "until all jobs were done with known curves", "seconds", "learning.known_last_finish_us"),
    Metric(
        "known.jct.mean_s", "submit to finish with known curves, mean", "seconds",
        "learning.known_average_jct_s", "known_average_jct_s", on_cluster="average JCT, known rates",
    ),
    Metric("known.best_score", "best simulated score with known curves", "number", "learning.known_best_score"),
    Metric("jobs", "jobs", "count", lambda run: sum(run.summary.jobs.values())),
    *map(_status, STATUSES),
    *_times("submit_to_start", "first start of jobs that started"),
    *_times("submit_to_finish", "finish of jobs that finished"),
    _deadlines("met", "deadlines met"),
    _deadlines("missed", "deadlines missed"),
    _deadlines("declined", "deadlines of declined jobs"),
    _deadlines("open", "deadlines undecided at the end of the window"),
    _deadlines("void", "deadlines of jobs that the source ended earlier"),
    Metric("", "deadlines met", "count", "deadlines.met", "deadlines_met"),
    Metric(
        "deadlines.satisfied", "share of the deadlines met", "percent",
        _deadlines_share, "deadlines_satisfied", on_cluster="deadlines met",
    ),
    Metric(
        "", "share of the deadlines met, as a published program counts them", "percent",
        _accepted_share, "accepted_as_published", on_cluster="as published",
    ),
    Metric("measured.jobs", "jobs included in averages", "count", "scheduling.n_jobs", "n_measured_jobs"),
    Metric(
        "measured.completed", "jobs included in averages that finished", "count",
        "scheduling.n_completed", "n_measured_completed",
    ),
    Metric(
        "jct.mean_s", "submit to finish, mean", "seconds",
        "scheduling.average_jct_s", "average_jct_s", on_cluster="average JCT",
    ),
    Metric(
        "ideal.jct.mean_s", "submit to finish without rounds, mean", "seconds",
        "ideal.average_jct_s", "ideal_average_jct_s", on_cluster="ideal JCT",
    ),
    Metric("makespan_s", "makespan of {whom}", "seconds", "scheduling.makespan_s", "makespan_s", on_cluster="makespan"),
    Metric(
        "utilisation", "share of the node-hours in which a job ran", "percent",
        "scheduling.utilisation", "utilisation", on_cluster="utilisation",
    ),
    Metric("cost", "cost of the held node-hours, dollars", "amount", "scheduling.cost", "cost", on_cluster="cost"),
    Metric(
        "rho.mean", "rho: time of a job over that {under}, mean", "ratio",
        "scheduling.finish_time_fairness.average_rho", "average_rho", on_cluster="average rho",
    ),
    Metric("rho.most", "largest rho", "ratio", "scheduling.finish_time_fairness.largest_rho", "largest_rho"),
    Metric(
        "rho.above_1", "share of the jobs that took longer than {under}", "percent",
        "scheduling.finish_time_fairness.share_above_1", "share_of_rho_above_1",
    ),
    Metric("", "jobs over nodes", "ratio", "scheduling.contention_fairness.contention", "contention"),
    Metric(
        "", "largest rho: time of a job over that alone, times contention", "ratio",
        "scheduling.contention_fairness.largest_rho", "worst_rho", on_cluster="worst rho",
    ),
    Metric(
        "", "share of the jobs whose rho is above 1.05", "percent",
        "scheduling.contention_fairness.unfair_share", "unfair_share", on_cluster="unfair",
    ),
    Metric(
        "", "largest rho, by the contention during each job", "ratio",
        "scheduling.contention_fairness.largest_rho_by_presence", "worst_rho_by_presence",
    ),
    Metric(
        "", "submit to finish, geometric mean", "seconds",
        "scheduling.geometric_mean_jct_s", "geometric_mean_jct_s",
    ),
    Metric("", "submit to finish, harmonic mean", "seconds", "scheduling.harmonic_mean_jct_s", "harmonic_mean_jct_s"),
    Metric("plans", "plans of rounds ahead", "count", _plans(0), "n_plans"),
    Metric(
        "plans.stopped", "solves of plans without a proven answer in their time limit", "count",
        _plans(1), "n_plan_solves_stopped", on_cluster="solves stopped",
    ),
    Metric("", "deadlines missed", "count", "deadlines.missed", "deadlines_missed", on_cluster="deadlines missed"),
    Metric("rounds", "rounds", "count", _rounds("n_rounds")),
    Metric("rounds.recomputations", "times shares were computed", "count", _rounds("n_recomputations")),
    Metric("leases", "times a job kept its nodes for another round", "count", _rounds("lease_extensions")),
    Metric("leases.opportunities", "times a job might have kept its nodes", "count", _rounds("lease_opportunities")),
    Metric("reports", "reports of jobs to their source", "count", "scores.n_reports"),
    Metric(
        "best.score", "best simulated score", "number", "scores.best_score", "best_score", on_log="best simulated score"
    ),
    Metric("best.job", "job with the best simulated score", "text", "scores.best_job"),
    Metric("best.params", "its parameters", "text", _params),
    Metric("best.after_s", "until the best simulated score", "seconds", "scores.best_time_us"),
    Metric(
        "best_finished.score", "best last simulated score of a finished job", "number", "scores.best_finished_score"
    ),
    Metric("best_finished.job", "finished job with that score", "text", "scores.best_finished_job"),
    Metric(
        "dedicated.best_score", "best simulated score on as many dedicated nodes", "number",
        "efficiency.dedicated_best_score",
    ),
    Metric(
        "rescales.up", "times a job gained nodes by a decision", "count",
        "n_scale_ups", "n_scale_ups", total="rescales up",
    ),
    Metric(
        "rescales.down", "times a job lost nodes by a decision", "count",
        "n_scale_downs", "n_scale_downs", total="rescales down",
    ),
    Metric(
        "preemptions", "times a job lost nodes to the batch scheduler", "count",
        "n_preemptions", "n_preemptions", total="preemptions",
    ),
    Metric("batch_starts", "starts of batch jobs", "count", "batch_starts.n_starts", "n_batch_starts"),
    Metric(
        "batch_starts.met", "starts of batch jobs that met a node of a training job", "count",
        "batch_starts.n_starts_met", "n_batch_starts_met", total="starts of batch jobs that met a training",
    ),
    Metric(
        "batch_starts.met_share", "share of the starts of batch jobs that met a node of a training job", "percent",
        "batch_starts.met_share",
    ),
    Metric(
        "batch_starts.nodes_met", "nodes of training jobs that starts of batch jobs met", "count",
        "batch_starts.n_nodes_met", "n_batch_nodes_met",
    ),
    Metric(
        "batch_delay.node_hours", "node-hours for which batch jobs started late", "amount",
        "batch_starts.delay_node_hours", "batch_delay_node_hours", on_log="batch delay, node-hours",
        total="node-hours of delay to batch jobs",
    ),
    Metric(
        "batch_delay.share", "the same as a share of the node-hours of batch jobs", "percent",
        "batch_starts.delay_share", "batch_delay_share",
    ),
    Metric("batch_jobs", "batch jobs", "count", "batch_delays.n_jobs"),
    Metric(
        "batch_jobs.late", "batch jobs that started late", "count", "batch_delays.n_jobs_delayed", "n_batch_jobs_late"
    ),
    Metric(
        "batch_jobs.late_node_hours", "node-hours for which batch jobs started late, propagated", "amount",
        "batch_delays.node_hours", "propagated_delay_node_hours", on_log="propagated delay, node-hours",
    ),
    Metric("batch_jobs.median_s", "delay of a late batch job, median", "seconds", "batch_delays.median_s"),
    Metric("batch_jobs.p99_s", "delay of a late batch job, 99 % within", "seconds", "batch_delays.p99_s"),
    Metric("batch_jobs.worst_s", "longest delay of a batch job", "seconds", "batch_delays.worst_s"),
    Metric("batch_jobs.worst", "batch job with the longest delay", "text", "batch_delays.worst_job"),
    Metric(
        "batch_delay.clear_s", "time to clear a node for a batch job", "seconds",
        lambda run: None if run.summary.batch_starts is None else run.record.config.clear_s,
    ),
    Metric("decisions", "decisions", "count", "n_decisions", "n_decisions", total="decisions"),
    _decisions("proven", "decisions proven optimal"),
    _decisions("proven_by_fallback", "decisions proven optimal by the fallback"),
    _decisions("proven_trivially", "decisions with no job or no idle node"),
    Metric(
        "fallbacks", "decisions that fell back", "count",
        lambda run: sum(run.summary.fallbacks.values()), "n_fallbacks",
    ),
    Metric(
        "decisions.slowest_s", "slowest decision", "ms",
        lambda run: getattr(run.session.slowest_decision, "decide_s", None),
    ),
    Metric(
        "seconds", "duration of the replay", "seconds",
        lambda run: run.session.seconds.total_s + (run.session.load_s or 0.0),
    ),
    Metric(
        "", "verdict on the idle nodes of the log", "text",
        lambda run: run.record.inputs.events.metadata.log_warnings.to_json()["verdict"], "log_verdict",
    ),
)  # fmt: skip
"""All metrics, in the order of the page's key figures."""

BY_COLUMN = {metric.column: metric for metric in METRICS if metric.column}
COLUMNS = {name: metric for name, metric in BY_COLUMN.items() if metric.is_tabled}
"""Metrics in the table of a sweep, by column."""


def key_figures(run: RunResult) -> dict[str, KeyFigure]:
    """Return the key figures of ``run`` by key; every run has the same keys."""
    return {
        metric.key: KeyFigure(metric.key, metric.words_for(run), metric.of(run), metric.kind)
        for metric in METRICS
        if metric.key
    }


def texts_in_sweep(values: Mapping[str, Sequence[Any]], *, log: bool, cluster: bool) -> dict[str, list[str]]:
    """Return the metrics that tables of many runs print, as texts by column.

    Parameters
    ----------
    values
        Value of each run by column.
    log, cluster
        True if some of the runs replayed a log, and if some ran on a cluster.
    """
    found = {
        name: [text_in_sweep(name, value) for value in values[name]]
        for name, metric in COLUMNS.items()
        if (log and metric.on_log) or (cluster and metric.on_cluster)
        if any(value is not None for value in values[name])
    }
    if not any([*values["deadlines_met"], *values["deadlines_missed"]]):
        found.pop("deadlines_missed", None)
    return found


def without_constants(texts: Mapping[str, list[str]]) -> tuple[dict[str, list[str]], str | None]:
    """Split the metrics of several runs: columns that differ, and one line about those with the same value in all."""
    n_runs = max(map(len, texts.values()), default=0)
    is_constant = {name: n_runs > 1 and len(set(each)) == 1 for name, each in texts.items()}
    same = [f"{title_in_sweep(name)} {each[0]}" for name, each in texts.items() if is_constant[name]]
    line = f"The same in all runs (to three digits): {', '.join(same)}" if same else None
    return {name: each for name, each in texts.items() if not is_constant[name]}, line


def title_in_sweep(column: str) -> str:
    """Heading of a metric in tables of many runs."""
    return COLUMNS[column].on_log or COLUMNS[column].on_cluster or column


def text_in_sweep(column: str, value: Any) -> str:
    """Text of a metric in tables of many runs; a dash for ``None``."""
    return "-" if value is None else value_text(value, COLUMNS[column].kind)
