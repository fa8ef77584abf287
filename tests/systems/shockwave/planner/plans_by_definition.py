"""Objective and constraints of Shockwave's plans, written down again from their definitions."""

import math

import numpy as np

from bfreplay.systems.shockwave.planner.problem import PlanProblem

KNOTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def objective(problem: PlanProblem, weight: np.ndarray, k: float, runs: np.ndarray) -> float:
    """The published objective, written down again from its definition."""
    total, longest = 0.0, 0.0
    for j in range(problem.n_jobs):
        left = problem.n_epochs[j] - problem.epochs_done[j]
        epochs = min(left, problem.round_s * runs[j].sum() / problem.mean_epoch_s[j])
        share = (problem.epochs_done[j] + epochs) / problem.n_epochs[j]
        upper = next(i for i in range(1, 6) if share <= KNOTS[i] + 1e-12)
        logs = [math.log(max(knot, 1e-6)) for knot in KNOTS[upper - 1 : upper + 1]]
        part = (share - KNOTS[upper - 1]) / 0.2
        total += weight[j] * (logs[0] + part * (logs[1] - logs[0]))
        longest = max(longest, problem.remaining_s[j] - problem.mean_epoch_s[j] * epochs)
    return total / (problem.n_jobs * problem.n_rounds) - k * longest


def is_in_time(problem: PlanProblem, runs: np.ndarray) -> bool:
    epochs = np.minimum(
        problem.n_epochs - problem.epochs_done, problem.round_s * runs.sum(axis=1) / problem.mean_epoch_s
    )
    remaining_s = np.maximum(0.0, problem.remaining_s - problem.mean_epoch_s * epochs)
    end_s = problem.elapsed_s + problem.round_s * problem.n_rounds + remaining_s / problem.fair_share
    return bool((end_s <= problem.rhomax * problem.target_s + 1e-9).all())
