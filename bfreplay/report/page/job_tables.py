"""Tables of a run's models, jobs, node types and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers
from bfreplay.runs.explain.saved_tables import jobs_frame, microseconds, model_label
from bfreplay.runs.metrics import HELD_NOTHING_MADE
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cost_of, weight_text
from bfreplay.runs.shown_values import Column, ShownTable

if TYPE_CHECKING:
    import pandas as pd

_TYPES = (
    Column("node_type", "node type"),
    Column("nodes", "nodes", "count"),
    Column("held_node_hours", "node-hours held", "amount"),
    Column("price", "dollars a node-hour", "number"),
    Column("cost", "cost, dollars", "amount"),
)
_WEIGHTS = (
    Column("weight", "weight"),
    Column("n_jobs", "jobs", "count"),
    Column("n_completed", "completed", "count"),
    Column("average_jct_s", "submit to finish, mean", "seconds"),
)


def scheduling_tables(run: RunResult) -> Iterator[ShownTable]:
    """Tables of node types if the log has several, and of weights if jobs have several."""
    scheduling = run.summary.scheduling
    by_type = run.record.inputs.events.metadata.node_types
    if by_type:
        prices = run.record.config.prices
        rows = [
            [name, len(by_type[name]), hours, prices.get(name), cost_of({name: hours}, prices)]
            for name, hours in scheduling.node_hours_by_type.items()
        ]
        yield ShownTable("Node types", _TYPES, rows)
    jobs = run.table("jobs").select(["weight", "finished"])
    measured = slice(*(run.record.config.measured or (None,)))
    weights = jobs["weight"].to_pylist()[measured]
    if len(set(weights)) > 1:
        is_done = jobs["finished"].is_valid().to_pylist()[measured]
        n_jobs = Counter(map(weight_text, weights))
        done = Counter(weight_text(weight) for weight, ended in zip(weights, is_done, strict=True) if ended)
        rows = [
            [weight, n, done[weight], scheduling.average_jct_s_by_weight.get(weight)]
            for weight, n in sorted(n_jobs.items(), key=lambda each: float(each[0]))
        ]
        yield ShownTable("Weights of jobs", _WEIGHTS, rows)


_NODE_HOURS = (
    Column("held_node_hours", "node-hours held", "amount"),
    Column("useful_node_hours", "useful", "amount"),
    Column("rescaling_node_hours", "rescaling", "amount"),
    Column("preempted_node_hours", "preempted", "amount"),
    Column("stalled_node_hours", HELD_NOTHING_MADE, "amount"),
)
_JOBS = (
    Column("job", "job"),
    Column("model", "model"),
    Column("status", "at the end"),
    Column("submitted", "submitted (UTC)", "time"),
    Column("queue_s", "submit to first start", "seconds"),
    Column("completion_s", "submit to finish", "seconds"),
    Column("held_s", "time with nodes", "seconds"),
    Column("mean_nodes", "mean nodes then", "amount"),
    *_NODE_HOURS,
    Column("done_samples", "samples", "samples"),
    Column("n_starts", "starts", "count"),
    Column("n_scale_ups", "scale-ups", "count"),
    Column("n_scale_downs", "scale-downs", "count"),
    Column("n_preemptions", "preempted", "count"),
)
_SCORES = (
    Column("best_score", "best simulated score", "number"),
    Column("last_score", "last simulated score", "number"),
)
_DEADLINE = (Column("deadline", "deadline (UTC)", "time"), Column("deadline_met", "met"))
_SINCE_THE_START = {
    "submitted": Column("submitted", "submitted, since the start of the window", "seconds"),
    "deadline": Column("deadline", "deadline, since the start of the window", "seconds"),
}
"""Replacements of columns for a log without a calendar."""
_MODELS = (
    Column("queue_median_s", "submit to first start, median", "seconds"),
    Column("queue_p95_s", "95 % within", "seconds"),
    Column("completion_median_s", "submit to finish, median", "seconds"),
    Column("completion_p95_s", "95 % within", "seconds"),
    Column("samples", "samples", "samples"),
    *_NODE_HOURS,
)


def jobs_table(run: RunResult) -> ShownTable:
    """A row a job, in the order of the set; scores and deadlines where there are any.

    Times are seconds since the start of the window for a log without a calendar.
    """
    import pandas as pd

    answers = job_answers(run)
    answers["model"] = answers["model"].map(model_label)
    answers["status"] = answers["status"].str.replace("_", " ")
    columns = list(_JOBS)
    if run.record.inputs.jobs.of_source:
        columns += _SCORES
    frame = jobs_frame(run)
    if frame["deadline"].notna().any():
        answers["deadline"] = frame["deadline"]
        answers["deadline_met"] = frame["deadline_met"].map({True: "yes", False: "no"}, na_action="ignore")
        columns += _DEADLINE
    if run.record.inputs.is_relative:
        columns = [_SINCE_THE_START.get(column.key, column) for column in columns]
        start = pd.Timestamp(run.record.config.window_start_us, unit="us", tz="UTC")
        for name in _SINCE_THE_START:
            if name in answers:
                answers[name] = (answers[name] - start).dt.total_seconds()
    return ShownTable("Jobs", tuple(columns), _rows(answers, columns))


def models_table(run: RunResult) -> ShownTable:
    """A row a model, in order of its first job."""
    models = model_answers(job_answers(run))
    statuses = [status for status in STATUSES if models[status].any()]
    columns = (
        Column("model", "model"),
        Column("n_jobs", "jobs", "count"),
        *(Column(status, status.replace("_", " "), "count") for status in statuses),
        *_MODELS,
    )
    return ShownTable("Models", columns, _rows(models, columns))


def _rows(frame: pd.DataFrame, columns: tuple[Column, ...] | list[Column]) -> list[list[Any]]:
    """Plain values, ``None`` for missing ones; times in microseconds."""
    cells = [
        [microseconds(value) if column.kind == "time" else _plain(value) for value in frame[column.key].tolist()]
        for column in columns
    ]
    return [list(row) for row in zip(*cells, strict=True)]


def _plain(value: Any) -> Any:
    return None if value is None or value != value else value
