"""Node counts that jobs may hold although their curves were not measured there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bfreplay.scalability import Curve, TabulatedCurve, measured_counts
from bfreplay.wording import count, digits
from bfreplay.workload import ElasticJob

_SHOWN = 3
"""So many warnings in texts and on pages; ``run.json`` has all."""


def extrapolation_warnings(jobs: Iterable[ElasticJob]) -> list[str]:
    """Sentences about counts within the bounds of jobs but outside those that their curves were measured at.

    One for each curve and range of such counts, in the order of ``jobs``, with the first job's name, the rates there in
    samples/s, and whether the curve gives more on fewer nodes than on the fewest that were measured. None where all
    counts were measured, or where a curve does not say at which it was.
    """
    found: dict[tuple[int, int, int], tuple[Curve, list[str]]] = {}
    for job in jobs:
        for curve in job.throughput_by_type.values() or [job.throughput]:
            least, most = measured_counts(curve) or (job.min_nodes, job.max_nodes)
            below = (job.min_nodes, min(least - 1, job.max_nodes))
            above = (max(most + 1, job.min_nodes), job.max_nodes)
            for first, last in (below, above):
                if first <= last:
                    found.setdefault((id(curve), first, last), (curve, []))[1].append(job.name)
    return [_sentence(curve, first, last, names) for (_, first, last), (curve, names) in found.items()]


def shown_warnings(sentences: Sequence[str]) -> list[str]:
    """The first few of a run's warnings, for texts and pages, and how many more there are."""
    more = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], *([f"{count(more, 'such warning')} more: summary.extrapolation"] if more > 0 else [])]


def _sentence(curve: Curve, first: int, last: int, names: list[str]) -> str:
    least, most = measured_counts(curve) or (first, last)
    is_below = last < least
    edge = least if is_below else most
    if isinstance(curve, TabulatedCurve):  # its points may lie at more nodes than a table can have
        rates = {nodes: float(np.interp(nodes, curve.nodes, curve.values)) for nodes in (first, last, edge)}
        line, exceeds = ", a straight line to (0, 0)" if is_below else "", False
    else:
        table = curve.table(max(last, edge))
        rates = {nodes: float(table[nodes]) for nodes in (first, last, edge)}
        line, exceeds = "", is_below and table[first : last + 1].max() > rates[edge]
    jobs = f"Job {names[0]} may" if len(names) == 1 else f"{len(names):,} jobs, such as {names[0]}, may"
    counts = count(first, "node") if first == last else f"{first:,} to {last:,} nodes"
    given = " and ".join(f"{digits(rates[nodes])} samples/s on {nodes:,}" for nodes in sorted({first, last}))
    too_much = (
        f", and on some count more than the {digits(rates[edge])} on {edge:,}: it cannot be right" if exceeds else ""
    )
    return (
        f"{jobs} run on {counts}, where the curve was not measured (only on {least:,} to {most:,}). It gives {given}"
        f"{line}{too_much}. Set {'min_nodes' if is_below else 'max_nodes'} {edge:,}, or measure there."
    )
