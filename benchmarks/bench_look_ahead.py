"""What is left to gain beyond the best fixed T_fwd, what a forecast would be worth, and which ideas pay.

Run it: ``python benchmarks/bench_look_ahead.py [--evaluations N] [--picture FILE] [--logs ...]``. Three logs, the two
published job sets, 10 jobs at once with work without end. Every figure is a share of the thorough upper bound of that
log and set.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

import numpy as np
from measure import heading, table_head, table_row
from real_logs import JOB_SETS, published_jobs, real_logs

from bfreplay import BFTrainerPolicy, JobSet, NodeEvents, Policy, PolicyState, ReplaySettings, replay_log
from bfreplay.bounds import Effort, upper_bound
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import Decision
from bfreplay.policies.look_ahead import ForesightPolicy, LookAheadPolicy

PARALLEL = 10
FIXED_S = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900)


class Rested(BFTrainerPolicy):
    """Changes nothing for ``rest_s`` after a change, unless nodes were taken from a job."""

    def __init__(self, t_fwd_s: float, rest_s: float) -> None:
        super().__init__(t_fwd_s)
        self.rest_us = round(rest_s * 1e6)
        self.changed_us = -self.rest_us
        self.held = np.zeros(0, np.int64)

    def decide(self, state: PolicyState) -> Decision:
        was_hit = self.held.size != state.n_jobs or bool((state.current < self.held).any())
        if not was_hit and state.time_us < self.changed_us + self.rest_us:
            return Decision(state.current.copy())
        decision = super().decide(state)
        if (decision.counts != state.current).any():
            self.changed_us = state.time_us
        self.held = decision.counts.copy()
        return decision


class Reluctant(BFTrainerPolicy):
    """Changes only what gains at least ``margin`` times its cost more than keeping all as it is."""

    def __init__(self, t_fwd_s: float, margin: float) -> None:
        super().__init__(t_fwd_s)
        self.margin = margin
        self.exact = ExactSolver()

    def decide(self, state: PolicyState) -> Decision:
        problem = self.objective.problem(state, float(self.t_fwd_s or 0))
        counts = self.exact.solve(problem).counts
        assert counts is not None
        kept = np.where(state.current >= state.min_nodes, state.current, 0)
        jobs = np.arange(state.n_jobs)
        gained = problem.value[jobs, counts].sum() - problem.gain[jobs, kept].sum()
        cost = problem.scale_up_loss[counts > kept].sum() + problem.scale_down_loss[counts < kept].sum()
        return Decision(kept if gained < self.margin * cost else counts)


class Wary(BFTrainerPolicy):
    """Charges every node what its reclaim would cost, at the rate at which nodes have been reclaimed so far."""

    def __init__(self, t_fwd_s: float) -> None:
        super().__init__(t_fwd_s)
        self.exact = ExactSolver()
        self.node_s = self.reclaimed = 0.0
        self.last = (0, 0)

    def decide(self, state: PolicyState) -> Decision:
        since_us, idle = self.last
        if idle:
            self.node_s += idle * (state.time_us - since_us) * 1e-6
            self.reclaimed += max(idle - state.n_idle, 0)
        self.last = (state.time_us, state.n_idle)
        hazard = self.reclaimed / max(self.node_s, 1.0)
        problem = self.objective.problem(state, float(self.t_fwd_s or 0))
        nodes = np.arange(problem.gain.shape[1])
        hit = 1 - np.exp(-hazard * float(self.t_fwd_s or 0) * nodes)
        problem.gain[:] -= hit * state.scale_down_cost_s[:, None] * state.objective
        counts = self.exact.solve(problem).counts
        assert counts is not None
        return Decision(counts)


def policies(best_s: float) -> dict[str, Callable[[], Policy]]:
    """What is compared, beside fixed T_fwd; variants of BFTrainer get the T_fwd that is best on this log and set."""
    return {
        "auto": lambda: BFTrainerPolicy("auto"),
        "look-ahead": LookAheadPolicy,
        "foresight 1": lambda: ForesightPolicy(1),
        "foresight 3": lambda: ForesightPolicy(3),
        "foresight 10": lambda: ForesightPolicy(10),
        "foresight 100": lambda: ForesightPolicy(100),
        "rested 15 s": lambda: Rested(best_s, 15.0),
        "reluctant x 0.5": lambda: Reluctant(best_s, 0.5),
        "reluctant x 2": lambda: Reluctant(best_s, 2.0),
        "wary": lambda: Wary(best_s),
    }


def samples(log: NodeEvents, jobs: JobSet, policy: Policy) -> tuple[float, float]:
    """Of a run, and its seconds."""
    begun = perf_counter()
    run = replay_log(
        log,
        jobs,
        policy,
        ReplaySettings(PARALLEL),
        unlimited_work=True,
        efficiency=False,
        bound=False,
        with_tables=False,
    )
    return run.summary["ledger"]["samples"], perf_counter() - begun


def main() -> None:
    """Print the table, and draw the picture where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--logs", help="Some of them, with commas between.")
    given = parser.parse_args()
    wanted = None if given.logs is None else given.logs.split(",")
    print(heading(f"Looking ahead, {PARALLEL} jobs at once, work without end"))
    names = list(policies(120.0))
    table_head(
        "log", "jobs", "free rescaling", "best fixed", "of T_fwd, s", "120 s", *names, "seconds: 120 s, look-ahead"
    )
    found: dict[str, dict[str, float]] = {}
    for log_name, log in real_logs().items():
        if wanted is not None and log_name not in wanted:
            continue
        for set_name in JOB_SETS:
            jobs = published_jobs(set_name)
            bound = upper_bound(
                log,
                jobs.endless(PARALLEL, log.window_start_us),
                PARALLEL,
                effort=Effort.THOROUGH,
                evaluations=given.evaluations,
            )
            run = functools.partial(samples, log, jobs)
            fixed = {t_fwd_s: run(BFTrainerPolicy(t_fwd_s)) for t_fwd_s in FIXED_S}
            best_s = max(fixed, key=lambda t_fwd_s: fixed[t_fwd_s][0])
            others = {name: run(make()) for name, make in policies(best_s).items()}
            shares = {name: made / bound.samples for name, (made, _) in others.items()}
            assert bound.free_rescaling_samples is not None
            table_row(
                log_name,
                set_name,
                f"{bound.free_rescaling_samples / bound.samples:.4f}",
                f"{fixed[best_s][0] / bound.samples:.4f}",
                str(best_s),
                f"{fixed[120][0] / bound.samples:.4f}",
                *(f"{share:.4f}" for share in shares.values()),
                f"{fixed[120][1]:.1f}, {others['look-ahead'][1]:.1f}",
            )
            found[f"{log_name}, {set_name}"] = {
                "120 s": fixed[120][0] / bound.samples,
                "best fixed": fixed[best_s][0] / bound.samples,
                **shares,
            }
    if given.picture is not None:
        draw(found, given.picture)


def draw(found: Mapping[str, Mapping[str, float]], file: Path) -> None:
    """A row of points for each log and set: what each policy leaves to gain."""
    from matplotlib.figure import Figure

    shown = {
        "120 s": ("o", "#999999"),
        "best fixed": ("s", "#000000"),
        "auto": ("D", "#e69f00"),
        "look-ahead": ("^", "#0072b2"),
        "foresight 1": ("v", "#56b4e9"),
        "foresight 10": ("P", "#009e73"),
    }
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots()
    for row, shares in enumerate(found.values()):
        axes.axhline(row, color="#dddddd", linewidth=0.8, zorder=0)
        for name, (marker, colour) in shown.items():
            axes.plot(
                100 * (1 - shares[name]),
                row,
                marker,
                color=colour,
                markersize=8,
                alpha=0.9,
                label=name if row == 0 else None,
            )
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("at most left to gain, % of the upper bound (0: nobody can do better)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=len(shown), frameon=False)
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
