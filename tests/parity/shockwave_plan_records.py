"""Recorded plans of Shockwave's published planner, and ours for the same rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.state import PolicyState
from bfreplay.systems.gavel.rounds.state import RoundState
from bfreplay.systems.shockwave.planner.planned_rounds import ShockwavePlanner
from bfreplay.systems.shockwave.planner.problem import Level, PlanProblem, RoundValues
from bfreplay.systems.shockwave.planner.solve import Plan
from bfreplay.systems.shockwave.shockwave_policy import PlannedOptions, PlannerPolicy
from tests.parity.records import read_record
from tests.parity.shockwave_records import golden, replay_set

RUNS = {
    "first12": ("first12_4gpus_tacc", "solves_first12_4gpus_tacc", "config_used"),
    "first20": ("first20_8gpus_tacc", "solves_first20_8gpus_tacc", "config_used"),
    "first32": ("first32_10gpus_tacc", "solves_first32_10gpus_tacc_half", "config_used"),
    "first12-F5": ("first12_4gpus_tacc", "solves_first12_4gpus_tacc_F5_rhomax2", "config_used_F5_rhomax2"),
}
"""Key of ``TRACES``, solves, configuration."""

HEAVIEST = 1e6
"""Recorded objectives with larger weights are beyond the precision of a solver."""


@dataclass
class RecordedPlan:
    """Recorded plan, and ours for the same inputs."""

    solve: dict[str, Any]
    problem: PlanProblem
    values: RoundValues
    plan: Plan
    latest_targets: list[float]
    """Last predicted finish time of each job."""

    @property
    def theirs(self) -> NDArray[np.bool_]:
        """Jobs of each round of the record, (N, F)."""
        return np.array([[each == "1" for each in row] for row in self.solve["y"]])

    @property
    def level(self) -> Level:
        """Recorded objective: equal weights under constraints, otherwise the recorded ones."""
        equal = [1.0] * self.problem.n_jobs
        return Level(np.array(self.solve.get("priority", equal)), self.problem.k)

    @property
    def is_comparable(self) -> bool:
        """True if the recorded weights are within the precision of a solver."""
        return bool(self.level.weight.max() <= HEAVIEST)

    @property
    def recorded_objective(self) -> float:
        """Value of the objective in the record."""
        calls = self.solve["calls"]
        return float(calls[min(1, len(calls) - 1)]["obj"])

    def inputs(self) -> dict[str, Any]:
        """Return progress, epochs, gangs, latest targets, epoch times, remaining times, targets, weights of jobs."""
        problem = self.problem
        return {
            "epochs done, epochs, GPUs": [
                each.tolist() for each in (problem.epochs_done, problem.n_epochs, problem.gang)
            ],
            "latest target": self.latest_targets,
            "epoch time": problem.mean_epoch_s.tolist(),
            "remaining time": problem.remaining_s.tolist(),
            "finish target": problem.target_s.tolist(),
            "weight": problem.published_weights.tolist() if "priority" in self.solve else None,
        }

    def recorded_inputs(self) -> dict[str, Any]:
        """Return the same of the record."""
        solve = self.solve
        return {
            "epochs done, epochs, GPUs": [solve[key] for key in ("progress", "epochs", "nworkers")],
            "latest target": [target for _, target in solve["share_series_last"]],
            "epoch time": solve["dbar"],
            "remaining time": solve["remaining"],
            "finish target": solve["ftf_target"],
            "weight": solve.get("priority"),
        }

    def shortfall(self) -> float:
        """Return the relative loss of our plan against the recorded one; 0 if there is none.

        Beyond a solver's precision it is computed level by level.
        """
        if not self.is_comparable:
            return self.shortfall_of_levels()
        return _below(self.values.at(self.level, self.plan.runs.sum(axis=1)), self.recorded_objective)

    def shortfall_of_levels(self) -> float:
        """Return the largest loss up to the first level where our plan is better: jobs about to be late, then all.

        There are no levels where all can be in time.
        """
        if len(self.plan.calls) == 2 and self.is_comparable:
            return 0.0
        worst = 0.0
        for level in self.problem.levels(published=False):
            ours, theirs = (self.values.at(level, runs.sum(axis=1)) for runs in (self.plan.runs, self.theirs))
            worst = max(worst, _below(ours, theirs))
            if ours > theirs + 1e-9 * abs(theirs):
                break
        return worst


def _below(ours: float, theirs: float) -> float:
    return max(0.0, theirs - ours) / max(abs(theirs), 1e-9)


def options_of(config: dict[str, Any]) -> PlannedOptions:
    """Return the planner's options of a recorded configuration."""
    return PlannedOptions(
        published=True,
        future_rounds=config["future_rounds"],
        k=config["k"],
        priority_power=config["lambda"],
        rhomax=config["rhomax"],
        log_knots=tuple(config["log_approximation_bases"]),
        relative_gap=config["solver_rel_gap"],
    )


