"""Shockwave's own policy in the replay, which follows a plan of the next rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solver import Solver
from bfreplay.policies.spec import keywords_from
from bfreplay.policies.state import PolicyState
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.rounds.state import NOBODY, RoundState
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.shockwave.options import ROUND_S, PlannedOptions
from bfreplay.systems.shockwave.planner.options import PlannerOptions, PlannerQuirks
from bfreplay.systems.shockwave.planner.planned_rounds import ShockwavePlanner
from bfreplay.systems.shockwave.profile import Profile, even_profile, profile_of
from bfreplay.systems.shockwave.shockwave_policy import ShockwavePolicy

_OF_ROUNDS = ("round_s", "restart_s", "gang", "published", "deadline_factor", "refill")
_OF_PLANNER = (
    "future_rounds",
    "k",
    "priority_power",
    "rhomax",
    "backend",
    "time_limit_s",
    "relative_gap",
    "published_weights",
    "replan_every",
)


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

    options: PlannedOptions

    def __init__(self, options: PlannedOptions | None = None) -> None:
        options = options or PlannedOptions()
        self._planner = ShockwavePlanner(options.planner)
        super().__init__(options)

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return the policy without shares."""
        return _NoShares()

    @classmethod
    @keywords_from(PlannedOptions, PlannerOptions, only=(*_OF_ROUNDS, *_OF_PLANNER))
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, **chosen: Any) -> PlannerPolicy:
        """Return the policy with these options; the forward-looking time and the solver of the run have no effect.

        See ``ShockwaveOptions`` and ``PlannerOptions``.
        """
        of_planner = {name: chosen.pop(name) for name in _OF_PLANNER if name in chosen}
        quirks = PlannerQuirks.published() if chosen.get("published") else PlannerQuirks()
        round_s = chosen.setdefault("round_s", ROUND_S)
        return cls(PlannedOptions(**chosen, planner=PlannerOptions(round_s=round_s, quirks=quirks, **of_planner)))

    def _forget(self) -> None:
        super()._forget()
        self._planner.forget()
        self._planned: set[int] = set()
        self._round = -1
        self._samples_per_epoch: dict[int, int] = {}
        self._progress: dict[int, float] = {}

    def _recompute_if_due(
        self,
        state: PolicyState,
        rounds: RoundState,
        now_s: float,
        rows: NDArray[np.int64],
        steps_left: NDArray[np.float64],
    ) -> None:
        """Do nothing: there are no shares."""

    def _after_round(self, state: PolicyState, rounds: RoundState) -> None:
        last, sizes = rounds.last, {number: job.size for number, job in self._published.of.items()}
        super()._after_round(state, rounds)
        measured_s = last.ran_s() - (0.0 if self._is_published else self.options.restart_s) * last.restarts[:, 0]
        row_of = {job: row for row, job in enumerate(state.job.tolist())}
        number_of = dict(zip(self._jobs.job, self._jobs.number.tolist(), strict=True))
        ran = {}
        tasks = zip(last.member[:, 0].tolist(), last.steps[:, 0].tolist(), measured_s.tolist(), strict=True)
        known = {number: row_of[job] for job, number in number_of.items() if job in row_of}
        for number, steps, seconds in tasks:
            if number not in known or number not in self._planned:  # left, or started in mid-round before any plan
                continue
            if self._is_published:
                job = self._published.of[number]
                ran[number] = job.epochs_done, sizes[number], steps / seconds if seconds > 0 else 0.0
            else:
                progress = float(state.progress[known[number]])
                made = progress - self._progress.get(number, 0.0)
                samples = self._samples_per_epoch[number]
                ran[number] = int((progress + 1e-6) // samples), 1, made / seconds if seconds > 0 else 0.0
                self._progress[number] = progress
        if self._round >= 0:
            self._planner.after_round(self._round, ran, rounds.round_end_s)

    def _pick_jobs(
        self, state: PolicyState, rounds: RoundState, now_s: float, rows: NDArray[np.int64]
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
        index = self._jobs.job[int(np.searchsorted(self._jobs.number, number))]
        if index < len(self._listed_jobs) or self._is_published:
            return profile_of(self._job(index), gang, published=self._is_published)
        row = int(np.flatnonzero(state.job == index)[0])
        return even_profile(float(state.work[row]), float(state.throughput[row, gang]))

    def summary(self) -> dict[str, object]:
        """Return the counts of rounds and plans."""
        return {**super().summary(), **self._planner.summary()}

    def close(self) -> None:
        """Forget the replay, and end the back end's process."""
        super().close()
        self._planner.close()
