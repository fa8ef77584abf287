"""The summary of a run as text that a person can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfreplay.policies.objectives.built_in import OWN
from bfreplay.runs.run_config import RunConfig
from bfreplay.runs.run_record import BatchStartCounts, Bound, Efficiency, LearningCost, RunRecord, Summary
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.runs.scheduling_metrics import cluster_of, instant_words, scheduling_lines, window_words
from bfreplay.wording import (
    amount,
    count,
    duration,
    labelled_lines,
    paragraphs,
    parts_of_whole,
    percent,
    share_at_least,
    signed_amount,
)

_LabelAndText = tuple[str, str]
"""Label and text of a line."""
_BAR_WIDTH = 30
_SOON = 0.5
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
_OWN_PARAMETERS = ("events", "futures", "memory")
"""Parameters of the policies that look ahead."""
_DEADLINE_WORDS = {
    "open": "undecided at the end of the window",
    "void": "ended before by the source",
    "declined": "declined by the policy",
}
_NODE_HOURS = ("useful", "rescaling", "preempted", "unallocated", "stalled")


def render(result: RunResult) -> str:
    """Return the summary as text: warnings, window, node-hours by label, training, decisions, seconds."""
    record = result.record
    parts = [
        warning_lines(result.warnings),
        labelled_lines(_header(record)),
        [*_node_hours(record)],
        labelled_lines(_training(record)),
        [*_decisions(result), *labelled_lines(_session(result))],
    ]
    return paragraphs(parts)


def policy_words(config: RunConfig) -> str:
    """Return the policy of a run in words: ``bftrainer, decided by exact, T_fwd 120 s``."""
    policy, policy_entries = config.policy_description, config.policy
    details = [policy.name]
    details += [f"{key} {policy_entries[key]}" for key in _OWN_PARAMETERS if key in policy_entries]
    if policy.solver is not None:
        details.append(f"decided by {policy.solver.name}")
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
    yield "Replay", f"{config.semantics} time, at most {count(config.max_parallel, 'job')} at once{work}"
    if (fell_back := fallback_words(record)) is not None:
        yield "Fallback", fell_back
    if (source := record.inputs.jobs.source) is not None:
        yield "Jobs from", source["name"]
    inventory_words = " seen in it" if record.inputs.events.metadata.node_inventory == "seen" else ""
    n_nodes = count(record.inputs.events.n_nodes, "node") + inventory_words
    idle = parts_of_whole([summary.ledger.node_hours.idle])[0]
    if (cluster := cluster_of(record)) is None:
        yield "Window", f"{window_words(record)} ({duration(summary.duration_s)}), {n_nodes}"
        yield "Idle", f"{idle} node-hours, equivalent to {amount(summary.equivalent_nodes)} dedicated nodes"
    else:
        yield "Cluster", f"{cluster} ({n_nodes}) for {duration(summary.duration_s)}: {idle} node-hours"


def _job_times(summary: Summary) -> Iterator[_LabelAndText]:
    job_times = summary.job_times
    n_arrivals = sum(summary.jobs.values()) - summary.jobs["not_submitted"]
    for times, words in ((job_times.submit_to_start, "first start"), (job_times.submit_to_finish, "finish")):
        if times.median_s is not None and times.p95_s is not None:
            subset_words = "" if times.n_jobs == n_arrivals else f"{times.n_jobs:,} of {count(n_arrivals, 'job')}, "
            quantiles = f"median {duration(times.median_s)}, 95 % within {duration(times.p95_s)}"
            yield "", f"from submit to {words}: {subset_words}{quantiles}"
    if many := summary.jobs["not_submitted"]:
        yield "", f"{count(many, 'job')} submitted after the end of the window"
    if any(summary.deadlines.values()):
        deadlines = summary.deadlines.items()
        yield (
            "Deadlines",
            ", ".join(f"{number:,} {_DEADLINE_WORDS.get(word, word)}" for word, number in deadlines if number),
        )


def fallback_words(record: RunRecord) -> str | None:
    """Return a sentence on the decisions that the fallback answered; ``None`` without any."""
    solver = record.config.policy_description.solver
    fallback = None if solver is None else solver.fallback
    n_fallbacks = sum(record.summary.fallbacks.values())
    words = "answered by the fallback" + ("" if fallback is None else f" ({fallback})")
    if fallback == "none":
        words = "without an answer, and there is no fallback"
    return f"{count(n_fallbacks, 'decision')} {words}, of {record.summary.n_decisions:,}" if n_fallbacks else None


def _node_hours(record: RunRecord) -> Iterator[str]:
    summary, start_us = record.summary, record.config.window_start_us
    hours = summary.ledger.node_hours
    yield "Where the idle node-hours went" if cluster_of(record) is None else "Where the node-hours went"
    shares = [hours[label] / hours.idle if hours.idle else 0.0 for label in _NODE_HOURS]
    texts = parts_of_whole([hours[label] for label in _NODE_HOURS])
    for label, share, text in zip(_NODE_HOURS, shares, texts, strict=True):
        if label != "stalled" or hours.stalled:
            yield f"  {label:<20}{text:>14}  {percent(share):>7}  {'#' * round(share * _BAR_WIDTH)}".rstrip()
    yield f"  {'together':<20}{parts_of_whole([hours.idle])[0]:>14}"
    finish_us, duration_s = summary.last_finish_us, summary.duration_s
    if finish_us is not None:
        finish_s = (finish_us - start_us) / 1e6
        finish = f"{duration(finish_s)} of {duration(duration_s)}"
        if record.inputs.jobs.of_source:
            yield f"    the search finished after {finish}"
        elif finish_s < _SOON * duration_s:
            yield f"    all jobs were done after {finish}: use more jobs, or --unlimited-work"


def _training(record: RunRecord) -> Iterator[_LabelAndText]:
    summary, start_us = record.summary, record.config.window_start_us
    ledger, efficiency, learning = summary.ledger, summary.efficiency, summary.learning
    cost = f"rescaling cost {amount(ledger.rescale_samples)}, preemption {amount(ledger.preemption_samples)}"
    yield "Samples", f"{amount(ledger.samples)} processed; {cost}"
    if efficiency is not None:
        nodes = f"{amount(efficiency.equivalent_nodes)} dedicated nodes"
        if record.inputs.jobs.of_source:
            yield (
                "Dedicated",
                _elsewhere(
                    f"on {nodes}",
                    efficiency.dedicated_samples,
                    efficiency.dedicated_jobs,
                    efficiency.dedicated_best_score,
                    record.config.after_s(efficiency.dedicated_last_finish_us),
                ),
            )
        else:
            yield from _efficiency(efficiency, nodes, start_us)
    if learning is not None and record.inputs.jobs.of_source:
        yield (
            "Learning",
            _elsewhere(
                "with known curves",
                learning.known_samples,
                learning.known_jobs,
                learning.known_best_score,
                record.config.after_s(learning.known_last_finish_us),
            ),
        )
    elif learning is not None and record.config.decides_in_rounds:
        yield "Learning", _learning_in_rounds(summary.scheduling.average_jct_s, learning.known_average_jct_s)
    elif learning is not None:
        yield "Learning", _learning(learning, start_us)
    yield from _bound(summary.bound, start_us, summary.last_finish_us)
    if summary.reason_without_baselines is not None:
        yield "Baselines", f"none: {summary.reason_without_baselines}"
    yield "Jobs", _statuses(summary.jobs) or "none submitted in the window"
    yield from _job_times(summary)
    yield from _scores(summary, start_us)
    yield from scheduling_lines(record)
    rescales = (
        f"{summary.n_scale_ups:,} up, {summary.n_scale_downs:,} down, {count(summary.n_preemptions, 'preemption')}"
    )
    yield "Rescales", f"{rescales} in {count(summary.n_pool_events, 'pool event')}"
    if summary.batch_starts is not None:
        yield "Batch jobs", batch_words(record.config, summary.batch_starts)
    if (late := summary.batch_delays) is not None:
        of_all = f"{late.n_jobs_delayed:,} of {count(late.n_jobs, 'batch job')}"
        jobs = f"propagated through their schedule, {of_all} start late"
        if late.n_jobs_delayed:
            jobs += (
                f": median {duration(late.median_s or 0.0)}, 99 % within {duration(late.p99_s or 0.0)}, at most "
                f"{duration(late.worst_s)} (job {late.worst_job}); {amount(late.node_hours)} node-hours, "
                f"{amount(late.direct_node_hours)} of them by clearing alone"
            )
        yield "", jobs
        if late.n_nodes_unmatched:
            nodes = count(late.n_nodes_unmatched, "node")
            yield "", f"{nodes} that became busy under a training job are of no batch job of the file"


def batch_words(config: RunConfig, starts: BatchStartCounts) -> str:
    """Return what the run did to the starts of batch jobs, in words."""
    if not starts.n_starts_met:
        return f"none of {count(starts.n_starts, 'batch start')} met a node of a training job"
    met_words = (
        f"{starts.n_starts_met:,} of {count(starts.n_starts, 'batch start')} ({percent(starts.met_share or 0.0)})"
    )
    delay_words = f"{duration(config.clear_s)} to clear a node, {amount(starts.delay_node_hours)} node-hours of delay"
    share_words = "" if starts.delay_share is None else f", {percent(starts.delay_share)} of their node-hours"
    return f"{met_words} met {count(starts.n_nodes_met, 'node')} of training jobs: with {delay_words}{share_words}"


def _statuses(jobs: Mapping[str, int]) -> str:
    return ", ".join(f"{n_jobs:,} {status.replace('_', ' ')}" for status, n_jobs in jobs.items() if n_jobs)


def _efficiency(efficiency: Efficiency, nodes: str, start_us: int) -> Iterator[_LabelAndText]:
    u = efficiency.u
    reason = f"undefined: the same jobs process nothing on {nodes}"
    own_us, other_us = efficiency.last_finish_us, efficiency.dedicated_last_finish_us
    if own_us is not None and other_us is not None:
        own, other = (duration((time_us - start_us) / 1e6) for time_us in (own_us, other_us))
        yield "U", f"1: all jobs are done in both, after {own} on the idle nodes and {other} on {nodes}"
    else:
        yield "U", reason if u is None else f"{amount(u)} times the samples of {nodes} in this window"


BOUND_WORDS = {
    "priced": "the upper bound",
    "free_rescaling": "the upper bound with free rescaling",
    "work": "the upper bound with free rescaling and free choice among the jobs",
}
"""Words for an upper bound, by its kind."""


def _bound(bound: Bound | None, start_us: int, finish_us: int | None) -> Iterator[_LabelAndText]:
    if bound is None or bound.share is None:
        return
    if finish_us is None or bound.earliest_finish_us is None:
        yield "Bound", f"at least {share_at_least(bound.share)} of {BOUND_WORDS[bound.kind]}"
    else:
        finish, earliest = (duration((time_us - start_us) / 1e6) for time_us in (finish_us, bound.earliest_finish_us))
        yield "Bound", f"all jobs are done after {finish}; no policy can finish before {earliest} (lower bound)"


def _elsewhere(place: str, samples: float, jobs: Mapping[str, int], best: float | None, finish_s: float | None) -> str:
    """Text about a job source in another replay, where other jobs may be pruned: samples do not compare them."""
    parts = [f"{amount(samples)} samples", _statuses(jobs)]
    if best is not None:
        parts.append(f"best simulated score {best:.6g}")
    parts.append("not finished" if finish_s is None else f"finished after {duration(finish_s)}")
    return f"{place}: {', '.join(filter(None, parts))}"


def _learning(learning: LearningCost, start_us: int) -> str:
    lost_share = learning.lost
    if lost_share is None:
        return "nothing is processed with known curves either"
    share = f"{percent(abs(lost_share))} {'fewer' if lost_share >= 0 else 'more'} samples than with known curves"
    own_us, other_us = learning.last_finish_us, learning.known_last_finish_us
    if own_us is None or other_us is None:
        return share
    own, other = (duration((time_us - start_us) / 1e6) for time_us in (own_us, other_us))
    return f"{share}; all jobs are done after {own}, with known curves after {other}"


def _learning_in_rounds(jct_s: float | None, base_s: float | None) -> str:
    own, other = ("no job completes" if mean_s is None else duration(mean_s) for mean_s in (jct_s, base_s))
    share = f", {signed_amount(100 * (jct_s / base_s - 1))} % for learning them" if jct_s and base_s else ""
    return f"average JCT {own}; with known rates of pairs {other}{share}"


def _scores(summary: Summary, start_us: int) -> Iterator[_LabelAndText]:
    scores = summary.scores
    if scores is None or scores.best_score is None or scores.best_time_us is None:
        return
    time_words = duration((scores.best_time_us - start_us) / 1e6)
    reports = count(scores.n_reports, "report")
    yield "Best score", f"{scores.best_score:.6g} (simulated) by {scores.best_job}, after {time_words}; {reports}"
    if scores.best_params:
        parameter_texts = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in scores.best_params.items()
        )
        yield "", f"with {', '.join(parameter_texts)}"
    if scores.best_finished_job is not None:
        last = f"{scores.best_finished_score:.6g} by {scores.best_finished_job}"
        yield "", f"best final simulated score of a finished job: {last}"


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
