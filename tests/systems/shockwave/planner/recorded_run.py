"""Recorded runs of Shockwave's published simulator, simulated again from their schedules.

The records hold which jobs ran in which round, and what the planner was given and answered. They do not hold what each
round measured (epochs, batch sizes, rates): that is made here, by a second implementation of the simulator that shares
no code with the package. Numbers that it gets wrong show as planner inputs that differ from the recorded ones.
"""

import csv
import gzip
import json
import math
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.systems.shockwave.planner.options import PlannerOptions, PlannerQuirks
from bfreplay.systems.shockwave.planner.planned_rounds import ShockwavePlanner
from bfreplay.systems.shockwave.planner.problem import Level, PlanProblem, RoundValues
from bfreplay.systems.shockwave.planner.solve import Plan
from bfreplay.systems.shockwave.profile import Profile

ROUND_S = 120.0
_GAINED = {"LM": 80, "ResNet-18": 256, "ResNet-50": 128, "Recommendation": 8192}
"""Largest batch size; other models keep theirs."""
_LOWEST = {"LM": 5, "ResNet-18": 16, "ResNet-50": 16, "Recommendation": 512}

RUNS = {
    "first12": ("120job_first12.trace", "solves_first12_4gpus_tacc", "first12_4gpus_tacc", "config_used", 4),
    "first20": ("120job_first20.trace", "solves_first20_8gpus_tacc", "first20_8gpus_tacc", "config_used", 8),
    "first12-F5": (
        "120job_first12.trace",
        "solves_first12_4gpus_tacc_F5_rhomax2",
        None,
        "config_used_F5_rhomax2",
        4,
    ),
}
"""Trace, solves, key of the schedules (None: those of the solves, followed by round), configuration, GPUs."""


@dataclass
class Step:
    """What happens before round ``round_index`` is scheduled, in this order."""

    round_index: int
    now_s: float
    ran: dict[int, tuple[int, int, float]]
    """Jobs of the round that has ended, those that it completed among them: epochs, batch size, steps/s."""
    removed: list[int]
    added: list[int]


@dataclass
class RecordedRun:
    config: dict[str, Any]
    n_gpus: int
    solves: list[dict[str, Any]]
    schedule: list[list[int]]
    profiles: list[Profile]
    gangs: list[int]
    steps: list[Step]
    end_s: float


@dataclass
class _Job:
    model: str
    mode: str
    gang: int
    arrival_s: float
    first_batch: int
    total: int
    limit_s: int
    batch: int = 0
    done: int = 0
    run_s: float = 0.0
    flag: str = ""
    failures: int = 0
    grows_at: list[int] = field(default_factory=list)


@cache
def _loaded(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_text())


def recorded_run(shared: Path, name: str) -> RecordedRun:
    trace, solves_name, schedules, config, n_gpus = RUNS[name]
    golden = shared / "golden" / "shockwave"
    solves = _loaded(golden / "planner" / f"{solves_name}.json.gz")
    if schedules is not None:
        rounds = _loaded(golden / "original_runs_schedules.json.gz")[schedules]["shockwave"]
        schedule = [[job for job, _ in tasks] for tasks in rounds]
    else:
        ends = [solve["round"] for solve in solves[1:]] + [solves[-1]["round"] + len(solves[-1]["schedule"])]
        schedule = [
            solve["schedule"][r] for solve, end in zip(solves, ends, strict=True) for r in range(end - solve["round"])
        ]
    data = shared / "data" / "shockwave"
    listed = _loaded(data / "profiles" / "profile_120jobs_tacc.json.gz")
    with (data / "traces" / trace).open() as lines:
        rows = list(csv.reader(lines, delimiter="\t"))
    profiles = [profile_of(each) for each in listed[: len(rows)]]
    jobs = [
        _job(row, profile, _loaded(data / "adaptation_tables.json"))
        for row, profile in zip(rows, profiles, strict=True)
    ]
    rates = _loaded(data / "throughputs" / "v100_isolated_steps_per_second.json")["tacc"]
    steps, end_s = _simulated(jobs, profiles, schedule, rates)
    return RecordedRun(
        _loaded(golden / "planner" / f"{config}.json"), n_gpus, solves, schedule, profiles,
        [job.gang for job in jobs], steps, end_s,
    )  # fmt: skip


