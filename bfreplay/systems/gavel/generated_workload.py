"""Gavel's generated workload: jobs of random type, size and duration, at once or arriving at random."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from bfreplay import checks
from bfreplay.datasets.fixed_cluster import ClusterSpec
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import InputError
from bfreplay.policies.spec import parsed_alone
from bfreplay.systems.gavel.job_types import JOB_TYPES, JobType, TypedCurves
from bfreplay.systems.gavel.made_up_throughputs import throughputs_of
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.workload import Colocation, ElasticJob, JobSet

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
    duration_s: float | None = None,
    steady_state: str | None = None,
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
    duration_s
        Of every job, instead of the one that is drawn; durations are drawn all the same, so that a seed has the same
        job types, sizes and arrivals.
    steady_state
        A cluster, ``"v100=36,k80=36"``, that is full at the start: type after type in its order, the first jobs are
        there at 0 until the nodes that those of this type ask for add up to its number of nodes at least. The others
        arrive as they do otherwise, the first of them at 0. ``n_jobs`` counts all.

    Returns
    -------
    JobSet
        Submit times count from the start of the window, in whole microseconds. ``sources`` names the throughput file,
        and these parameters in one line.

    Raises
    ------
    InputError
        A parameter out of range, or a job type that was not measured; a steady state of jobs that are all there from
        the start, or of more jobs than ``n_jobs``.
    """
    checks.whole("n_jobs", n_jobs, 1, _MOST_JOBS)
    checks.whole("seed", seed, 0)
    gap_s = 0.0 if jobs_per_hour is None else 3600.0 / checks.number("jobs_per_hour", jobs_per_hour, above=0, most=1e9)
    if duration_s is not None:
        checks.number("duration_s", duration_s, above=0)
    filling = _Filling(steady_state, n_jobs, jobs_per_hour)
    curves = TypedCurves(table, elastic=elastic)
    of_jobs, of_arrivals, of_slos = (Random(seed + offset) for offset in (_JOB_SEED, _ARRIVAL_SEED, _SLO_SEED))
    digits = max(4, len(str(n_jobs - 1)))
    arrival_s = 0.0
    jobs = []
    for index in range(n_jobs):
        if jobs_per_hour is not None and index > filling.n_jobs and not filling.goes_on:
            arrival_s += -math.log(1.0 - of_arrivals.random()) * gap_s
        gang = _gang(of_jobs)  # drawn even where it is not used, which the later draws depend on
        gang = gang if multi_gpu else 1
        drawn_s = _duration_s(of_jobs)
        filling.take(gang)
        job_type = _job_type(of_jobs, gang).name
        weight = 5.0 if priorities and of_jobs.uniform(0, 1) <= 0.2 else 1.0
        steps = (drawn_s if duration_s is None else duration_s) * curves.of(job_type, gang).rate
        submit_us, slo = round(arrival_s * 1e6), _slo(of_slos) if slos else None
        jobs.append(curves.job(f"job{index:0{digits}}", submit_us, job_type, gang, steps, weight=weight, slo=slo))
    text = spec_text(
        n=n_jobs, jobs_per_hour=jobs_per_hour, seed=seed, multi_gpu=multi_gpu, priorities=priorities, slos=slos,
        elastic=elastic, duration_s=duration_s, steady_state=steady_state,
    )  # fmt: skip
    if filling.goes_on:
        raise InputError(
            "there are fewer jobs than a full cluster has at the start", column="n", value=n_jobs,
            expected=f"more jobs: {n_jobs:,} do not fill {steady_state}", fix="make n larger, or the cluster smaller",
        )  # fmt: skip
    return generated_set(jobs, text, [table.source], table.colocation())


def generated_set(
    jobs: Sequence[ElasticJob], text: str, files: Sequence[SourceFile | None], colocation: Colocation | None = None
) -> JobSet:
    """Return drawn jobs as a set whose sources are the files behind them and ``text``, which names every parameter."""
    sources = [(each.name, each.sha256) for each in files if each is not None]
    sources.append((text, hashlib.sha256(text.encode()).hexdigest()))
    return JobSet(jobs, submit_is_relative=True, sources=sources, colocation=colocation)


