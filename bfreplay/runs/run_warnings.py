"""Warnings about a run, repeated by every answer made from it, and warnings about extrapolated curves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.defaults import MAX_PARALLEL
from bfreplay.runs.run_record import RunRecord
from bfreplay.scalability import Curve, TabulatedCurve, measured_counts
from bfreplay.wording import count, digits
from bfreplay.workload import ElasticJob
from bfreplay.workload.change_costs import highest

_Text = TypeVar("_Text", bound=str)

DEADLINE_OBJECTIVE, DEADLINE_POLICIES = "deadline", "_SLOs"
"""Name of the objective that uses deadlines, and suffix of the policies that do."""


def run_warnings(record: RunRecord) -> list[str]:
    """Return sentences on the log, jobs that could never run, missing deadlines, costs, and extrapolated curves."""
    return [
        *record.inputs.events.metadata.log_warnings.sentences(),
        *_wide_jobs(record),
        *_no_deadlines(record),
        *_declined_jobs(record),
        *_fallbacks(record),
        *record.summary.costly_rescaling,
        *_ignored_costs(record),
        *_of_the_source(record),
        *_added_jobs(record),
        *_limit_without_effect(record),
        *shown_warnings(record.summary.extrapolation),
    ]


def warning_lines(warnings: Sequence[str]) -> list[str]:
    """Return one line of text for each warning."""
    return [f"Warning: {warning}" for warning in warnings]


def distinct_warnings(by_run: Sequence[tuple[str, Sequence[str]]], most_named: int = 3) -> list[str]:
    """Return the distinct warnings of labelled runs; one that not all runs share has labels or a number of runs."""
    labels_of_text = labels_by_text((label, warning) for label, warnings in by_run for warning in warnings)
    return [
        text
        if len(labels) == len(by_run)
        else f"{', '.join(labels)}: {text}"
        if len(labels) <= most_named
        else f"{len(labels):,} of {count(len(by_run), 'run')}: {text}"
        for text, labels in labels_of_text.items()
    ]


def labels_by_text(labels_and_texts: Iterable[tuple[str, _Text]]) -> dict[_Text, list[str]]:
    """Return the labels of each distinct text, in order of first appearance."""
    labels: dict[_Text, list[str]] = {}
    for label, text in dict.fromkeys(labels_and_texts):
        labels.setdefault(text, []).append(label)
    return labels


def _wide_jobs(record: RunRecord) -> Iterator[str]:
    summary = record.summary
    n_wide, widest = summary.n_jobs_wider_than_the_pool, summary.widest_job
    if not summary.most_idle_nodes:
        yield "No node is idle in this log: nothing to replay. Is --window right? Is --inventory missing in the import?"
    elif n_wide:
        reason = "too few nodes were ever idle at once"
        if widest is not None:
            need_words = f"{widest.name}{', the widest,' if n_wide > 1 else ''} needs {count(widest.min_nodes, 'node')}"
            idle = f"{summary['most_idle_nodes']:,} of {record['inputs']['events']['n_nodes']:,}"
            reason = f"{need_words}, and at most {idle} were ever idle at once"
            if record.inputs.events.metadata.node_types:
                reason += ", all types together"
        yield f"{n_wide:,} of {count(sum(summary['jobs'].values()), 'job')} could never run: {reason}."


def _of_the_source(record: RunRecord) -> list[str]:
    """Return the warnings in a job source's description of itself."""
    warnings = (record.inputs.jobs.source or {}).get("warnings")
    return [str(warning) for warning in warnings] if isinstance(warnings, list) else []


def _added_jobs(record: RunRecord) -> Iterator[str]:
    if added := record.inputs.jobs.added:
        yield f"Jobs were added while this run was followed ({added}): a replay needs them with these times."
    if corrected := record.inputs.jobs.corrected:
        yield f"This run was corrected by what was measured as it ran ({corrected}): a replay of its log differs."


