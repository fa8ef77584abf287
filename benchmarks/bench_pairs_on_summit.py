"""Every formulation on every back end drives a replay of the Summit log's first two days.

Run it: ``python benchmarks/bench_pairs_on_summit.py [HOURS [TIME_LIMIT_S [FORMULATION ...]]]``. Hours for all pairs.

The jobs are the first ten of BFTrainer's ImageNet set, each curve value changed by up to 1 % at random, so that hardly
any two answers are worth the same. Where a solver's counts still differ from the exact solver's on the same state, it
is told how much less they are worth.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from time import perf_counter

import numpy as np
from measure import SUMMIT, heading, table_head, table_row

from bfreplay import JobSet, NodeEvents, load_events, load_jobs, replay_log
from bfreplay.milp import AllocationProblem, ExactSolver, MilpSolver, Quality, Solution
from bfreplay.milp.backends import BACKENDS, backend_of, why_not
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from bfreplay.milp.milp_solver import pairing_fault
from bfreplay.milp.solution import Solver
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.scalability import TabulatedCurve

T_FWD_S = 120.0
HOUR_US = 3_600_000_000
EQUAL = 1e-9
"""Relative difference of objective values below which two answers are a tie."""


class Watched:
    """Follows a solver, and compares each of its answers with the exact one on the same state."""

    def __init__(self, solver: Solver, published: bool) -> None:
        self._solver, self._exact = solver, ExactSolver(published_limit=published)
        self.name = solver.name
        self.decisions = self.replaced = self.unproven = self.ties = self.worse = 0
        self.largest_loss = 0.0

    def solve(self, problem: AllocationProblem) -> Solution:
        solution, best = self._solver.solve(problem), self._exact.solve(problem)
        self.decisions += 1
        self.replaced += solution.rejected is not None
        self.unproven += solution.quality is not Quality.PROVEN
        assert solution.counts is not None
        assert best.counts is not None
        if solution.counts.tolist() != best.counts.tolist() and solution.rejected is None:
            loss = 1 - solution.objective / best.objective
            self.largest_loss = max(self.largest_loss, loss)
            self.ties += loss <= EQUAL
            self.worse += loss > EQUAL
        return solution

    def describe(self) -> dict[str, object]:
        return self._solver.describe()

    def close(self) -> None:
        self._solver.close()


def tie_free_jobs() -> JobSet:
    """The first ten ImageNet jobs, with curves of their own."""
    rng = np.random.default_rng(7)
    jobs = load_jobs(SUMMIT / "ImageNet-imgps-Jbnd-1001J.pkl", SUMMIT / "ImageNet-imgps-JNPs-1001J.pkl")
    changed = []
    for job in list(jobs)[:10]:
        points = np.asarray(job.throughput.nodes)
        rates = np.asarray(job.throughput.values) * (1 + rng.uniform(-0.01, 0.01, points.size))
        changed.append(replace(job, throughput=TabulatedCurve(points.tolist(), rates.tolist())))
    return JobSet(changed)


def replayed(log: NodeEvents, jobs: JobSet, solver: Solver, published: bool) -> tuple[float, Watched, float]:
    """Samples, the watched solver, seconds."""
    watched = Watched(solver, published)
    started = perf_counter()
    run = replay_log(
        log,
        jobs,
        BFTrainerPolicy(T_FWD_S, watched),
        ReplaySettings(10),
        unlimited_work=True,
        efficiency=False,
        with_tables=False,
    )
    return run.summary["ledger"]["samples"], watched, perf_counter() - started


def main(hours: float, time_limit_s: float, names: list[str]) -> None:
    """Print one table."""
    log = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    log = log.between(log.window_start_us, log.window_start_us + int(hours * HOUR_US))
    jobs = tie_free_jobs()
    print(heading(f"All pairs replay the first {hours:g} hours of the Summit log"))
    print(
        f"Ten jobs without ties, unlimited work, T_fwd {T_FWD_S:.0f} s, {time_limit_s:g} s a decision, fallback exact. "
        "Samples: relative to exact's (`published`: to exact's under the published limit).\n"
    )
    table_head("solver", "decisions", "replaced", "unproven", "tie", "worse", "largest loss", "samples - exact's", "s")
    exact = {limited: replayed(log, jobs, ExactSolver(limited), limited)[0] for limited in (False, True)}
    for formulation in names or FORMULATIONS.built_in:
        for backend in BACKENDS.built_in:
            made = backend_of(backend)
            if why_not(made) or pairing_fault(formulation_of(formulation), made):
                continue
            published = formulation_of(formulation).change_limited
            solver = MilpSolver(formulation, backend, referee=ExactSolver(), time_limit_s=time_limit_s, grace_s=1.0)
            samples, seen, seconds = replayed(log, jobs, solver, published)
            counted = (seen.decisions, seen.replaced, seen.unproven, seen.ties, seen.worse)
            apart = samples / exact[published] - 1
            table_row(
                seen.name, *(f"{n:,}" for n in counted), f"{seen.largest_loss:.1e}", f"{apart:+.1e}", f"{seconds:,.0f}"
            )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(float(given[0]) if given else 48.0, float(given[1]) if len(given) > 1 else 1.0, given[2:])