def profile_of(entry: dict[str, Any]) -> Profile:
    sizes = np.repeat(*np.array(entry["bs_runs"], dtype=np.int64).T)
    seconds = np.array([entry["per_bs"][str(size)]["epoch_s"] for size in sizes.tolist()])
    return Profile(entry["samples_per_epoch"], sizes, seconds)


def _job(row: list[str], profile: Profile, tables: dict[str, Any]) -> _Job:
    model, size = re.fullmatch(r"(.*) \(batch size (\d+)\)", row[0]).groups()
    grows_at = [
        each["epochs_at_which_bs_becomes_x2_x4_x8_x16"]
        for each in tables["gns_scale_epochs"]
        if (each["model"], each["initial_bs"], each["gpus"]) == (model, int(size), int(row[6]))
    ]
    return _Job(
        model, row[7], int(row[6]), float(row[11]), int(size), int(row[5]), int(1.5 * int(profile.exclusive_s)),
        batch=int(size), grows_at=grows_at[0] if grows_at else [],
    )  # fmt: skip


def _simulated(
    jobs: list[_Job], profiles: list[Profile], schedule: list[list[int]], rates: dict[str, float]
) -> tuple[list[Step], float]:
    now_s, active, waiting, steps = 0.0, [], list(range(len(jobs))), []

    def rate(job: _Job) -> float:
        return rates[f"('{job.model} (batch size {job.batch})', {job.gang})"]

    def per_epoch(k: int, size: int) -> int:
        return math.ceil(profiles[k].samples_per_epoch / size)

    for r in range(len(schedule) + 1):
        ran, removed, start_s = {}, [], now_s
        if r > 0:
            tasks = {}
            for k in schedule[r - 1]:
                n_steps = min(int(rate(jobs[k]) * ROUND_S), jobs[k].total - jobs[k].done)
                tasks[k] = n_steps, max(start_s, start_s + n_steps / rate(jobs[k]))
            now_s = max(finish for _, finish in tasks.values())
            for k, (n_steps, finish) in tasks.items():
                job, run_s = jobs[k], finish - start_s
                if r != 1 and k not in schedule[r - 2] and run_s > ROUND_S - 5:
                    n_steps, run_s = int(n_steps * (run_s - 20) / run_s), run_s - 20
                if n_steps // job.gang <= 0 and run_s <= 0:  # rescaling left no step: five such rounds end the job
                    job.failures += 1
                    is_over, measured = job.failures == 5, (job.batch, 0.0)
                else:
                    job.failures, job.done, job.run_s = 0, job.done + n_steps, job.run_s + run_s
                    is_over = job.done >= job.total or job.run_s > job.limit_s
                    measured = job.batch, n_steps / run_s
                if not is_over and job.flag:
                    _resize(job, k, per_epoch)
                if is_over:
                    removed.append(k)
                ran[k] = job.done // per_epoch(k, job.batch), *measured
            active = [k for k in active if k not in removed]
            for k in active:
                jobs[k].flag = _flag(jobs[k], math.ceil(jobs[k].done / per_epoch(k, jobs[k].batch))) or jobs[k].flag
        added = [k for k in waiting if jobs[k].arrival_s <= now_s]
        waiting = waiting[len(added) :]
        active += added
        steps.append(Step(r, now_s, ran, removed, added))
        if not active:  # a plan goes on after its last job
            break
    return steps, now_s


