"""Shockwave's traces: Gavel's with two more columns, the rule for batch sizes and the duration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.scalability import TabulatedCurve
from bfreplay.systems.gavel.made_up_throughputs import throughputs_of
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.systems.shockwave.adaptation_rules import (
    CONSISTENT,
    MODELS,
    MODES,
    Mode,
    batch_sizes,
    model_and_batch_size,
    steps_per_epoch,
)
from bfreplay.systems.trace_lines import AskedJob, job_names, n_columns, sourced_set, split_job_type, trace_lines
from bfreplay.workload import Adaptation, ElasticJob, JobSet

COLUMNS = (
    "job type", "command", "working directory", "steps flag", "needs data directory", "total steps", "scale factor",
    "mode", "priority weight", "SLO", "duration", "arrival",
)  # fmt: skip

RESTORE_S = 20.0
"""Seconds of work that a job loses when it starts on new nodes (the published simulator's)."""


def is_trace(path: str | PathLike[str]) -> bool:
    """Return whether a file is a trace: its first line has the columns of one."""
    return n_columns(Path(path)) == len(COLUMNS)


def read_trace(path: str | PathLike[str], table: ThroughputTable, *, elastic: bool = False) -> JobSet:
    """Read a trace.

    Job ``job0007`` is Shockwave's number 7, on line 8. Its work is in samples: its steps times its first batch size;
    its batch size changes with its epochs, by one consistent set of rules (``adaptation_rules.CONSISTENT``). Commands
    and working directories are not kept, nor durations, which the published simulator overwrites too.

    Parameters
    ----------
    path
        Twelve columns separated by tabs: job type, command, working directory, steps flag, needs data directory (0 or
        1), total steps, scale factor (nodes at once), mode (static, accordion, gns), priority weight, SLO (-1: none;
        else the deadline is that many times the time that the job takes alone, after its arrival), duration, arrival
        (seconds, ascending).
    table
        Measured throughputs, of which those of the reference type count: the published cluster has one type.
    elastic
        A job runs on any number of nodes from the least to the most that its model was measured on, instead of on its
        scale factor only, and loses ``RESTORE_S`` at each change.

    Returns
    -------
    JobSet
        Submit times count from the start of the window.

    Raises
    ------
    InputError
        Invalid line, or no throughput for its job; the message names file, line, column and value.
    """
    file = Path(path)
    job_maker = JobMaker(table, elastic=elastic)
    lines = list(trace_lines(file, (COLUMNS,)))
    jobs = []
    for job_name, line in zip(job_names(len(lines)), lines, strict=True):
        with locate_errors(file, f"line {line.number}"):
            jobs.append(job_maker.job(job_name, line.request(MODES)))
    return sourced_set(jobs, [SourceFile.of(file), table.source])


def trace_with(file: Path, curves: Path | None) -> JobSet:
    """Read a trace with its throughput file, the word ``sample`` as for ``throughputs_of``.

    Raises
    ------
    InputError
        No throughput file, or as ``read_trace`` and ``read_throughputs``.
    """
    return read_trace(file, throughputs_of(curves, "a trace of Shockwave", file=file))


class JobMaker:
    """Maker of jobs whose batch sizes change; equal curves are one object.

    Parameters
    ----------
    table
        Measured throughputs, steps/s.
    elastic
        As for ``read_trace``.
    """

    def __init__(self, table: ThroughputTable, *, elastic: bool = False) -> None:
        self._table = table
        self._elastic = elastic
        self._curves: dict[tuple[str, int], dict[int, TabulatedCurve]] = {}

    def job(self, name: str, request: AskedJob) -> ElasticJob:
        """Return the job.

        Raises
        ------
        InputError
            Unknown model, or a batch size of the job was not measured.
        """
        model, first_size = model_and_batch_size(request.job_type)
        curves = self._by_batch_size(model, request.gang)
        if first_size not in curves:
            self._table.reference(request.job_type, request.gang)  # raises the error
        mode, n_epochs = Mode(request.mode), math.ceil(request.steps / steps_per_epoch(model, first_size))
        sizes = batch_sizes(model, first_size, request.gang, mode, n_epochs, CONSISTENT)
        samples = MODELS[model].samples_per_epoch
        work_samples = float(request.steps * first_size)
        changes = [(0.0, first_size)]
        for epoch, (previous, following) in enumerate(itertools.pairwise(sizes), start=1):
            if previous != following:
                changes.append((float(epoch * samples), following))
        cost_s = RESTORE_S if self._elastic else 0.0
        job = ElasticJob(
            name=name,
            submit_us=request.arrival_us,
            min_nodes=1 if self._elastic else request.gang,
            max_nodes=min(curve.last_nodes for curve in curves.values()),
            scale_up_cost_s=cost_s,
            scale_down_cost_s=cost_s,
            work_samples=work_samples,
            throughput=curves[first_size],
            weight=request.weight,
            model=request.job_type,
            adaptation=Adaptation(mode.value, samples, curves, tuple(changes)),
        )
        if request.slo is None:
            return job
        deadline_us = request.arrival_us + checks.time_us("SLO", request.slo * job.seconds_alone(request.gang) * 1e6)
        return replace(job, deadline_us=deadline_us)

    def _by_batch_size(self, model: str, gang: int) -> dict[int, TabulatedCurve]:
        """Return the curves in samples/s by batch size, as measured on ``gang`` nodes of the reference type."""
        model_and_gang = model, gang
        if model_and_gang not in self._curves:
            self._curves[model_and_gang] = {}
            for job_type in self._table.job_types:
                family, size = split_job_type(job_type)
                if family != model or size < 1 or not self._table.runs_on(job_type, gang):
                    continue
                node_type = self._table.reference(job_type, gang)
                curve = (
                    self._table.elastic_curve(job_type, node_type)
                    if self._elastic
                    else self._table.rigid_curve(job_type, gang, node_type)
                )
                rates = [rate * size for rate in curve.values]
                self._curves[model_and_gang][size] = TabulatedCurve(curve.nodes, rates, curve.name)
        return self._curves[model_and_gang]