def _limit_without_effect(record: RunRecord) -> Iterator[str]:
    """Yield a sentence if the larger of two limits of the trials at once was given.

    With pruners and samplers ``parallel`` counts also above ``max_parallel``; with a recorded study it does not.
    """
    source, max_parallel = record.inputs.jobs.source or {}, record.config.max_parallel
    parallel, events = source.get("parallel"), record.inputs.events
    all_nodes = events.n_nodes if events.metadata.source_format == SOURCE_FORMAT else None
    limits = [f"parallel = {parallel} in [campaign]", f"--max-parallel {max_parallel}"]
    if isinstance(parallel, int) and parallel < max_parallel not in (MAX_PARALLEL, all_nodes):
        yield f"{limits[1]} has no effect: {limits[0]} lets no more trials run at once. Raise it there."
    elif isinstance(parallel, int) and "study" in source and max_parallel < parallel != MAX_PARALLEL:
        yield f"{limits[0]} has no effect: {limits[1]} lets no more trials run at once."


def _declined_jobs(record: RunRecord) -> Iterator[str]:
    n_declines = len(record.summary.declined)
    if n_declines:
        n_jobs = count(sum(record.summary.jobs.values()), "job")
        has_baselines = record.summary.efficiency is not None or record.summary.bound is not None
        effect = "U and the upper bound still count their work" if has_baselines else "their work was not done"
        yield f"{n_declines:,} of {n_jobs} were declined by the policy: {effect}."


def _fallbacks(record: RunRecord) -> Iterator[str]:
    summary, solver = record.summary, record.config.policy_description.solver
    if summary.fallbacks:
        fallback = (solver.fallback if solver is not None else None) or "unknown"
        answered = f"The fallback ({fallback}) answered"
        if fallback == "none":
            answered = "There is no fallback, so no answer to"
        decisions = f"{sum(summary.fallbacks.values()):,} of {count(summary.n_decisions, 'decision')}"
        reasons = (
            f"{number:,} {reason.replace('_', ' ')}, the first: {summary.fallback_examples.get(reason, 'no message')}"
            for reason, number in summary.fallbacks.items()
        )
        yield f"{answered} {decisions}: {'; '.join(reasons)}."


def _no_deadlines(record: RunRecord) -> Iterator[str]:
    policy, summary = record.config.policy_description, record.summary
    terms = None if policy.objective is None else policy.objective.terms  # an external policy may have anything here
    names = [term.get("name") for term in terms if isinstance(term, Mapping)] if isinstance(terms, list) else []
    if DEADLINE_OBJECTIVE in names:
        user = f"The objective {policy.objective_spec}"
    elif policy.name.endswith(DEADLINE_POLICIES):
        user = f"The policy {policy.name}"
    else:
        return
    n_jobs, deadlines = sum(summary.jobs.values()), summary.deadlines
    # a run with measured jobs records only their deadlines
    if n_jobs and not any(deadlines.values()) and not record.config.measured:
        yield f"{user} uses deadlines, but none of {count(n_jobs, 'job')} has one."


def _ignored_costs(record: RunRecord) -> Iterator[str]:
    if record.summary.ignores_costs:
        policy = record.config.policy_description
        price_s = record.config.policy.get("price_s")
        own = "" if price_s is None else f", told that every change costs {price_s:g} s,"
        yield (
            f"The policy {policy.name}{own} does not know what changes of these jobs cost "
            f"({record.inputs.jobs.costs}): they are charged, but its decisions do not count them."
        )


