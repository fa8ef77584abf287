"""Pictures of a saved run: finished trials, scores, and nodes by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import new_figure, plain_tick, style_axes
from bfreplay.report.figures.figure import Figure
from bfreplay.report.figures.marks import BLUE, OKABE_ITO, PALE_BLUE, RED, Trace, fill_look, point_look
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis
from bfreplay.runs.explain.saved_tables import nodes_over_time, nodes_over_time_by_model
from bfreplay.runs.run_record import RunRecord
from bfreplay.runs.step_functions import StepSeries

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from bfreplay.runs.explain.campaign import CampaignAnswer
    from bfreplay.runs.explain.job_story import Step
    from bfreplay.runs.run_result import RunResult

_HATCHES = ("", "///", "...", "\\\\\\", "xx", "--", "++", "oo")
_COLUMNS = 480
"""Of a picture: steps finer than that cannot be seen."""


@dataclass(frozen=True, slots=True, eq=False)
class StackedNodes:
    """Mean nodes in C columns of a picture: ``edge_us (C + 1,)``, ``labels (M,)``, ``mean (M, C)``."""

    edge_us: NDArray[np.int64]
    labels: tuple[str, ...]
    mean: NDArray[np.float64]


def title_of(record: RunRecord, *title_words: str) -> str:
    """``title_words``, then the source of jobs, the policy and the cluster of the run with this ``run.json``."""
    source_name, cluster_name = (record.inputs.jobs.source or {}).get("name"), record.inputs.events.metadata.cluster
    return ", ".join(filter(None, (*title_words, source_name, record.config.policy_description.name, cluster_name)))


def stack_nodes(by_model: Mapping[str, StepSeries], window: TimeSpan) -> StackedNodes:
    """Mean nodes of each model in each column; models with the least node time share the last of eight places."""
    edges = window.columns(_COLUMNS)
    labels = list(by_model)
    means = np.array([by_model[label].in_columns(edges).mean for label in labels]).reshape(len(labels), edges.size - 1)
    most_models = len(_HATCHES)
    if len(labels) > most_models:
        by_use = sorted(range(len(labels)), key=lambda index: (-by_model[labels[index]].area_us, index))
        shown_models, other_models = sorted(by_use[: most_models - 1]), by_use[most_models - 1 :]
        means = np.vstack([means[shown_models], means[other_models].sum(axis=0)])
        labels = [*(labels[index] for index in shown_models), f"{len(other_models)} other models"]
    return StackedNodes(edges, tuple(labels), means)


def counting_steps(times_s: NDArray[np.float64], span: TimeSpan) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Edges in days (F + 2,), and between them (F + 1,) how many of ``times_s`` (F,), ascending, have passed."""
    times_us = span.start_us + times_s * 1e6
    edges = span.days(np.concatenate([[span.start_us], times_us, [span.end_us]]))
    return edges, np.arange(len(times_us) + 1)