class _Filling:
    """The jobs that are there at 0 in a steady state, counted as they are drawn.

    Parameters
    ----------
    steady_state, n_jobs, jobs_per_hour
        As those of ``generated_jobs``.

    Attributes
    ----------
    n_jobs
        How many they are so far.
    """

    def __init__(self, steady_state: str | None, n_jobs: int, jobs_per_hour: float | None) -> None:
        self.n_jobs = 0
        self._missing: list[int] = []  # nodes of each type that still have no job, the type at hand last
        if steady_state is None:
            return
        if jobs_per_hour is None:
            raise InputError(
                "all jobs are there from the start: there is no steady state", column="steady_state",
                value=steady_state, expected="a steady state with jobs that arrive", fix="add jobs_per_hour=1",
            )  # fmt: skip
        if not isinstance(steady_state, str):
            raise InputError(
                "the steady state is of no cluster", column="steady_state", value=steady_state,
                expected="the cluster in quotes: steady_state='v100=36,k80=36'", fix="write it like that",
            )  # fmt: skip
        try:
            cluster = ClusterSpec.parse(steady_state)
        except InputError as error:
            raise InputError(
                f"the steady state is of no cluster: {error.problem}", column="steady_state", value=steady_state,
                expected=error.expected, fix=error.fix,
            ) from error  # fmt: skip
        self._missing = [count for _, count in reversed(cluster.types)]

    @property
    def goes_on(self) -> bool:
        """Whether nodes are left."""
        return bool(self._missing)

    def take(self, gang: int) -> None:
        """A job is drawn that asks for ``gang`` nodes; what it asks for beyond those of a type is not counted."""
        if not self._missing:
            return
        self.n_jobs += 1
        self._missing[-1] -= gang
        if self._missing[-1] <= 0:
            self._missing.pop()


def spec_text(**parameters: float | bool | str | None) -> str:
    """The parameters as they are written on the command line: ``gavel(n=1000, seed=0, ...)``."""
    said = {key: _value_text(value) for key, value in parameters.items() if value is not None}
    return f"gavel({', '.join(f'{key}={text}' for key, text in said.items())})"


def _value_text(value: float | bool | str) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(int(value)) if value == int(value) else repr(value)


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


_FORM = (
    "gavel(n=1000, jobs_per_hour=1, seed=0, multi_gpu=true, priorities=false, slos=false, elastic=false, "
    "duration_s=3600, steady_state='v100=36,k80=36')"
)
_FLAGS = ("multi_gpu", "priorities", "slos", "elastic")
_OTHERS = ("jobs_per_hour", "duration_s", "steady_state")


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
    given = workload_parameters(text, "gavel", _FORM, flags=_FLAGS, others=_OTHERS)
    table = throughputs_of(curves, "a generated workload of Gavel", value=text)
    return generated_jobs(table, given.pop("n"), **given)


def workload_parameters(
    text: str, name: str, form: str, *, flags: Sequence[str] = (), others: Sequence[str] = ()
) -> dict[str, Any]:
    """Parameters of a workload that is written ``NAME(n=9, seed=0, ...)``.

    Parameters
    ----------
    text
        As a user wrote it.
    name, form
        Of the workload, and how it is written, for errors.
    flags, others
        Parameters that are true or false, and those that the workload checks itself; ``n`` and ``seed`` are whole.

    Raises
    ------
    InputError
        The text is not written like that, a parameter is unknown or of another kind, or ``n`` is missing.
    """
    term = parsed_alone(text, "workload", form, fix="write it like that, in quotes for the shell")
    given: dict[str, Any] = dict(term.parameters)
    checks.known_keys(given, ("n", "seed", *flags, *others), name)
    for key, value in given.items():
        if key in flags:
            checks.truth(key, value)
        elif key not in others:
            checks.whole(key, value, 1 if key == "n" else 0)
    if "n" not in given:
        raise InputError(
            "the number of jobs is missing", column="n", value=text, expected=form, fix=f"write {name}(n=NUMBER)"
        )
    return given
