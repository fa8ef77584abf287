"""A plain job set from kinds of jobs and how many of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bfreplay import checks
from bfreplay.campaigns.make_campaign import arrival_of, find_curve, node_bounds
from bfreplay.campaigns.parts import Purpose, stream
from bfreplay.errors import InputError
from bfreplay.scalability import Curve
from bfreplay.workload import ElasticJob, JobSet


@dataclass(frozen=True, slots=True)
class JobShape:
    """Properties that all jobs of a list share.

    Parameters
    ----------
    min_nodes, max_nodes
        Bounds, ``None`` for those of `node_bounds`; a job whose curve ends below ``max_nodes`` may run up to its end.
    scale_up_cost_s, scale_down_cost_s
        Seconds, or by count.
    node_hours
        Work of a job, in hours of one node by itself (of ``min_nodes`` nodes where one alone has no rate).
    changes
        Other fields of an ``ElasticJob`` that say what a change does to it, and the counts that it may change to.
    """

    min_nodes: int | None
    max_nodes: int | None
    scale_up_cost_s: Any
    scale_down_cost_s: Any
    node_hours: float
    changes: Mapping[str, Any] = field(default_factory=dict)


def jobs_of_list(items: Sequence[str], curves: Mapping[str, Curve], shape: JobShape, arrival: str, seed: int) -> JobSet:
    """Make the jobs of a list.

    Parameters
    ----------
    items
        ``CURVE:COUNT`` each.
    curves
        Curves by name.
    shape
        What they have in common.
    arrival
        ``at-once``, ``every:TIME`` or ``poisson:PER_HOUR``.
    seed
        Of the Poisson process, and of the order in which jobs of different curves come.

    Returns
    -------
    JobSet
        Named CURVE-0000, CURVE-0001, ...; submit times relative to the start of the window. Under ``every`` and
        ``poisson`` the curves are shuffled, so that no kind of job comes before all others.

    Raises
    ------
    InputError
        No item, one of another form, a curve that is not known, or a number out of range.
    """
    if not items:
        raise InputError(
            "the list has no jobs", column="--job", value=None, expected="CURVE:COUNT", fix="give --job CURVE:COUNT"
        )
    checks.number("node_hours", shape.node_hours, above=0)
    counts: dict[str, int] = {}
    for item in items:
        name, count = _item(item)
        find_curve(name, curves, "--job")
        counts[name] = checks.whole(f"number of jobs of {name}", counts.get(name, 0) + count, 1, checks.MOST_JOBS)
    curve_names = [name for name, count in counts.items() for _ in range(count)]
    after_us = arrival_of(arrival).after_us(len(curve_names), seed)
    if after_us[-1] > 0:
        order = stream(seed, Purpose.MODEL).permutation(len(curve_names)).tolist()
        curve_names = [curve_names[position] for position in order]
    jobs = []
    numbers: dict[str, int] = {}
    for name, submit_us in zip(curve_names, after_us, strict=True):
        job_number = numbers[name] = numbers.get(name, -1) + 1
        jobs.append(_job(name, f"{name}-{job_number:04d}", submit_us, curves[name], shape))
    return JobSet(jobs, submit_is_relative=True)


def _job(model: str, job_name: str, submit_us: int, curve: Curve, shape: JobShape) -> ElasticJob:
    min_nodes, max_nodes = node_bounds(curve, shape.min_nodes, shape.max_nodes).values()
    rate_by_count = curve.table(max_nodes)
    first_count = next((count for count in (1, min_nodes) if count <= max_nodes and rate_by_count[count] > 0), None)
    if first_count is None:
        raise InputError(
            f"the curve {model!r} has no rate on min_nodes nodes",
            column="--min-nodes",
            value=min_nodes,
            expected="a node count at which the curve is above 0",
            fix="raise --min-nodes, or correct the curve",
        )
    work_samples = max(1.0, float(round(shape.node_hours * 3_600 * float(rate_by_count[first_count]) / first_count)))
    return ElasticJob(
        job_name,
        submit_us,
        min_nodes,
        max_nodes,
        shape.scale_up_cost_s,
        shape.scale_down_cost_s,
        work_samples,
        curve,
        model=model,
        **shape.changes,
    )


def _item(list_item: str) -> tuple[str, int]:
    curve_name, colon, count = list_item.rpartition(":")
    count = count.strip()[:18]
    if not colon or not curve_name or not count.isdecimal() or int(count) < 1:
        raise InputError(
            "this is no kind of job",
            column="--job",
            value=list_item,
            expected="CURVE:COUNT, a name of a curve and a whole number >= 1",
            fix="write it like image-classifier:20",
        )
    return curve_name, int(count)
