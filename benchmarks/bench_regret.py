"""The regret of BFTrainer's policy beside its efficiency U, for the 36 combinations of systems like the paper's.

Run it: ``python benchmarks/bench_regret.py [--evaluations N]``. The whole Summit log, the published accounting, exact
decisions, work without end. Regret: at most this part of what anyone who knows the future could process was left.
"""

from __future__ import annotations

import argparse
import math

from measure import SUMMIT, heading, table_head, table_row
from real_logs import JOB_SETS, published_jobs

from bfreplay import BFTrainerPolicy, ReplaySettings, Semantics, load_events, replay_log
from bfreplay.bounds import Effort, upper_bound

T_FWD_S = (10, 30, 60, 120, 300, 600)
PARALLEL = (10, 35, 70)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=300)
    evaluations = parser.parse_args().evaluations
    log = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    print(heading("U and regret on the Summit log"))
    table_head("jobs", "at once", "bound, 1e9 samples", "free rescaling", *(f"T_fwd {s} s" for s in T_FWD_S))
    for name in JOB_SETS:
        jobs = published_jobs(name)
        for parallel in PARALLEL:
            bound = upper_bound(
                log,
                jobs.endless(parallel, log.window_start_us),
                parallel,
                effort=Effort.THOROUGH,
                evaluations=evaluations,
            )
            assert bound.free_rescaling_samples is not None
            cells = []
            for t_fwd_s in T_FWD_S:
                run = replay_log(
                    log,
                    jobs,
                    BFTrainerPolicy(t_fwd_s),
                    ReplaySettings(parallel, Semantics.PUBLISHED),
                    unlimited_work=True,
                    bound=False,
                    with_tables=False,
                )
                regret = math.ceil(1000 * (1 - run.summary["ledger"]["samples"] / bound.samples)) / 1000
                cells.append(f"{run.u:.3f}, {regret:.1%}")
            table_row(
                name,
                str(parallel),
                f"{bound.samples / 1e9:.1f}",
                f"{bound.free_rescaling_samples / bound.samples - 1:+.2%}",
                *cells,
            )


if __name__ == "__main__":
    main()