def _resize(job: _Job, k: int, per_epoch: Any) -> None:
    new = {"up": _GAINED.get(job.model), "down": job.first_batch, "double": 2 * job.batch}[job.flag]
    old_steps, new_steps = per_epoch(k, job.batch), per_epoch(k, new)
    n_epochs = math.ceil(job.total / old_steps)
    total = math.ceil(job.total * job.batch / new)
    job.total = total if math.ceil(total / new_steps) == n_epochs else new_steps * n_epochs
    job.done = math.ceil(job.done / old_steps) * new_steps
    job.batch, job.flag = new, ""


def _flag(job: _Job, epoch: int) -> str:
    most = _GAINED.get(job.model)
    if most is None:
        return ""
    if job.mode == "accordion" and job.first_batch < most:
        if _is_critical(job, epoch):
            return "down" if job.batch not in (job.first_batch, _LOWEST[job.model]) else ""
        return "up" if job.batch == job.first_batch else ""
    if job.mode == "gns" and job.batch < most:
        return "double" if max(_pattern(job, epoch, most), _pattern(job, epoch + 1, most)) > job.batch else ""
    return ""


def _pattern(job: _Job, epoch: int, most: int) -> int:
    return min(most, job.first_batch * 2 ** sum(epoch >= each for each in job.grows_at))


def _is_critical(job: _Job, epoch: int) -> bool:
    if job.model == "ResNet-18":
        first = 20 if job.first_batch == 256 else 10
        return epoch < first or 150 <= epoch < 160 or 250 <= epoch < 260
    if job.model == "ResNet-50":
        return epoch % 30 < 10
    if job.model == "Recommendation":
        return epoch < {512: 30, 1024: 30, 2048: 40}.get(job.first_batch, 10)
    return epoch < 10


@dataclass
class Recorded:
    """One recorded plan, and ours for the same inputs."""

    solve: dict[str, Any]
    problem: PlanProblem
    values: RoundValues
    plan: Plan
    latest_targets: list[float]
    """Finish times predicted last, one a job."""

    @property
    def theirs(self) -> np.ndarray:
        """(N, F) who runs in which round in the record."""
        return np.array([[each == "1" for each in row] for row in self.solve["y"]])

    @property
    def level(self) -> Level:
        """The recorded objective: equal weights under constraints, otherwise the recorded ones."""
        equal = [1.0] * self.problem.n_jobs
        return Level(np.array(self.solve.get("priority", equal)), self.problem.k)


def options_of(config: dict[str, Any], **changes: Any) -> PlannerOptions:
    return PlannerOptions(
        **{
            "future_rounds": config["future_rounds"],
            "k": config["k"],
            "priority_power": config["lambda"],
            "rhomax": config["rhomax"],
            "log_knots": tuple(config["log_approximation_bases"]),
            "relative_gap": config["solver_rel_gap"],
            "quirks": PlannerQuirks.published(),
            **changes,
        }
    )


@cache
def planned(shared: Path, name: str) -> tuple[list[Recorded], list[int]]:
    """Every plan of a recorded run, made again from what the simulator measured; and the rounds with a new plan."""
    run = recorded_run(shared, name)
    planner, plans, rounds = ShockwavePlanner(options_of(run.config)), [], []
    solves = {solve["round"]: solve for solve in run.solves}
    for step in run.steps:
        if step.round_index:
            planner.after_round(step.round_index - 1, step.ran, step.now_s)
        for job in step.removed:
            planner.remove(job)
        for job in step.added:
            planner.add(job, run.profiles[job], run.gangs[job], step.now_s)
        before = planner.plan
        planner.next_round(step.round_index, step.now_s, run.n_gpus)
        if planner.plan is before:
            continue
        rounds.append(step.round_index)
        if step.round_index in solves:
            solve = solves[step.round_index]
            assert list(planner.planned_jobs) == solve["jobs"], step.round_index
            problem = planner.problem(step.round_index, step.now_s, run.n_gpus)  # its targets are the plan's
            latest = [planner.prediction(job).targets[-1][1] for job in planner.planned_jobs]
            plans.append(Recorded(solve, problem, RoundValues.of(problem), planner.plan, latest))
    assert len(plans) == len(run.solves)
    return plans, rounds