def best_steps(campaign: CampaignAnswer, span: TimeSpan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges in days (B + 1,) and the best score so far between them (B,)."""
    times_us = span.start_us + campaign.best_s * 1e6
    return span.days(np.append(times_us, span.end_us)), campaign.best_score


def life_span(steps: Sequence[Step], span: TimeSpan) -> TimeSpan:
    """The part of ``span`` from the first step of a job to its last; all of it before that where times are relative."""
    start_us, end_us = max(span.start_us, steps[0].time_us), min(span.end_us, steps[-1].time_us)
    if end_us <= start_us:
        return span
    return replace(span, start_us=span.start_us if span.is_relative else start_us, end_us=end_us)


def busy_span(campaign: CampaignAnswer, span: TimeSpan) -> TimeSpan:
    """``span`` up to the last end of a job and a twentieth more, where all jobs have left; all of it otherwise."""
    if not len(campaign.ended_s) or len(campaign.ended_s) < sum(campaign.by_status.values()):
        return span
    over_us = span.start_us + round(float(campaign.ended_s[-1]) * 1.05e6)
    return replace(span, end_us=min(span.end_us, over_us)) if over_us > span.start_us else span


@dataclass(frozen=True, slots=True, eq=False)
class CampaignOverTime:
    """Results of a campaign, nodes held by its models over time in ``span``, and the title of its picture."""

    campaign: CampaignAnswer
    by_model: Mapping[str, StepSeries]
    span: TimeSpan
    title: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class JobOverTime:
    """Nodes of one job over time, the steps of its story in ``span``, and the title of its picture."""

    nodes: StepSeries
    steps: Sequence[Step]
    span: TimeSpan
    title: str = ""


def campaign_over_time(run: RunResult, campaign: CampaignAnswer) -> CampaignOverTime:
    """Return the data of the picture of ``campaign``."""
    by_model = nodes_over_time_by_model(run)
    return CampaignOverTime(campaign, by_model, TimeSpan.of_record(run.record), title_of(run.record))


def job_over_time(run: RunResult, job: str, steps: Sequence[Step]) -> JobOverTime:
    """Return the data of the picture of a job, with the steps of its story."""
    return JobOverTime(nodes_over_time(run, job), steps, TimeSpan.of_record(run.record), title_of(run.record, job))


def draw_campaign(campaign_data: CampaignOverTime) -> Drawing:
    """Finished trials over time, the best score so far where there are scores, and the nodes held by each model.

    Ends a little after the end of the last job.
    """
    campaign, span = campaign_data.campaign, busy_span(campaign_data.campaign, campaign_data.span)
    has_scores = len(campaign.best_score) > 0
    figure = new_figure(9.0, 7.6 if has_scores else 5.6)
    panels = figure.subplots(3 if has_scores else 2, 1, sharex=True)
    _draw_finishes(panels[0], campaign, span)
    if has_scores:
        edges, best = best_steps(campaign, span)
        panels[1].stairs(best, edges, baseline=None, color=BLUE, linewidth=1.8)
        better = "higher" if campaign.higher_is_better else "lower"
        style_axes(panels[1], y=f"best\nscore so far\n({better} is better)")
    handles = _draw_stack(panels[-1], stack_nodes(campaign_data.by_model, span), span)
    draw_time_axis(panels[-1], span)
    panels[0].set_title(campaign_data.title, fontsize=11, loc="left", parse_math=False)
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def draw_job(campaign_data: JobOverTime) -> Drawing:
    """Nodes of one job over time, as long as it was there, with a mark where nodes were reclaimed."""
    nodes, shown_span = campaign_data.nodes, life_span(campaign_data.steps, campaign_data.span)
    figure = new_figure(9.0, 3.6)
    axes = figure.add_subplot()
    edges = shown_span.days(nodes.edge_us)
    axes.stairs(nodes.mean, edges, fill=True, color=PALE_BLUE)
    axes.stairs(nodes.mean, edges, baseline=None, color=BLUE, linewidth=1.0, label="nodes held")
    preemptions = [step for step in campaign_data.steps if step.reason == "preempted"]
    if preemptions:
        times_us, counts = zip(*((step.time_us, step.before) for step in preemptions), strict=True)
        days = shown_span.days(np.array(times_us))
        axes.plot(days, counts, label="reclaimed by the batch scheduler", **point_look(RED, "v"))
    axes.set_ylim(0.0, max(1.0, float(nodes.mean.max())) * 1.1)
    draw_time_axis(axes, shown_span)
    style_axes(axes, y="nodes", title=campaign_data.title, y_ticks=plain_tick)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return figure


def _draw_finishes(axes: Axes, campaign: CampaignAnswer, span: TimeSpan) -> None:
    edge_days, n_finishes = counting_steps(campaign.finished_s, span)
    axes.stairs(n_finishes, edge_days, baseline=None, color=BLUE, linewidth=1.8, label="finished")
    if len(campaign.ended_s) > len(campaign.finished_s):
        edge_days, n_ends = counting_steps(campaign.ended_s, span)
        early_look: Trace = {"color": RED, "linestyle": (0, (6, 2)), "linewidth": 1.4}
        axes.stairs(n_ends, edge_days, baseline=None, label="finished or ended early", **early_look)
        axes.legend(fontsize=9, frameon=False, loc="best")
    axes.set_ylim(0.0, max(1, len(campaign.ended_s)) * 1.08)
    style_axes(axes, y=f"of {sum(campaign.by_status.values()):,} jobs\nfinished", y_ticks=plain_tick)


def _draw_stack(axes: Axes, stacked: StackedNodes, span: TimeSpan) -> list[Artist]:
    edge_days = span.days(stacked.edge_us)
    heights_below = np.zeros(stacked.mean.shape[1])
    handles: list[Artist] = []
    for index, (model_label, mean_nodes) in enumerate(zip(stacked.labels, stacked.mean, strict=True)):
        heights = heights_below + mean_nodes
        fill = fill_look(OKABE_ITO[index % len(OKABE_ITO)], _HATCHES[index % len(_HATCHES)])
        handles.append(axes.stairs(heights, edge_days, baseline=heights_below, fill=True, label=model_label, **fill))
        heights_below = heights
    axes.set_ylim(0.0, max(1.0, float(heights_below.max(initial=0.0))) * 1.05)
    style_axes(axes, y="nodes held", y_ticks=plain_tick)
    return handles


_TITLE = "Finished trials, the best score and the nodes held, over time"
CAMPAIGN: Figure[CampaignOverTime] = Figure("campaign", _TITLE, campaign_over_time, draw_campaign)
JOB: Figure[JobOverTime] = Figure("job", "Nodes of one job over time", job_over_time, draw_job)