def rescale_warnings(jobs: Iterable[ElasticJob], interval_bins: NDArray[np.void]) -> Iterator[str]:
    """Yield a sentence if a job loses more time when rescaled than the median idle interval lasts.

    Parameters
    ----------
    jobs
        The jobs.
    interval_bins
        Idle intervals of the log by length, ``(B,)`` of ``IDLE_INTERVAL_BIN``; censored ones are left aside.
    """
    n_complete = interval_bins["n_intervals"] - interval_bins["n_censored"]
    median_bin = int(np.searchsorted(np.cumsum(n_complete), n_complete.sum() / 2))
    low_s, high_s = (np.append(interval_bins["over_us"], np.inf) / 1e6)[median_bin : median_bin + 2]
    costs = ((highest(cost), job.name) for job in jobs for cost in (job.scale_up_cost_s, job.scale_down_cost_s))
    cost_s, name = max(costs, default=(0, ""))
    if n_complete.any() and cost_s > high_s:
        yield (
            f"Job {name} loses up to {cost_s:,.15g} s of training when rescaled, more than the median idle interval of "
            f"this log lasts ({low_s:,.0f} to {high_s:,.0f} s). Are scale_up_cost_s and scale_down_cost_s in seconds?"
        )


_SHOWN = 3
"""Number of extrapolation warnings in texts and on pages; ``run.json`` has all."""


def extrapolation_warnings(jobs: Iterable[ElasticJob]) -> list[str]:
    """Return sentences about node counts that jobs may have but their curves were not measured at.

    One for each curve and range of such counts, in the order of ``jobs``, with the first job's name and the rates in
    samples/s; it also says if the curve gives more on fewer nodes than on the fewest measured. None for a curve without
    measured counts.
    """
    jobs_of_curve: dict[tuple[int, int, int], tuple[Curve, list[str]]] = {}
    for job in jobs:
        by_batch_size = {} if job.adaptation is None else job.adaptation.throughput
        for curve in job.throughput_by_type.values() or by_batch_size.values() or [job.throughput]:
            fewest_nodes, most_nodes = measured_counts(curve) or (job.min_nodes, job.max_nodes)
            below = (job.min_nodes, min(fewest_nodes - 1, job.max_nodes))
            above = (max(most_nodes + 1, job.min_nodes), job.max_nodes)
            for first, last in (below, above):
                if first <= last:
                    jobs_of_curve.setdefault((id(curve), first, last), (curve, []))[1].append(job.name)
    return [_sentence(curve, first, last, names) for (_, first, last), (curve, names) in jobs_of_curve.items()]


def shown_warnings(sentences: Sequence[str]) -> list[str]:
    """Return the first few sentences, and the number of further ones, for texts and pages."""
    n_more = len(sentences) - _SHOWN
    return [
        *sentences[:_SHOWN],
        *([f"{count(n_more, 'such warning')} more: summary.extrapolation"] if n_more > 0 else []),
    ]


def _sentence(curve: Curve, first: int, last: int, names: list[str]) -> str:
    fewest_nodes, most_nodes = measured_counts(curve) or (first, last)
    is_below = last < fewest_nodes
    edge = fewest_nodes if is_below else most_nodes
    if isinstance(curve, TabulatedCurve):  # its points may lie at more nodes than a table can have
        rates = {nodes: float(np.interp(nodes, curve.nodes, curve.values)) for nodes in (first, last, edge)}
        line, exceeds = ", a straight line to (0, 0)" if is_below else "", False
    else:
        table = curve.table(max(last, edge))
        rates = {nodes: float(table[nodes]) for nodes in (first, last, edge)}
        line, exceeds = "", is_below and table[first : last + 1].max() > rates[edge]
    jobs = f"Job {names[0]} may" if len(names) == 1 else f"{len(names):,} jobs, such as {names[0]}, may"
    counts = count(first, "node") if first == last else f"{first:,} to {last:,} nodes"
    rates_text = " and ".join(f"{digits(rates[nodes])} samples/s on {nodes:,}" for nodes in sorted({first, last}))
    too_much = (
        f", and on some count more than the {digits(rates[edge])} on {edge:,}: it cannot be right" if exceeds else ""
    )
    return (
        f"{jobs} run on {counts}, where the curve was not measured (only on {fewest_nodes:,} to {most_nodes:,}). "
        f"It gives {rates_text}{line}{too_much}. "
        f"Set {'min_nodes' if is_below else 'max_nodes'} {edge:,}, or measure there."
    )
