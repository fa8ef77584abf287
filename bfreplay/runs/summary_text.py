"""The summary of a run as text that a person can read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from bfreplay.datasets.node_selection import selection_words
from bfreplay.policies.names import OWN
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.placement import PlacementRule
from bfreplay.runs.comparison_tables import option_text
from bfreplay.runs.metric import why_u_is_undefined, words_of_run
from bfreplay.runs.metrics import METRICS
from bfreplay.runs.run_config import PolicyDescription, RunConfig
from bfreplay.runs.run_record import RunRecord
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.runs.scheduling_metrics import (
    cluster_of,
    instant_words,
    is_about_scheduling,
    scheduling_tables,
    window_words,
)
from bfreplay.wording import (
    LABEL_WIDTH,
    WIDTH,
    amount,
    count,
    duration,
    labelled_lines,
    paragraphs,
    parts_of_whole,
    percent,
    value_text,
)

_LabelAndText = tuple[str, str]
"""Label and text of a line."""
_BAR_WIDTH = 30
_SOON = 0.5
_NO_BREAK = "\xa0"
DECISION_WORDS = {
    "proven": "proven optimal",
    "proven_by_fallback": "proven optimal by the fallback",
    "proven_trivially": "no job or no node to decide on",
    "feasible": "feasible, not proven optimal",
    "wrong": "unchanged, although that breaks a bound",
    "none": "without an answer: allocation unchanged",
    "not_asked": "policy not asked",
    "unproven_by_design": "by a rule, without a proof",
}
"""Words for the keys of ``summary.decisions``."""
_LINES = {
    "Pool events": {"pool_events": "{}"},
    "Samples": {
        "samples": "{} processed",
        "samples.rescaling": "{} lost to rescaling",
        "samples.preemption": "{} lost to preemption",
        "samples.repeated": "{} lost since checkpoints",
        "dedicated.samples": "{} on {dedicated}",
    },
    "U": {"u": "{} times the samples of {dedicated}"},
    "Bound": {"bound.share": "at least {} of {bound}"},
    "Done": {
        "done_s": "after {}",
        "dedicated.done_s": "after {} on {dedicated}",
        "known.done_s": "after {} with known curves",
        "bound.done_s": "not before {} under any policy",
    },
    "Learning": {
        "learning.lost": "{} of the samples lost",
        "known.samples": "{} samples with known curves",
        "known.jct.mean_s": "{} from submit to finish on average with known rates",
    },
    "Jobs": {f"jobs.{status}": f"{{}} {status.replace('_', ' ')}" for status in STATUSES},
    "First start": {
        "n_jobs_started": "{} jobs",
        "submit_to_start.median_s": "median {} after submission",
        "submit_to_start.p95_s": "95 % within {}",
    },
    "Finish": {"submit_to_finish.median_s": "median {} after submission", "submit_to_finish.p95_s": "95 % within {}"},
    "Deadlines": {
        "deadlines.met": "{} met",
        "deadlines.missed": "{} missed",
        "deadlines.declined": "{} declined by the policy",
        "deadlines.open": "{} undecided at the end of the window",
        "deadlines.void": "{} ended before by the source",
    },
    "Best score": {
        "best.score": "{} ({best})",
        "best.job": "by {}",
        "best.after_s": "after {}",
        "best.params": "with {}",
        "known.best_score": "{} with known curves",
        "dedicated.best_score": "{} on {dedicated}",
    },
    "Last score": {"best_finished.score": "{}, the best of a finished job", "best_finished.job": "by {}"},
    "Reports": {"reports": "{}"},
    "JCT": {
        "measured.jobs": "{} measured",
        "measured.completed": "{} completed",
        "jct.mean_s": "{} on average from submit to finish",
    },
    "Ideal": {"ideal.jct.mean_s": "{} on average if shares were applied without rounds"},
    "Makespan": {"makespan_s": "{}"},
    "Utilisation": {"utilisation": "{} of the node-hours"},
    "Cost": {"cost": "{} dollars of the held node-hours"},
    "Fairness": {
        "rho.mean": "a job took {} times as long as {under} on average",
        "rho.most": "{} times at most",
        "rho.above_1": "{} of the jobs longer",
    },
    "Contention": {
        "contention": "{} jobs for each node",
        "worst_rho": "at most {} times as long as alone with that contention",
        "unfair_share": "{} of the jobs above 1.05 times",
    },
    "Plans": {"plans": "{}", "plans.stopped": "{} solves stopped or unanswered: another machine may plan otherwise"},
    "Rounds": {"rounds": "{}", "rounds.recomputations": "shares computed {} times"},
    "Leases": {"leases": "a job kept its nodes for another round {} times", "leases.opportunities": "of {} possible"},
    "Rescales": {"rescales.up": "{} up", "rescales.down": "{} down", "preemptions": "{} by preemption"},
    "Batch jobs": {
        "batch_starts": "{} starts",
        "batch_starts.met": "{} met nodes of training jobs",
        "batch_starts.met_share": "{} of the starts",
        "batch_starts.nodes_met": "{} nodes met",
        "batch_delay.node_hours": "{} node-hours of delay",
        "batch_delay.share": "{} of their node-hours",
        "batch_delay.clear_s": "{} to clear a node",
    },
    "Late starts": {
        "batch_jobs": "delays propagated through the schedule of {} batch jobs",
        "batch_jobs.late": "{} start late",
        "batch_jobs.late_node_hours": "{} node-hours",
        "batch_jobs.median_s": "median {}",
        "batch_jobs.p99_s": "99 % within {}",
        "batch_jobs.worst_s": "at most {}",
        "batch_jobs.worst": "job {}",
    },
}
"""Lines of metrics: label, and the texts of its metrics by key, or by column for one that is no key figure."""
_IN_OTHER_LINES = frozenset(
    [
        "window",
        "nodes",
        "idle",
        "node_hours",
        "share",
        "bound",
        "jobs",
        "deadlines",
        "decisions",
        "fallbacks",
        "seconds",
    ]
)
"""First words of the keys of metrics that other lines show, or that follow from those; any other is printed."""
_HIDDEN_AT_ZERO = ("jobs", "deadlines", "plans", "samples.repeated")
"""Keys of metrics that are not printed where they are 0, or the first words of such keys."""
_OF_SCHEDULING = ("JCT", "Makespan", "Utilisation", "Contention")
"""Lines of a run about scheduling alone."""
_OF_UNFINISHED = ("U", "Bound")
"""Lines of a run with jobs left: where all work is done, only times tell policies apart."""
_NODE_HOURS = ("useful", "rescaling", "preempted", "repeated", "unallocated", "stalled")
_NODE_HOURS_HIDDEN_AT_ZERO = ("repeated", "stalled")


def render(result: RunResult) -> str:
    """Return the summary as text: warnings, window, node-hours by label, training, decisions, seconds."""
    record = result.record
    parts = [
        warning_lines(result.warnings),
        labelled_lines(_header(record)),
        [*_node_hours(record)],
        [*_figures(result)],
        *(table.lines() for table in scheduling_tables(result) if is_about_scheduling(record)),
        [*_decisions(result), *labelled_lines(_session(result))],
    ]
    return paragraphs(parts)


def policy_words(config: RunConfig) -> str:
    """Return the policy of a run in words: ``bftrainer, decided by exact, T_fwd 120 s``."""
    policy, policy_entries = config.policy_description, config.policy
    details = [policy.name]
    if policy.solver is not None:
        own_entries = policy_entries.keys() - {*PolicyDescription.__struct_fields__}
        details += [f"{key} {policy_entries[key]}" for key in sorted(own_entries) if type(policy_entries[key]) is int]
        details.append(f"decided by {policy.solver.name}")
    if "product" in policy_entries:
        options = {key: value for key, value in policy_entries.items() if key not in ("name", "product", "readings")}
        details += [f"{key} {option_text(value)}" for key, value in options.items() if value is not None]
    if isinstance(policy_entries.get("round_s"), int | float):
        details.append(f"rounds of {duration(policy_entries['round_s'])}")
    if policy.t_fwd_s is not None:
        details.append(f"T_fwd {policy.t_fwd_s:g} s")
    elif policy.forward_time is not None:
        details.append(f"T_fwd {policy.forward_time.name}")
    if policy.objective_spec != OWN:
        details.append(f"objective {policy.objective_spec}")
    if isinstance(policy.learning, Mapping) and "share" in policy.learning:
        details.append("curves learned " + ("by model" if policy.learning["share"] == "model" else "job by job"))
    return ", ".join(details)


def _header(record: RunRecord) -> Iterator[_LabelAndText]:
    config, summary = record.config, record.summary
    yield "Policy", policy_words(config)
    work = ", unlimited work" if config.unlimited_work else ""
    nodes = ", on runs of neighbouring nodes" if config.placement is PlacementRule.RUNS else ""
    settles = f", settle time {config.settle_s:g} s" if config.settle_s else ""
    jobs_at_once = count(config.max_parallel, "job")
    yield "Replay", f"{config.semantics} time{settles}, at most {jobs_at_once} at once{work}{nodes}"
    if (source := record.inputs.jobs.source) is not None:
        yield "Jobs from", source["name"]
    if costs := record.inputs.jobs.costs:
        yield "Costs", f"{costs}; the policy does not know them" if summary.ignores_costs else costs
    inventory_words = " seen in it" if record.inputs.events.metadata.node_inventory == "seen" else ""
    n_nodes = count(record.inputs.events.n_nodes, "node") + inventory_words
    n_nodes += selection_words(config.selection)
    n_nodes += "; the batch jobs of the nodes left out are left out too" if "without" in config.selection else ""
    idle = parts_of_whole([summary.ledger.node_hours.idle])[0]
    if (cluster := cluster_of(record)) is None:
        yield "Window", f"{window_words(record)} ({duration(summary.duration_s)}), {n_nodes}"
        counted = f" ({' and '.join(config.also_idle)} nodes included)" if config.also_idle else ""
        yield "Idle", f"{idle} node-hours{counted}, equivalent to {amount(summary.equivalent_nodes)} dedicated nodes"
    else:
        yield "Cluster", f"{cluster} ({n_nodes}) for {duration(summary.duration_s)}: {idle} node-hours"


def _node_hours(record: RunRecord) -> Iterator[str]:
    summary, start_us = record.summary, record.config.window_start_us
    hours = summary.ledger.node_hours
    yield "Where the idle node-hours went" if cluster_of(record) is None else "Where the node-hours went"
    shares = [hours[label] / hours.idle if hours.idle else 0.0 for label in _NODE_HOURS]
    texts = parts_of_whole([hours[label] for label in _NODE_HOURS])
    for label, share, text in zip(_NODE_HOURS, shares, texts, strict=True):
        if label not in _NODE_HOURS_HIDDEN_AT_ZERO or hours[label]:
            yield f"  {label:<20}{text:>14}  {percent(share):>7}  {'#' * round(share * _BAR_WIDTH)}".rstrip()
    yield f"  {'together':<20}{parts_of_whole([hours.idle])[0]:>14}"
    finish_us, duration_s = summary.last_finish_us, summary.duration_s
    if finish_us is None and record.inputs.jobs.of_source:
        yield f"    the search was not over after {duration(duration_s)}"
    elif finish_us is not None:
        finish_s = (finish_us - start_us) / 1e6
        finish = f"{duration(finish_s)} of {duration(duration_s)}"
        if record.inputs.jobs.of_source:
            yield f"    the search finished after {finish}"
        elif finish_s < _SOON * duration_s:
            yield f"    all jobs were done after {finish}: use more jobs, or --unlimited-work"


def _figures(run_result: RunResult) -> Iterator[str]:
    """Yield the lines of the metrics that have a value, and why there are none."""
    summary, words = run_result.summary, words_of_run(run_result)
    values = {metric.figure_key or metric.column: (metric.of(run_result), metric.kind) for metric in METRICS}
    text_by_metric = {
        name: value_text(value, kind)
        for name, (value, kind) in values.items()
        if value is not None and (value or not {name, name.partition(".")[0]} & {*_HIDDEN_AT_ZERO})
    }
    texts_by_label = {
        label: [text.format(text_by_metric[name], **words) for name, text in parts.items() if name in text_by_metric]
        for label, parts in _LINES.items()
    }
    printed_names = {name for parts in _LINES.values() for name in parts}
    texts_by_label["Also"] = [
        f"{metric.words_for(run_result)} {text_by_metric[metric.figure_key]}"
        for metric in METRICS
        if metric.figure_key in text_by_metric.keys() - printed_names
        and metric.figure_key.partition(".")[0] not in _IN_OTHER_LINES
    ]
    efficiency = summary.efficiency
    if efficiency is not None and efficiency.u is None and not run_result.record.inputs.jobs.of_source:
        why = why_u_is_undefined(efficiency.dedicated_samples, efficiency.equivalent_nodes)
        texts_by_label["U"] = [f"undefined: {why}"]
    if summary.reason_without_baselines is not None:
        texts_by_label["Baselines"] = [f"none: {summary.reason_without_baselines}"]
    if not any(summary.jobs.values()):
        texts_by_label["Jobs"] = ["none submitted in the window"]
    if summary.batch_delays is not None and summary.batch_delays.n_nodes_unmatched:
        nodes = count(summary.batch_delays.n_nodes_unmatched, "node")
        texts_by_label["Unmatched"] = [f"{nodes} that became busy under a training job are of no batch job of the file"]
    hidden_labels: tuple[str, ...] = _OF_UNFINISHED if {"done_s", "bound.done_s"} <= text_by_metric.keys() else ()
    if not is_about_scheduling(run_result.record):
        hidden_labels += _OF_SCHEDULING
    for label, texts in texts_by_label.items():
        unbroken = "" if label in hidden_labels else ", ".join(text.replace(" ", _NO_BREAK) for text in texts)
        lines = textwrap.wrap(unbroken, WIDTH - LABEL_WIDTH, break_on_hyphens=False, break_long_words=False)
        yield from labelled_lines((label if line is lines[0] else "", line.replace(_NO_BREAK, " ")) for line in lines)


def _decisions(result: RunResult) -> Iterator[str]:
    summary = result.summary
    yield from labelled_lines([("Decisions", f"{summary.n_decisions:,}")])
    yield from (f"  {number:>10,}  {DECISION_WORDS.get(kind, kind)}" for kind, number in summary.decisions.items())
    if summary.fallbacks:
        total = sum(summary.fallbacks.values())
        reasons = ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in summary.fallbacks.items())
        yield f"  {total:>10,}  fell back: {reasons}"
        yield from (f"  {'':>10}    {reason}: {text}" for reason, text in summary.fallback_examples.items())
    slowest = result.session.slowest_decision
    if slowest is not None:
        when = instant_words(result.record, slowest.time_us)
        size = f"{count(slowest.n_jobs, 'job')}, {count(slowest.n_idle, 'idle node')}"
        yield f"  slowest {amount(slowest.decide_s * 1e3)} ms at {when} ({size})"


def _session(result: RunResult) -> Iterator[_LabelAndText]:
    seconds = result.session.seconds
    parts = (
        f"open {result.session.load_s or 0.0:.2f}, read {seconds.parse_s:.2f}, decide {seconds.decide_s:.2f}, "
        f"loop {seconds.loop_s:.2f}, write {seconds.write_s:.2f}"
    )
    if result.summary.efficiency is not None:
        parts += f"; dedicated nodes {seconds.dedicated_s:.2f}"
    if result.summary.scheduling.finish_time_fairness is not None:
        parts += f"; isolated policy {seconds.isolated_s:.2f}"
    yield "Seconds", parts
    if result.folder is not None:
        yield "Run folder", str(result.folder)
