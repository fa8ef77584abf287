"""The whole Summit log, 10 jobs at once, T_fwd 120 s, exact decisions: the process, and its parts apart.

Run it: ``python benchmarks/bench_summit_replay.py [RUNS]``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from measure import SUMMIT, heading, spread, table_head, table_row, whole_process

from bfreplay.runs import RunResult

JOBS = [
    "--jobs",
    str(SUMMIT / "ImageNet-imgps-Jbnd-1001J.pkl"),
    "--curves",
    str(SUMMIT / "ImageNet-imgps-JNPs-1001J.pkl"),
]
CASES = {
    "Parquet, unlimited work": ["summit-2021-02-node-events.parquet", "--unlimited-work"],
    "published matrix (.tar.gz), unlimited work": ["ndstat-10sdn6-evt.tar.gz", "--unlimited-work"],
    "Parquet, the 1,001 jobs as submitted": ["summit-2021-02-node-events.parquet"],
    "Parquet, unlimited work, 70 at once": [
        "summit-2021-02-node-events.parquet",
        "--unlimited-work",
        "--max-parallel",
        "70",
    ],
}
PARTS = ("load_s", "parse_s", "decide_s", "loop_s", "write_s", "dedicated_s")


def main(runs: int) -> None:
    """Print one table."""
    print(heading("Summit replay: whole process and parts (medians, s)"))
    print("load: open and hash the inputs; parse: read and check events; decide: policy and solver; loop: the rest\n")
    parts_head = [part.removesuffix("_s") for part in PARTS]
    table_head("case", "decisions", "wall s (min to max)", "CPU s", "peak MB", *parts_head)
    for name, (events, *options) in CASES.items():
        figures, parts, decisions = [], [], 0
        for run in range(runs + 1):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "run"
                arguments = ["replay", str(SUMMIT / events), *JOBS, *options, "--out", str(out)]
                figure = whole_process(arguments, runs=1, warm_up=0)[0]
                result = RunResult.load(out)
            if run:  # the first one warms the compile cache and the page cache
                figures.append(figure)
                seconds = result.session["seconds"] | {"load_s": result.session["load_s"]}
                parts.append(seconds)
                decisions = result.summary["n_decisions"]
        wall, cpu, peak = zip(*figures, strict=True)
        cells = [f"{sorted(p[key] for p in parts)[len(parts) // 2]:.2f}" for key in PARTS]
        cpu_s = sorted(cpu)[len(cpu) // 2]
        table_row(name, f"{decisions:,}", spread(list(wall)), f"{cpu_s:.2f}", f"{max(peak):.0f}", *cells)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
