"""Shockwave's policies in the replay: Gavel's rounds, for jobs that change their batch sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.options import Number, option
from bfreplay.policies.policy import Decision, PolicyCapabilities, PolicyOptions
from bfreplay.policies.state import PolicyState
from bfreplay.systems.gavel.gavel_policy import GavelPolicy
from bfreplay.systems.gavel.options import GavelOptions, gangs
from bfreplay.systems.gavel.quirks import Quirks
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, RoundRules, RoundState
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.shockwave.adaptation_rules import MODES, model_and_batch_size
from bfreplay.systems.shockwave.planner.options import PlannerOptions, PlannerQuirks
from bfreplay.systems.shockwave.planner.planned_rounds import ShockwavePlanner
from bfreplay.systems.shockwave.profile import Profile, even_profile, profile_of
from bfreplay.systems.shockwave.published_jobs import DEADLINE_FACTOR, PublishedJob, PublishedJobs, PublishedMetrics
from bfreplay.systems.shockwave.trace import RESTORE_S
from bfreplay.workload import ElasticJob

ROUND_S = 120.0
"""Length of Shockwave's rounds."""


@dataclass(frozen=True)
class ShockwaveOptions(GavelOptions):
    """Options of a ``ShockwavePolicy``: those of Gavel's rounds, with other defaults.

    Parameters
    ----------
    published
        Repeat the published simulator: at least 1,000 s between two recomputations, its own changes of batch sizes
        (``published_jobs``), restarts that cost steps instead of time, and nodes kept empty for jobs that arrived after
        the last recomputation. Needs jobs of a trace.
    deadline_factor
        With ``published``, a job that has run for this multiple of its exclusive time counts as finished.

    Raises
    ------
    InputError
        A value out of range.
    """

    published_reset_s: ClassVar[float] = 1000.0
    published_quirks: ClassVar[Quirks] = Quirks(reset_at_zero_means_never=True, shareless_jobs_take_nodes=True)

    round_s: float = option(ROUND_S, checks.round_length)
    restart_s: float = option(RESTORE_S, Number(least=0))
    deadline_factor: float = option(DEADLINE_FACTOR, Number(above=0))

    # no parameters of these policies
    inner: str = field(default="fairness", init=False)
    seed: int = field(default=0, init=False)
    global_queue: bool = field(default=False, init=False)
    types: Sequence[str] = field(default=(), init=False)
    prices: Mapping[str, float] | None = field(default=None, init=False)
    profiled: float | None = field(default=None, init=False)
    references: int | None = field(default=None, init=False)

    def rules(self, types_in_log: tuple[str, ...], type_names: tuple[str, ...], shares: SharePolicy) -> RoundRules:
        """Return the rules of the rounds, without restarts in the published simulator (see ``PublishedJobs``)."""
        rules = super().rules(types_in_log, type_names, shares)
        return replace(rules, restart_s=0.0) if self.published else rules


@dataclass(frozen=True)
class PlannedOptions(ShockwaveOptions, PlannerOptions):
    """Options of the policy ``shockwave.shockwave``: those of the other policies, and its planner's."""

    # no parameter of the policy, as it has no shares
    least_reset_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published:
            object.__setattr__(self, "quirks", PlannerQuirks.published())

    def to_json(self) -> dict[str, Json]:
        """Return every option, those of the planner as one."""
        options = super().to_json()
        planner = {field.name: options[field.name] for field in fields(PlannerOptions)}
        return {**{field.name: options[field.name] for field in fields(ShockwaveOptions)}, "planner": planner}


