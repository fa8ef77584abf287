"""Gavel's job types, and the curves that the jobs of a type share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bfreplay import checks
from bfreplay.scalability import Curve
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.systems.trace_lines import AskedJob
from bfreplay.workload import ElasticJob


@dataclass(frozen=True, slots=True)
class JobType:
    """Job type: a model at its batch sizes, and whether it can run on several nodes at once."""

    name: str
    is_distributed: bool


# model, batch sizes (empty: none in the name), is distributed; the draws of a seed depend on the order
_MODELS: tuple[tuple[str, tuple[int, ...], bool], ...] = (
    ("ResNet-18", (16, 32, 64, 128, 256), True),
    ("ResNet-50", (16, 32, 64, 128), True),
    ("Transformer", (16, 32, 64, 128, 256), True),
    ("LM", (5, 10, 20, 40, 80), True),
    ("Recommendation", (512, 1024, 2048, 4096, 8192), False),
    ("A3C", (), False),
    ("CycleGAN", (), False),
)

JOB_TYPES: tuple[JobType, ...] = tuple(
    JobType(f"{model} (batch size {batch_size})" if batch_size else model, is_distributed)
    for model, batch_sizes, is_distributed in _MODELS
    for batch_size in (batch_sizes or (0,))
)
"""All 26."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Bounds, rate and curves of the jobs of one type.

    Parameters
    ----------
    min_nodes, max_nodes
        Node bounds of its jobs.
    rate
        Steps/s that durations refer to: on the job's own number of nodes of the reference type.
    throughput
        Curve on nodes of the reference type.
    by_type
        Curves of the node types that it can run on.
    """

    min_nodes: int
    max_nodes: int
    rate: float
    throughput: Curve
    by_type: Mapping[str, Curve]


class TypedCurves:
    """Cache of the curves of each job type.

    Parameters
    ----------
    table
        Measured throughputs.
    elastic
        Jobs run on any number of nodes between the least and the most that was measured, instead of on their own.
    """

    def __init__(self, table: ThroughputTable, *, elastic: bool) -> None:
        self._table = table
        self._elastic = elastic
        self._known: dict[tuple[str, int], Runs] = {}

    def of(self, job_type: str, gang: int) -> Runs:
        """Return bounds and curves of a job of this type that asks for ``gang`` nodes; InputError if not measured."""
        type_and_gang = job_type, gang
        if type_and_gang not in self._known:
            self._known[type_and_gang] = self._make_runs(job_type, gang)
        return self._known[type_and_gang]

    def job(self, name: str, request: AskedJob) -> ElasticJob:
        """Return a job; rescaling costs nothing.

        Its deadline is ``slo`` times its duration on the reference type, from its submit time.
        """
        type_curves, deadline_us = self.of(request.job_type, request.gang), None
        if request.slo is not None:
            duration_s = request.steps / type_curves.rate
            deadline_us = request.arrival_us + checks.time_us("SLO", request.slo * duration_s * 1e6)
        return ElasticJob(
            name=name,
            submit_us=request.arrival_us,
            min_nodes=type_curves.min_nodes,
            max_nodes=type_curves.max_nodes,
            scale_up_cost_s=0.0,
            scale_down_cost_s=0.0,
            work_samples=request.steps,
            throughput=type_curves.throughput,
            weight=request.weight,
            deadline_us=deadline_us,
            model=request.job_type,
            throughput_by_type=type_curves.by_type,
        )

    def _make_runs(self, job_type: str, gang: int) -> Runs:
        table = self._table
        reference = table.reference(job_type, gang)
        rate = table.rate(job_type, gang, reference)
        if not self._elastic:
            curves = {name: table.rigid_curve(job_type, gang, name) for name in table.runs_on(job_type, gang)}
            return Runs(gang, gang, rate, curves[reference], curves)
        gangs = [count for count in table.gangs(job_type) if table.runs_on(job_type, count)]
        curve_of_type = {node_type: table.elastic_curve(job_type, node_type) for node_type in table.node_types}
        curves = {node_type: curve for node_type, curve in curve_of_type.items() if max(curve.values) > 0}
        return Runs(gangs[0], gangs[-1], rate, curves[reference], curves)
