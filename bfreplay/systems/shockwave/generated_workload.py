"""Generated workload like Shockwave's traces: jobs that change their batch sizes, with random arrivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.systems.gavel.generated_workload import generated_set, spec_text, workload_parameters
from bfreplay.systems.gavel.made_up_throughputs import throughputs_of
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.systems.shockwave.adaptation_rules import MODELS, Mode
from bfreplay.systems.shockwave.trace import JobMaker
from bfreplay.systems.trace_lines import AskedJob, job_names, split_job_type
from bfreplay.workload import JobSet

_FORM = "shockwave(n=120, gap_s=40, min_hours=0.2, max_hours=5, dynamic=1, seed=0, multi_gpu=true, elastic=false)"
_GANGS, _GANG_PARTS = (1, 2, 4, 8), (0.6, 0.3, 0.09, 0.01)
"""The mix of the published traces."""

_LEAST_DYNAMIC_S = 1000.0
"""Shorter jobs do not change under Accordion, as in the published traces."""


def generated_jobs(
    table: ThroughputTable,
    n_jobs: int,
    seed: int = 0,
    *,
    gap_s: float = 40.0,
    min_hours: float = 0.2,
    max_hours: float = 5.0,
    dynamic: float = 1.0,
    multi_gpu: bool = True,
    elastic: bool = False,
) -> JobSet:
    """Draw jobs from the mix of the published traces; the published jobs themselves cannot be drawn.

    Parameters
    ----------
    table
        Measured throughputs.
    n_jobs
        Number of jobs.
    seed
        Seed of all draws.
    gap_s
        Mean time between two arrivals, exponential; the first is at 0.
    min_hours, max_hours
        Duration of a job at its first batch size, uniform.
    dynamic
        Fraction of the jobs that change their batch size, half by Accordion and half by GNS.
    multi_gpu
        60 % of the jobs on one node, 30 % on two, 9 % on four, 1 % on eight, where they were measured; otherwise one.
    elastic
        As for ``read_trace``.

    Raises
    ------
    InputError
        A parameter out of range, or throughputs without any of the models.
    """
    checks.whole("n_jobs", n_jobs, 1, checks.MOST_JOBS)
    checks.whole("seed", seed, 0)
    gap_s = checks.number("gap_s", gap_s, least=0)
    checks.number("min_hours", min_hours, above=0)
    checks.number("max_hours", max_hours, least=min_hours)
    checks.number("dynamic", dynamic, least=0, most=1)
    draws = np.random.Generator(np.random.PCG64(seed))
    gangs = _GANGS if multi_gpu else _GANGS[:1]
    choices = {gang: _job_types(table, gang) for gang in gangs}
    if not choices[1]:
        raise InputError(
            "none of the models was measured on one node",
            file=table.file,
            value=", ".join(table.job_types[:3]),
            expected=f"job types such as 'LM (batch size 10)', of {', '.join(MODELS)}",
        )
    parts = np.array(_GANG_PARTS[: len(gangs)])
    makes, arrival_s, jobs = JobMaker(table, elastic=elastic), 0.0, []
    for job_index, job_name in enumerate(job_names(n_jobs)):
        arrival_s += float(draws.exponential(gap_s)) if job_index else 0.0
        gang = int(draws.choice(gangs, p=parts / parts.sum()))
        gang = gang if choices[gang] else 1
        job_type = choices[gang][int(draws.integers(len(choices[gang])))]
        seconds = 3600.0 * float(draws.uniform(min_hours, max_hours))
        draw = float(draws.uniform())
        mode = Mode.STATIC if draw >= dynamic else Mode.ACCORDION if draw < dynamic / 2 else Mode.GNS
        if mode is Mode.ACCORDION and seconds < _LEAST_DYNAMIC_S:
            mode = Mode.STATIC
        steps = max(1, round(seconds * table.rate(job_type, gang, table.reference(job_type, gang))))
        submit_us = checks.time_us("submit_us", arrival_s * 1e6)
        jobs.append(makes.job(job_name, AskedJob(job_type, gang, steps, submit_us, mode=mode)))
    workload = spec_text(
        "shockwave",
        n=n_jobs,
        gap_s=gap_s,
        min_hours=min_hours,
        max_hours=max_hours,
        dynamic=dynamic,
        seed=seed,
        multi_gpu=multi_gpu,
        elastic=elastic,
    )
    return generated_set(jobs, workload, [table.source])


def _job_types(table: ThroughputTable, gang: int) -> list[str]:
    """Return the job types of the models that run on ``gang`` nodes at each batch size that they may reach."""
    return [
        job_type
        for job_type in table.job_types
        if split_job_type(job_type)[0] in MODELS and table.runs_on(job_type, gang)
    ]


def draw_jobs(workload: str, curves: Path | None) -> JobSet:
    """Draw the workload that ``workload`` names; arguments and errors as ``gavel.generated_workload.draw_jobs``."""
    parameters = workload_parameters(workload, "shockwave", _FORM, generated_jobs)
    table = throughputs_of(curves, "a generated workload of Shockwave", value=workload)
    return generated_jobs(table, parameters.pop("n"), **parameters)
