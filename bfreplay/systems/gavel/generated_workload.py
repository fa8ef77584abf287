"""Gavel's generated workload: jobs of random type, size and duration, at once or arriving at random."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from random import Random
from typing import Any

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.policies.spec import parsed_alone
from bfreplay.systems.gavel.job_types import JOB_TYPES, JobType, TypedCurves
from bfreplay.systems.gavel.made_up_throughputs import throughputs_of
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.workload import JobSet

# each kind of chance has a generator of its own, seeded beside the others; two more are the scheduler's
_JOB_SEED, _ARRIVAL_SEED, _SLO_SEED = 2, 3, 6
_MOST_JOBS = 1_000_000


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
) -> JobSet:
    """Draw a workload, the same as Gavel's simulator draws from this seed (OSDI'20, section 7.1).

    Parameters
    ----------
    table
        Measured throughputs; the steps of a job are its duration times its rate on the reference type. Parts of a step
        are kept.
    n_jobs
        How many jobs.
    seed
        Of all draws. Fewer jobs are the first of more jobs.
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

    Returns
    -------
    JobSet
        Submit times count from the start of the window, in whole microseconds. ``sources`` names the throughput file,
        and these parameters in one line.

    Raises
    ------
    InputError
        A parameter out of range, or a job type that was not measured.
    """
    checks.whole("n_jobs", n_jobs, 1, _MOST_JOBS)
    checks.whole("seed", seed, 0)
    gap_s = 0.0 if jobs_per_hour is None else 3600.0 / checks.number("jobs_per_hour", jobs_per_hour, above=0, most=1e9)
    curves = TypedCurves(table, elastic=elastic)
    of_jobs, of_arrivals, of_slos = (Random(seed + offset) for offset in (_JOB_SEED, _ARRIVAL_SEED, _SLO_SEED))
    digits = max(4, len(str(n_jobs - 1)))
    arrival_s = 0.0
    jobs = []
    for index in range(n_jobs):
        if index and jobs_per_hour is not None:
            arrival_s += -math.log(1.0 - of_arrivals.random()) * gap_s
        gang = _gang(of_jobs)  # drawn even where it is not used, which the later draws depend on
        gang = gang if multi_gpu else 1
        duration_s = _duration_s(of_jobs)
        job_type = _job_type(of_jobs, gang).name
        weight = 5.0 if priorities and of_jobs.uniform(0, 1) <= 0.2 else 1.0
        steps = duration_s * curves.of(job_type, gang).rate
        submit_us, slo = round(arrival_s * 1e6), _slo(of_slos) if slos else None
        jobs.append(curves.job(f"job{index:0{digits}}", submit_us, job_type, gang, steps, weight=weight, slo=slo))
    text = spec_text(
        n=n_jobs, jobs_per_hour=jobs_per_hour, seed=seed, multi_gpu=multi_gpu, priorities=priorities, slos=slos,
        elastic=elastic,
    )  # fmt: skip
    sources = [(table.source.name, table.source.sha256)] if table.source else []
    sources.append((text, hashlib.sha256(text.encode()).hexdigest()))
    return JobSet(jobs, submit_is_relative=True, sources=sources, colocation=table.colocation())


def spec_text(**parameters: float | bool | None) -> str:
    """The parameters as they are written on the command line: ``gavel(n=1000, seed=0, ...)``."""
    said = {
        key: str(value).lower() if isinstance(value, bool) else str(int(value)) if value == int(value) else repr(value)
        for key, value in parameters.items()
        if value is not None
    }
    return f"gavel({', '.join(f'{key}={text}' for key, text in said.items())})"


def _gang(rng: Random) -> int:
    u = rng.uniform(0, 1)
    return 1 if u < 0.7 else 2 if u <= 0.8 else 4 if u <= 0.95 else 8


def _duration_s(rng: Random) -> float:
    """Log-uniform: a fifth of the jobs 17 to 167 hours, the others half an hour to 17 hours."""
    low, high = (3.0, 4.0) if rng.random() >= 0.8 else (1.5, 3.0)
    return 60.0 * math.pow(10.0, rng.uniform(low, high))


def _job_type(rng: Random, gang: int) -> JobType:
    while True:
        job_type = rng.choice(JOB_TYPES)
        if gang == 1 or job_type.is_distributed:
            return job_type


def _slo(rng: Random) -> float:
    u = rng.uniform(0, 1)
    return 1.2 if u < 0.33 else 2.0 if u < 0.67 else 10.0


_FORM = "gavel(n=1000, jobs_per_hour=1, seed=0, multi_gpu=true, priorities=false, slos=false, elastic=false)"
_COUNTS = ("n", "seed")
_FLAGS = ("multi_gpu", "priorities", "slos", "elastic")
_KEYS = ("n", "jobs_per_hour", "seed", *_FLAGS)


def jobs_named(text: str, curves: Path | None) -> JobSet:
    """Draw the workload that ``text`` names.

    Parameters
    ----------
    text
        Parameters of ``generated_jobs``, of which ``n`` alone is needed; without ``jobs_per_hour`` all jobs are there
        from the start.
    curves
        Gavel's throughput file; ``sample`` for made-up throughputs.

    Raises
    ------
    InputError
        The text is not written like that, a parameter has no sense, or there is no throughput file.
    """
    term = parsed_alone(text, "workload", _FORM, fix="write it like that, in quotes for the shell")
    given: dict[str, Any] = dict(term.parameters)
    checks.known_keys(given, _KEYS, "gavel")
    for key, value in given.items():
        if key in _FLAGS:
            checks.truth(key, value)
        elif key in _COUNTS:
            checks.whole(key, value, 1 if key == "n" else 0)
    if "n" not in given:
        raise InputError(
            "the number of jobs is missing", column="n", value=text, expected=_FORM, fix="write gavel(n=NUMBER)"
        )
    if curves is None:
        raise InputError(
            "a generated workload of Gavel needs measured throughputs", value=text,
            expected="Gavel's throughput file as `curves`",
            fix="give it: --curves simulation_throughputs.json (curves=... in Python); --curves sample is made up",
        )  # fmt: skip
    n_jobs = given.pop("n")
    return generated_jobs(throughputs_of(curves), n_jobs, **given)