class ShockwavePolicy(GavelPolicy):
    """Runs jobs in rounds of two minutes on nodes of one type (Shockwave, NSDI'23).

    By default jobs change their batch sizes at the progress that their adaptation names, and shares are then
    recomputed. With ``published`` the policy follows the published simulator, in which a job asks for another
    batch size at the end of a round and gets it when its next lease ends.
    """

    options_type: ClassVar[type[PolicyOptions]] = ShockwaveOptions
    options: ShockwaveOptions
    follows_gavel_alone = False
    not_saved = ("_listed_jobs",)
    capabilities = PolicyCapabilities(
        asks_solver=False,
        in_rounds=True,
        chooses_nodes=True,
        linear_programs=True,
        fixed_nodes=True,
        warm_up="gavel.fifo_perf",
    )

    def __init__(self, options: ShockwaveOptions | None = None) -> None:
        super().__init__(options)
        self.sets_batch_sizes = self.options.published
        self.notes_batch_sizes = not self.options.published

    def forget(self) -> None:
        """Forget the jobs and rounds of a replay."""
        super().forget()
        self._listed_jobs: Sequence[ElasticJob] = getattr(self, "_listed_jobs", ())
        self._n_first = 0
        self._published = PublishedJobs(self.options.round_s, self.options.deadline_factor)

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        """Refuse jobs that Gavel's policies refuse and, with ``published``, jobs that are not of a trace."""
        super().check_jobs(jobs, most_nodes)
        self._listed_jobs = jobs
        if self.options.published:
            for job in jobs:
                if job.adaptation is None or job.adaptation.rule not in MODES or job.min_nodes != job.max_nodes:
                    problem = f"the published simulator cannot run the job {job.name!r}"
                    expected = "jobs of a trace of Shockwave, each on its own number of nodes"
                    raise _refusal(problem, job.model or job.name, expected)
                model_and_batch_size(job.model or "")

    def seconds_alone(self, job: ElasticJob, n_nodes: int) -> float:
        """Return the seconds of a job alone; with ``published`` those of the published profile."""
        if self.options.published:
            return profile_of(job, n_nodes, published=True).exclusive_s
        return super().seconds_alone(job, n_nodes)

    def _job(self, job_index: int) -> ElasticJob:
        """Return the job with number ``job_index`` in the replay."""
        if job_index < len(self._listed_jobs):
            return self._listed_jobs[job_index]
        raise _refusal("the published simulator needs all jobs at the start", job_index, "jobs of a trace of Shockwave")

    # -- the published simulator -----------------------------------------------------------------------------

    def _of_state(self, state: PolicyState) -> list[PublishedJob]:
        """Return the published jobs by row of the state; a job that is new to the rounds has done nothing."""
        number_of = self._jobs.number_of
        gang_sizes = gangs(state.min_nodes, state.max_nodes, self.options.gang, self._most_nodes)
        published_jobs = []
        for job, gang in zip(state.job.tolist(), gang_sizes.tolist(), strict=True):
            job_so_far = self._published.of.get(number_of.get(job, -1))
            published_jobs.append(job_so_far or PublishedJob.of(self._job(job), gang))
        return published_jobs

    def _step_samples(self, state: PolicyState) -> NDArray[np.int64]:
        if not self.options.published:
            return super()._step_samples(state)
        return np.array([job.size for job in self._of_state(state)], np.int64)

    def _rates(self, state: PolicyState, gang_sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        if not self.options.published:
            return super()._rates(state, gang_sizes)
        return np.array([[job.rate] for job in self._of_state(state)])

    def _steps_left(self, state: PolicyState) -> NDArray[np.float64]:
        if not self.options.published:
            return super()._steps_left(state)
        return np.array([float(job.steps_left) for job in self._of_state(state)])

    def _follow(self, state: PolicyState, rounds: RoundState, job_rows: NDArray[np.int64]) -> None:
        previous = set(self._jobs.number.tolist())
        gang_sizes = gangs(state.min_nodes, state.max_nodes, self.options.gang, self._most_nodes)
        super()._follow(state, rounds, job_rows)
        numbers = self._jobs.number.tolist()
        if self.options.published:
            self._published.remove(previous.difference(numbers))
            for number, job_row in zip(numbers, job_rows.tolist(), strict=True):
                if number not in previous:
                    job = self._job(int(state.job[job_row]))
                    self._published.add(number, PublishedJob.of(job, int(gang_sizes[job_row])))

    def _after_round(self, state: PolicyState, rounds: RoundState) -> None:
        if self.options.published:
            self._published.end_round(rounds.last)

    def _adjust_tasks(self, assignment: Assignment) -> Assignment:
        return self._published.begin_round(assignment) if self.options.published else assignment

    def published_metrics(self) -> PublishedMetrics:
        """Return the metrics of finished jobs as in the published program; with ``published`` only."""
        return self._published.metrics(int(self._n_nodes.sum()))

    def summary(self) -> dict[str, object]:
        """Return the counts of the rounds; with ``published`` also the metrics of the published program."""
        published = {"published": self.published_metrics().to_json()} if self.options.published and self._state else {}
        return {**super().summary(), **published}

    def decide(self, state: PolicyState) -> Decision:
        """Return the jobs and nodes of the round until the next one begins."""
        decision = super().decide(state)
        return self._follow_simulator(decision, state) if self.options.published else decision

    def _begin(self, state: PolicyState) -> RoundState:
        rounds = super()._begin(state)
        self._n_first = self._n_first or state.n_idle
        return rounds

    def _follow_simulator(self, decision: Decision, state: PolicyState) -> Decision:
        """Set batch sizes and progress of the replay's jobs to those of the simulator."""
        assert decision.round is not None
        if state.n_idle != self._n_first:
            problem, fix = (
                "the published simulator has a constant set of nodes",
                "remove published=true, or use --cluster",
            )
            raise _refusal(problem, state.n_idle, f"{self._n_first} nodes at every round", fix)
        published_jobs = self._of_state(state)
        remaining = np.array([float(max(job.steps_left, 1) * job.size) for job in published_jobs])
        running = decision.counts > 0
        ends_late = np.array([job.ends_late for job in published_jobs]) & running
        if decision.round.samples is not None:
            remaining = np.where(ends_late, decision.round.samples, remaining)
        remaining = np.where(np.array([job.is_given_up for job in published_jobs]), 0.0, remaining)  # it leaves at once
        credit = (state.work - state.progress) - remaining
        round_plan = replace(
            decision.round,
            failed=None,
            batch_size=np.array([job.size for job in published_jobs], np.int64),
            credit=credit if credit.any() else None,
        )
        return replace(decision, round=round_plan)


def _refusal(problem: str, value: object, expected: str, fix: str = "leave published=true out") -> InputError:
    return InputError(problem, column="published", value=value, expected=expected, fix=fix)


class _NoShares(SharePolicy):
    """No shares of time, as a plan chooses the jobs; only jobs with an end can be planned."""

    looks_at_work = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return no share for any job."""
        return TimeShares(np.zeros((problem.n_jobs, problem.n_types)))


class PlannerPolicy(ShockwavePolicy):
    """Shockwave itself: a plan of the next rounds chooses the jobs (NSDI'23, sections 4 to 6).

    When nodes join or leave in mid-round, nodes that the plan does not use go to jobs in order of arrival.
    """

    options_type = PlannedOptions
    options: PlannedOptions
    has_shares = False

    def __init__(self, options: PlannedOptions | None = None) -> None:
        options = options or PlannedOptions()
        self._planner = ShockwavePlanner(options)
        super().__init__(options)

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return the policy without shares."""
        return _NoShares()

    def forget(self) -> None:
        """Forget the jobs and rounds of a replay."""
        super().forget()
        self._planner.forget()
        self._planned: set[int] = set()
        self._round = -1
        self._samples_per_epoch: dict[int, int] = {}
        self._progress: dict[int, float] = {}

    def _after_round(self, state: PolicyState, rounds: RoundState) -> None:
        last, sizes = rounds.last, {number: job.size for number, job in self._published.of.items()}
        super()._after_round(state, rounds)
        running_s = last.ran_s() - (0.0 if self.options.published else self.options.restart_s) * last.restarts[:, 0]
        number_of, progress_of = self._jobs.number_of, {}
        tasks = zip(last.member[:, 0].tolist(), last.steps[:, 0].tolist(), running_s.tolist(), strict=True)
        row_at = {number_of[job]: job_row for job_row, job in enumerate(state.job.tolist()) if job in number_of}
        for number, steps, seconds in tasks:
            if number not in row_at or number not in self._planned:  # left, or started in mid-round before any plan
                continue
            if self.options.published:
                job = self._published.of[number]
                progress_of[number] = job.epochs_done, sizes[number], steps / seconds if seconds > 0 else 0.0
            else:
                progress = float(state.progress[row_at[number]])
                new_samples = progress - self._progress.get(number, 0.0)
                samples = self._samples_per_epoch[number]
                samples_per_s = new_samples / seconds if seconds > 0 else 0.0
                progress_of[number] = int((progress + 1e-6) // samples), 1, samples_per_s
                self._progress[number] = progress
        if self._round >= 0:
            self._planner.after_round(self._round, progress_of, rounds.round_end_s)

    def _pick_jobs(
        self, state: PolicyState, rounds: RoundState, now_s: float, job_rows: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        alone = rounds.entries.member[:, 1] == NOBODY
        present = rounds.jobs.number[rounds.entries.can_run[alone].any(axis=1)].tolist()
        for number in self._planned.difference(present):
            self._planner.remove(number)
        gang_of = dict(zip(rounds.jobs.number.tolist(), rounds.jobs.gang.tolist(), strict=True))
        for number in present:
            if number not in self._planned:
                gang = gang_of[number]
                profile = self._profile(state, number, gang)
                self._samples_per_epoch[number] = profile.samples_per_epoch
                self._planner.add(number, profile, gang, now_s)
        self._planned = set(present)
        self._round += 1
        return np.array(self._planner.next_round(self._round, now_s, int(self._n_nodes.sum())), np.int64)

    def _profile(self, state: PolicyState, number: int, gang: int) -> Profile:
        """Return the profile of a job; for one made by a job source, at its present batch size."""
        job_index = self._jobs.job[int(np.searchsorted(self._jobs.number, number))]
        if job_index < len(self._listed_jobs) or self.options.published:
            return profile_of(self._job(job_index), gang, published=self.options.published)
        job_row = int(np.flatnonzero(state.job == job_index)[0])
        return even_profile(float(state.work[job_row]), float(state.throughput[job_row, gang]))

    def summary(self) -> dict[str, object]:
        """Return the counts of rounds and plans."""
        return {**super().summary(), **self._planner.summary()}

    def close(self) -> None:
        """Forget the replay, and end the back end's process."""
        super().close()
        self._planner.close()
