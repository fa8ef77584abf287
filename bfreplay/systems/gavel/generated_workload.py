"""Gavel's generated workload: jobs of random type, size and duration, submitted at once or at random times."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from bfreplay import checks
from bfreplay.datasets.fixed_cluster import ClusterSpec
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import InputError
from bfreplay.policies.spec import parse_one
from bfreplay.systems.gavel.job_types import JOB_TYPES, JobType, TypedCurves
from bfreplay.systems.gavel.made_up_throughputs import throughputs_of
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.systems.trace_lines import AskedJob, job_names, sourced_set
from bfreplay.workload import Colocation, ElasticJob, JobSet

# offsets of the seeds of the generators; two more are the scheduler's
_JOB_SEED, _ARRIVAL_SEED, _SLO_SEED = 2, 3, 6


def generated_jobs(
    table: ThroughputTable,
    n_jobs: int,
    seed: int = 0,
    *,
    jobs_per_hour: float | None = None,
    multi_gpu: bool = False,
    priorities: bool = False,
    slos: bool = False,
    elastic: bool = False,
    duration_s: float | None = None,
    steady_state: str | None = None,
) -> JobSet:
    """Draw the workload that Gavel's simulator draws from this seed (OSDI'20, section 7.1).

    Parameters
    ----------
    table
        Measured throughputs; the steps of a job are its duration times its rate on the reference type, not
        rounded to whole steps.
    n_jobs
        Number of jobs.
    seed
        Seed of all draws. A workload of fewer jobs is the start of one of more jobs.
    jobs_per_hour
        Rate of the Poisson process of arrivals, the first at 0; ``None``: all arrive at 0 (a static workload).
    multi_gpu
        70 % of the jobs use one node, 10 % two, 15 % four, 5 % eight. Otherwise all use one.
    priorities
        A fifth of the jobs have weight 5.
    slos
        Each job has a deadline: 1.2, 2 or 10 times its duration after its arrival, a third of them each.
    elastic
        As for ``read_trace``.
    duration_s
        Duration of every job, instead of the drawn one; job types, sizes and arrivals of a seed stay the same.
    steady_state
        A cluster, ``"v100=36,k80=36"``, that is full at the start: for each type in its order, the first jobs arrive
        at 0 until they ask for at least its number of nodes. The others arrive as usual, the first of them at 0.
        ``n_jobs`` counts all.

    Returns
    -------
    JobSet
        Submit times count from the start of the window, in whole microseconds. ``sources`` names the throughput file
        and these parameters.

    Raises
    ------
    InputError
        A parameter out of range, or a job type that was not measured; a steady state without arrivals, or of more jobs
        than ``n_jobs``.
    """
    checks.whole("n_jobs", n_jobs, 1, checks.MOST_JOBS)
    checks.whole("seed", seed, 0)
    gap_s = 0.0 if jobs_per_hour is None else 3600.0 / checks.number("jobs_per_hour", jobs_per_hour, above=0, most=1e9)
    if duration_s is not None:
        checks.number("duration_s", duration_s, above=0)
    nodes_to_fill, n_filling = _nodes_to_fill(steady_state, jobs_per_hour), 0
    curves = TypedCurves(table, elastic=elastic)
    job_draws, arrival_draws, slo_draws = (Random(seed + offset) for offset in (_JOB_SEED, _ARRIVAL_SEED, _SLO_SEED))
    arrival_s = 0.0
    jobs = []
    for job_index, name in enumerate(job_names(n_jobs)):
        if jobs_per_hour is not None and job_index > n_filling and not nodes_to_fill:
            arrival_s += -math.log(1.0 - arrival_draws.random()) * gap_s
        gang = _gang(job_draws)  # drawn even where it is not used: later draws depend on it
        gang = gang if multi_gpu else 1
        random_duration_s = _duration_s(job_draws)
        if nodes_to_fill:
            n_filling += 1
            nodes_to_fill[-1] -= gang  # nodes beyond those of a type are not counted
            if nodes_to_fill[-1] <= 0:
                nodes_to_fill.pop()
        job_type = _job_type(job_draws, gang).name
        weight = 5.0 if priorities and job_draws.uniform(0, 1) <= 0.2 else 1.0
        steps = (random_duration_s if duration_s is None else duration_s) * curves.of(job_type, gang).rate
        submit_us, slo_factor = checks.time_us("submit_us", arrival_s * 1e6), _slo(slo_draws) if slos else None
        jobs.append(curves.job(name, AskedJob(job_type, gang, steps, submit_us, weight, slo_factor)))
    workload = spec_text(
        "gavel",
        n=n_jobs,
        jobs_per_hour=jobs_per_hour,
        seed=seed,
        multi_gpu=multi_gpu,
        priorities=priorities,
        slos=slos,
        elastic=elastic,
        duration_s=duration_s,
        steady_state=steady_state,
    )
    if nodes_to_fill:
        raise InputError(
            "the workload has fewer jobs than a full cluster has at the start",
            column="n",
            value=n_jobs,
            expected=f"more jobs: {n_jobs:,} do not fill {steady_state}",
            fix="make n larger, or the cluster smaller",
        )
    return generated_set(jobs, workload, [table.source], table.colocation())


def generated_set(
    jobs: Sequence[ElasticJob], workload: str, files: Sequence[SourceFile | None], colocation: Colocation | None = None
) -> JobSet:
    """Return drawn jobs as a set; its sources are their files and ``workload``, which names every parameter."""
    return sourced_set(jobs, [*files, SourceFile(workload, hashlib.sha256(workload.encode()).hexdigest())], colocation)


def _nodes_to_fill(steady_state: str | None, jobs_per_hour: float | None) -> list[int]:
    """Return the nodes of each type that are full at the start, the first type last; none without a steady state."""
    if steady_state is None:
        return []
    if jobs_per_hour is None:
        problem = "all jobs arrive at the start, so there is no steady state"
        raise _not_steady(steady_state, problem, "a steady state with jobs that arrive", "add jobs_per_hour=1")
    if not isinstance(steady_state, str):
        expected = "the cluster in quotes: steady_state='v100=36,k80=36'"
        raise _not_steady(steady_state, "steady_state is not a cluster", expected, "write it like that")
    try:
        cluster = ClusterSpec.parse(steady_state)
    except InputError as error:
        problem = f"steady_state is not a cluster: {error.problem}"
        raise _not_steady(steady_state, problem, error.expected, error.fix) from error
    return [count for _, count in reversed(cluster.types)]


def _not_steady(value: object, problem: str, expected: str | None, fix: str | None) -> InputError:
    return InputError(problem, column="steady_state", value=value, expected=expected, fix=fix)


def spec_text(workload: str, **parameters: float | bool | str | None) -> str:
    """Return a workload as written on the command line: ``gavel(n=1000, seed=0, ...)``."""
    set_parameters = {parameter: _value_text(value) for parameter, value in parameters.items() if value is not None}
    return f"{workload}({', '.join(f'{parameter}={text}' for parameter, text in set_parameters.items())})"


def _value_text(value: float | bool | str) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(int(value)) if value == int(value) else repr(value)


def _gang(draws: Random) -> int:
    fraction = draws.uniform(0, 1)
    return 1 if fraction < 0.7 else 2 if fraction <= 0.8 else 4 if fraction <= 0.95 else 8


def _duration_s(draws: Random) -> float:
    """Draw a duration, log-uniform: for a fifth of the jobs 17 to 167 hours, otherwise half an hour to 17 hours."""
    lower_exponent, upper_exponent = (3.0, 4.0) if draws.random() >= 0.8 else (1.5, 3.0)
    return 60.0 * math.pow(10.0, draws.uniform(lower_exponent, upper_exponent))


def _job_type(draws: Random, gang: int) -> JobType:
    while True:
        job_type = draws.choice(JOB_TYPES)
        if gang == 1 or job_type.is_distributed:
            return job_type


def _slo(draws: Random) -> float:
    fraction = draws.uniform(0, 1)
    return 1.2 if fraction < 0.33 else 2.0 if fraction < 0.67 else 10.0


_FORM = (
    "gavel(n=1000, jobs_per_hour=1, seed=0, multi_gpu=true, priorities=false, slos=false, elastic=false, "
    "duration_s=3600, steady_state='v100=36,k80=36')"
)


def draw_jobs(workload: str, curves: Path | None) -> JobSet:
    """Draw the workload that ``workload`` names.

    Parameters
    ----------
    workload
        Parameters of ``generated_jobs``, of which only ``n`` is required; without ``jobs_per_hour`` all jobs arrive at
        the start.
    curves
        Gavel's throughput file; ``sample`` for made-up throughputs.

    Raises
    ------
    InputError
        Invalid syntax, a parameter out of range, or no throughput file.
    """
    parameters = workload_parameters(workload, "gavel", _FORM, generated_jobs)
    table = throughputs_of(curves, "a generated workload of Gavel", value=workload)
    return generated_jobs(table, parameters.pop("n"), **parameters)


def workload_parameters(workload: str, name: str, syntax: str, generator: Callable[..., JobSet]) -> dict[str, Any]:
    """Return the parameters of a workload written ``NAME(n=9, seed=0, ...)``.

    Parameters
    ----------
    workload
        Text of the user.
    name, syntax
        Name and syntax of the workload, for errors.
    generator
        Function whose keywords are the other parameters than ``n`` and ``seed``; it checks those that are not Boolean.

    Raises
    ------
    InputError
        Invalid syntax, an unknown parameter or one of the wrong type, or no ``n``.
    """
    term = parse_one(workload, "workload", syntax, fix="write it in this form, in quotes for the shell")
    parameters: dict[str, Any] = dict(term.parameters)
    defaults = generator.__kwdefaults__ or {}
    flags = [parameter for parameter, default in defaults.items() if isinstance(default, bool)]
    others = [parameter for parameter in defaults if parameter not in flags]
    checks.known_keys(parameters, ("n", "seed", *flags, *others), name)
    for parameter, value in parameters.items():
        if parameter in flags:
            checks.truth(parameter, value)
        elif parameter not in others:
            checks.whole(parameter, value, 1 if parameter == "n" else 0)
    if "n" not in parameters:
        raise InputError(
            "the number of jobs is missing", column="n", value=workload, expected=syntax, fix=f"write {name}(n=NUMBER)"
        )
    return parameters
