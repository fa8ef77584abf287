"""Generated workload like ElasticFlow's traces, by the published generator; every draw is seeded."""

from __future__ import annotations

import math
import random
from pathlib import Path

from bfreplay import checks
from bfreplay.systems.elasticflow.throughputs import WORKLOAD, Throughputs, throughputs_of
from bfreplay.systems.elasticflow.trace import trace_job
from bfreplay.systems.gavel.generated_workload import generated_set, workload_parameters
from bfreplay.systems.trace_lines import job_names
from bfreplay.workload import JobSet

_FORM = "elasticflow(n=100, gap_s=1500, min_deadline=0.5, max_deadline=1.5, best_effort=0, most_gpus=16, seed=0)"
_SCALES = ((0.83, 1), (0.86, 2), (0.89, 4), (0.99, 8), (1.0, 16))
"""GPUs that a job asks for: those of the first bound not below a number from 0 to 1."""

_SHORT = 0.80  # of the jobs


def generated_jobs(
    throughputs: Throughputs,
    n_jobs: int,
    seed: int = 0,
    *,
    gap_s: float = 1500.0,
    min_deadline: float = 0.5,
    max_deadline: float = 1.5,
    best_effort: float = 0.0,
    most_gpus: int = 16,
    deadline_seed: int | None = None,
) -> JobSet:
    """Draw jobs like the published generator, from four streams of Python's random numbers and one for deadlines.

    Parameters
    ----------
    throughputs
        Rates of at least one of the models and batch sizes in ``WORKLOAD``; jobs are drawn from these.
    n_jobs
        Number of jobs.
    seed
        Seed of models; the next three are those of arrivals, durations and numbers of GPUs.
    gap_s
        Mean time between two arrivals, exponential; the first is at 0.
    min_deadline, max_deadline
        Range of a uniform factor: a deadline is this factor times the duration after the arrival.
    best_effort
        Fraction of the jobs without a deadline.
    most_gpus
        A job asks for 1 (83 %), 2 (3 %), 4 (3 %), 8 (10 %) or 16 (1 %) GPUs, at most this number.
    deadline_seed
        Seed of deadlines and best effort, which the published generator does not seed; ``None``: ``seed`` + 4.

    Raises
    ------
    InputError
        A parameter out of range, or throughputs without any of the models.
    """
    checks.whole("n_jobs", n_jobs, 1, checks.MOST_JOBS)
    checks.whole("seed", seed, 0)
    gap_s = checks.number("gap_s", gap_s, least=0)
    checks.number("min_deadline", min_deadline, above=0)
    checks.number("max_deadline", max_deadline, least=min_deadline)
    checks.number("best_effort", best_effort, least=0, most=1)
    checks.whole("most_gpus", most_gpus, 1)
    model_draws, arrival_draws, duration_draws, scale_draws = (random.Random(seed + offset) for offset in range(4))
    deadline_draws = random.Random(
        seed + 4 if deadline_seed is None else checks.whole("deadline_seed", deadline_seed, 0)
    )
    choices = [choice for choice in WORKLOAD if choice in throughputs.rates]
    if not choices:
        throughputs.of(*WORKLOAD[0])  # raises the error
    arrival_s, jobs = 0.0, []
    for job_index, job_name in enumerate(job_names(n_jobs)):
        model, batch_size = model_draws.choice(choices)
        duration_s = _duration_s(duration_draws)
        fraction = scale_draws.uniform(0, 1)
        gpus_requested = min(next(gpus for bound, gpus in _SCALES if fraction <= bound), most_gpus)
        rates = throughputs.of(model, batch_size)
        gpus = max(count for count in rates if count <= gpus_requested)
        if job_index:
            arrival_s += -math.log(1.0 - arrival_draws.random()) * gap_s
        deadline_s = arrival_s + int(deadline_draws.uniform(min_deadline, max_deadline) * duration_s)
        is_best_effort = deadline_draws.uniform(0, 1) < best_effort
        jobs.append(
            trace_job(
                job_name,
                int(arrival_s),
                max(1, int(duration_s * rates[gpus])),
                model,
                None if is_best_effort else int(deadline_s),
                batch_size,
                gpus,
                int(duration_s),
                throughputs,
            )
        )
    workload = (
        f"elasticflow(n={n_jobs}, gap_s={gap_s:g}, min_deadline={min_deadline:g}, max_deadline={max_deadline:g}, "
        f"best_effort={best_effort:g}, most_gpus={most_gpus}, seed={seed}, deadline_seed={deadline_seed})"
    )
    return generated_set(jobs, workload, throughputs.sources)


def _duration_s(draws: random.Random) -> float:
    """Draw a duration, log-uniform: for 80 % of the jobs 10 minutes to 5 hours, otherwise 5 hours to a week."""
    lower_exponent, upper_exponent = (2.5, 4.0) if draws.random() >= _SHORT else (1.0, 2.5)
    return 60.0 * float(10 ** draws.uniform(lower_exponent, upper_exponent))


def draw_jobs(workload: str, curves: Path | None) -> JobSet:
    """Draw the workload that ``workload`` names; as ``gavel.generated_workload.draw_jobs``, from a folder of tables."""
    parameters = workload_parameters(workload, "elasticflow", _FORM, generated_jobs)
    throughputs = throughputs_of(curves, "a generated workload of ElasticFlow", value=workload)
    return generated_jobs(throughputs, parameters.pop("n"), **parameters)