def schedule_of(shared: Path, name: str) -> list[list[int]]:
    """Return the jobs of each round of a run of ``RUNS``; without a recorded schedule, those of its plans."""
    trace, solves_name, _ = RUNS[name]
    if trace in golden(shared, "original_runs_schedules") and not name.endswith("F5"):
        return [[job for job, _ in tasks] for tasks in golden(shared, "original_runs_schedules")[trace]["shockwave"]]
    solves = golden(shared, f"planner/{solves_name}")
    ends = [solve["round"] for solve in solves[1:]] + [solves[-1]["round"] + len(solves[-1]["schedule"])]
    rounds = [solve["schedule"][: end - solve["round"]] for solve, end in zip(solves, ends, strict=True)]
    return [jobs for each in rounds for jobs in each]


def recorded_rounds(shared: Path, name: str) -> list[int]:
    """Return the rounds in which a run of ``RUNS`` was planned."""
    return [solve["round"] for solve in golden(shared, f"planner/{RUNS[name][1]}")]


class _RecordingPlanner(ShockwavePlanner):
    posed: PlanProblem
    """Problem of the last plan."""

    def problem(self, round_index: int, now_s: float, n_gpus: int) -> PlanProblem:
        self.posed = super().problem(round_index, now_s, n_gpus)
        return self.posed


class RecordedRounds(PlannerPolicy):
    """Policy that plans like the published planner, records the plans, and runs the recorded jobs instead.

    Parameters
    ----------
    options
        Options of the policy and its planner.
    schedule
        Jobs of each round.
    """

    name = "shockwave.recorded_rounds"

    def __init__(self, options: PlannedOptions, schedule: list[list[int]]) -> None:
        super().__init__(options)
        self._planner = _RecordingPlanner(options)
        self._schedule = schedule
        self.made: dict[int, tuple[list[int], PlanProblem, Plan, list[float]]] = {}
        """By round: the jobs, the problem, its plan, and the last predicted finish times."""

    def _pick_jobs(
        self, state: PolicyState, rounds: RoundState, now_s: float, rows: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        planner = self._planner
        assert isinstance(planner, _RecordingPlanner)
        before = planner.plan
        picked = super()._pick_jobs(state, rounds, now_s, rows)
        if planner.plan is not None and planner.plan is not before:
            latest = [planner.prediction(job).targets[-1][1] for job in planner.planned_jobs]
            self.made[self._round] = list(planner.planned_jobs), planner.posed, planner.plan, latest
        if self._round >= len(self._schedule):
            return picked
        return np.array(self._schedule[self._round], np.int64) if rows.size else picked


@cache
def recorded_plans(shared: Path, name: str) -> tuple[list[RecordedPlan], list[int]]:
    """Return every plan with recorded inputs of a run, repeated in the replay, and the rounds of all our plans."""
    trace, solves_name, config = RUNS[name]
    options = options_of(read_record(shared / f"golden/shockwave/planner/{config}.json"))
    policy = RecordedRounds(options, schedule_of(shared, name))
    replay_set(shared, trace, policy)
    PlannerPolicy.close(policy)
    found = []
    for solve in golden(shared, f"planner/{solves_name}"):
        jobs, problem, plan, latest = policy.made[solve["round"]]
        if jobs != solve["jobs"]:
            raise ValueError(f"other jobs are planned in round {solve['round']}")
        if "progress" in solve:  # of a set that is half there, all but the schedule is kept apart for the others
            found.append(RecordedPlan(solve, problem, RoundValues.of(problem), plan, latest))
    return found, list(policy.made)
