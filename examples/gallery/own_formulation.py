"""A formulation of your own: the cost of rescaling few jobs at once.

It is written with named variables; without a limit it is the package's ``choices``. The lab compares it with others:
``bfreplay compare formulations sample --jobs sample --formulation own_formulation:Choices``.
"""

import matplotlib.pyplot as plt
import numpy as np

import bfreplay
from bfreplay.milp import LinearModel, MilpSolver
from bfreplay.runs import recorded_decisions


class Choices:
    """Job j gets n nodes where ``y[j, n]`` is 1; at most ``most_changes`` jobs gain or lose nodes."""

    name, needs_sos, needs_continuous, change_limited = "own-choices", False, False, False

    def __init__(self, most_changes: int | None = None) -> None:
        self.most_changes = most_changes

    def build(self, problem: bfreplay.AllocationProblem) -> LinearModel:
        """Return the model of one decision."""
        allowed = problem.value > -np.inf  # (J, K + 1): the counts that each job may have
        count = np.arange(allowed.shape[1])
        m = bfreplay.ModelBuilder()
        y = m.binary("y", allowed.shape, upper=allowed)
        m.add(y.sum(axis=1) == 1, "one")
        m.add((count * y).sum() <= problem.capacity, "capacity")
        if self.most_changes is not None:
            m.add((y * (count != problem.current[:, None])).sum() <= self.most_changes, "changes")
        m.maximise(y * np.where(allowed, problem.value, 0.0))
        return m.build()

    def read(self, problem: bfreplay.AllocationProblem, x: np.ndarray) -> tuple[np.ndarray, None]:
        """Return the counts that the column values stand for."""
        chosen = np.rint(x).astype(int).reshape(problem.n_jobs, -1)
        return chosen @ np.arange(chosen.shape[1]), None


if __name__ == "__main__":
    run = bfreplay.replay_log("sample", "sample", unlimited_work=True, efficiency=False, bound=False)
    posed = run.decisions.query("n_jobs > 0 and n_idle > 0").index[50::100]
    problems = [each.problem for each in recorded_decisions(run, posed.tolist())]
    best = np.array([bfreplay.solve(problem).objective for problem in problems])
    limits = range(4)
    shares = []
    for most in limits:
        solver = MilpSolver(Choices(most), "highs", fallback="none")
        answers = [solver.solve(problem) for problem in problems]
        solver.close()
        shares.append([0.0 if each.counts is None else each.objective for each in answers] / best * 100)
        print(f"at most {most} jobs rescale: {np.mean(shares[-1]):.1f} % of the optimum on average")
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    axes.boxplot(shares, tick_labels=list(map(str, limits)))
    axes.set(
        xlabel="most jobs that may rescale",
        ylabel="objective, % of the optimum",
        title=f"{len(problems)} decisions of a replay, with few changes allowed",
    )
    figure.savefig("own_formulation.png")
