"""Text of the story of one job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bfreplay.runs.explain.active_time import time_words
from bfreplay.runs.explain.job_story import ADMITTED, LOST, SUBMITTED, WINDOW_END, JobStory, Step
from bfreplay.runs.explain.saved_tables import microseconds
from bfreplay.wording import aligned_lines, amount, count, duration, maybe_duration, percent, samples


def render_job(of_job: Mapping[str, Any], story: JobStory, most_steps: int, declined: str | None = None) -> str:
    """Return several lines of text, without a newline at the end.

    Parameters
    ----------
    of_job
        Its row of ``job_answers``.
    story
        Its story.
    most_steps
        Largest number of changes listed, half from the beginning and half from the end.
    declined
        Reason for which the policy declined it; ``None`` for a job that it took.
    """
    return "\n".join(
        [*_head(of_job, story, declined), *_node_time(of_job), *_training(of_job), "", *_steps(story, most_steps)]
    )


def _head(of_job: Mapping[str, Any], story: JobStory, declined: str | None) -> Iterator[str]:
    model = f" ({of_job['model']})" if isinstance(of_job["model"], str) else ""
    yield f"{of_job['job']}{model}: {of_job['status'].replace('_', ' ')}{f' ({declined})' if declined else ''}"
    started = "never started"
    if not any(step.reason == SUBMITTED for step in story.steps):
        submitted_us = microseconds(of_job["submitted"])
        if submitted_us is not None:
            started += f": it was to be submitted at {time_words(submitted_us, story.origin_us)}"
    if not math.isnan(of_job["queue_s"]):
        started = f"started after {maybe_duration(of_job['queue_s'])} in the queue"
    finished = ""
    if not math.isnan(of_job["completion_s"]):
        finished = f", finished {maybe_duration(of_job['completion_s'])} after it was submitted"
        if not math.isnan(of_job["slowdown"]):
            finished += f" ({amount(of_job['slowdown'])} times as long as at the best rate of its curve)"
    yield f"  {started}{finished}"


def _node_time(of_job: Mapping[str, Any]) -> Iterator[str]:
    held = of_job["held_node_hours"]
    if not held:
        return
    nodes = f"{amount(of_job['mean_nodes'])} nodes on average for {duration(of_job['held_s'])}"
    yield f"  held {nodes}: {amount(held)} node-hours"
    for label in ("useful", "rescaling", "preempted", "stalled"):
        hours = of_job[f"{label}_node_hours"]
        if hours:
            yield f"    {label.replace('_', ' '):<20}{amount(hours):>10}  {percent(hours / held):>8}"


def _training(of_job: Mapping[str, Any]) -> Iterator[str]:
    done, work = of_job["done_samples"], of_job["work_samples"]
    yield f"  {samples(done)} samples done" + (f" of {samples(work)}" if math.isfinite(work) else "")
    if not math.isnan(of_job["efficiency"]):
        nodes = f"{amount(of_job['mean_nodes'])} dedicated nodes would process in the {duration(of_job['held_s'])}"
        yield f"    {percent(of_job['efficiency'])} of what {nodes} for which it held nodes"
    scale_ups = of_job["n_scale_ups"] - of_job["n_starts"]  # a start counts as a scale-up in the table
    rescales = f"scaled up {count(int(scale_ups), 'time')}, down {count(int(of_job['n_scale_downs']), 'time')}"
    lost = samples(of_job["rescale_cost_samples"])
    yield f"  {count(int(of_job['n_starts']), 'start')}, {rescales}: {lost} samples lost"
    if of_job["n_preemptions"]:
        lost = samples(of_job["preemption_cost_samples"])
        yield f"  {count(int(of_job['n_preemptions']), 'preemption')}: {lost} samples lost"
    if of_job["n_reports"] and not math.isnan(of_job["n_reports"]):
        scores = (
            ""
            if math.isnan(of_job["best_score"])
            else (f": best simulated score {of_job['best_score']:.6g}, last {of_job['last_score']:.6g}")
        )
        yield f"  {count(int(of_job['n_reports']), 'report')}{scores}"


def _steps(story: JobStory, most: int) -> Iterator[str]:
    steps = story.steps
    shown = list(steps)
    omitted = len(steps) - most
    if omitted > 0:
        shown = [*steps[: most - most // 2], *steps[len(steps) - most // 2 :]]
    header = ["time" if story.origin_us is None else "seconds", "", "nodes", "cost in samples", "decision"]
    lines = aligned_lines([header, *(_cells(step, story.origin_us) for step in shown)], left=(0, 1))
    cut = 1 + most - most // 2
    for k, line in enumerate(lines):
        if omitted > 0 and k == cut:
            yield f"... {count(omitted, 'change')} omitted ..."
        yield line
    if any(step.reason == LOST for step in steps):
        yield "'preempted or scaled down' and unknown costs: to resolve them, give the inputs (--events, --jobs)"


def _cells(step: Step, origin_us: int | None) -> list[str]:
    nodes = f"{step.before} -> {step.after}"
    cost = "?" if step.cost_samples is None else samples(step.cost_samples) if step.cost_samples else ""
    if step.reason in (SUBMITTED, ADMITTED):
        nodes = cost = ""
    if step.reason == WINDOW_END:
        nodes, cost = str(step.after), ""
    decision = "" if step.decision is None else str(step.decision)
    return [time_words(step.time_us, origin_us), step.reason, nodes, cost, decision]
