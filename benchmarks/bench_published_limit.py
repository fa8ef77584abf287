"""What the published model's accidental limit on changes costs on the Summit log.

Run it: ``python benchmarks/bench_published_limit.py``.
"""

from __future__ import annotations

import statistics

from measure import SUMMIT, heading, table_head, table_row

from bfreplay import load_events, load_jobs, replay_log
from bfreplay.milp import AllocationProblem, ExactSolver, Solution
from bfreplay.milp.verify import agrees, magnitude
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings

T_FWD_S = 120.0
JOB_SETS = {
    "ImageNet, throughput": ("ImageNet-imgps-Jbnd-1001J.pkl", "ImageNet-imgps-JNPs-1001J.pkl"),
    "HPO, ShuffleNet": ("hps-shufflenet-Jbnd-1000J.pkl", "hps-shufflenet-JNPs-1000J.pkl"),
}


class Both:
    """Follows one model, and counts the decisions in which the limit costs something."""

    def __init__(self, limited: bool) -> None:
        self._free, self._limited = ExactSolver(), ExactSolver(published_limit=True)
        self._follow_limited = limited
        self.name = (self._limited if limited else self._free).name
        self.decisions = 0
        self.losses: list[float] = []

    def solve(self, problem: AllocationProblem) -> Solution:
        free, limited = self._free.solve(problem), self._limited.solve(problem)
        self.decisions += 1
        if not agrees(limited.objective, free.objective, magnitude(problem) * 1e-3):
            self.losses.append(1 - limited.objective / free.objective)
        return limited if self._follow_limited else free

    def describe(self) -> dict[str, object]:
        return {"name": self.name}

    def close(self) -> None:
        pass


def main() -> None:
    """Print one table."""
    print(heading(f"The published limit on changes, Summit log, unlimited work, T_fwd {T_FWD_S:.0f} s"))
    print("binds: decisions in which the optimum under the limit is below the optimum; loss: of the objective there.\n")
    table_head("jobs", "parallel", "model", "decisions", "binds", "loss where it binds, median", "samples (1e9)", "U")
    log = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    for name, (bounds, curves) in JOB_SETS.items():
        jobs = load_jobs(SUMMIT / bounds, SUMMIT / curves)
        for parallel in (10, 35, 70):
            for limited in (False, True):
                both = Both(limited)
                run = replay_log(
                    log,
                    jobs,
                    BFTrainerPolicy(T_FWD_S, both),
                    ReplaySettings(parallel),
                    unlimited_work=True,
                    with_tables=False,
                )
                loss = f"{statistics.median(both.losses):.1%}" if both.losses else "-"
                binds = f"{len(both.losses):,} ({len(both.losses) / both.decisions:.0%})"
                samples, u = run.summary["ledger"]["samples"], run.summary["efficiency"]["u"]
                table_row(
                    name,
                    str(parallel),
                    "published limit" if limited else "free",
                    f"{both.decisions:,}",
                    binds,
                    loss,
                    f"{samples / 1e9:.4f}",
                    f"{u:.4f}",
                )


if __name__ == "__main__":
    main()
