"""``bfreplay tune`` on three real logs with the published ImageNet jobs: what it recommends, and what that is worth.

Run it: ``python benchmarks/bench_tuning.py [--pictures FOLDER] [--logs Summit,pozidriv,CEA-Curie]``. Pozidriv and
CEA-Curie are ingested from the shared data into a temporary folder; of CEA-Curie five days are taken.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from measure import SHARED, SUMMIT, heading, table_head, table_row

from bfreplay.experiments.tuning.tuner import tune
from bfreplay.experiments.tuning.tuning_text import render

T_FWD = (10, 30, 60, 120, 300, 600, 1200, "auto")
MAX_PARALLEL = (10, 35, 70)
LOGS = {
    "Summit": (None, SUMMIT / "summit-2021-02-node-events.parquet", None),
    "pozidriv": ("slurm", SHARED / "data" / "logs" / "xdmod-pozidriv-sacct.psv.gz", None),
    "CEA-Curie": ("swf", SHARED / "data" / "logs" / "CEA-Curie-2011-2.1-cln.swf.gz", ("2012-06-04", "2012-06-09")),
}


def main() -> None:
    """Print a row for each log, then the whole text of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="Folder for tuning-LOG.png.")
    parser.add_argument("--logs", default=",".join(LOGS), help="Some of them, with commas between.")
    given = parser.parse_args()
    print(heading("Tuning"))
    table_head(
        "log",
        "recommended",
        "within 0.5 % of the best fixed",
        "of the bound, validated",
        "regret of tuning",
        "best there",
        "runs",
        "s",
    )
    texts = []
    for log in given.logs.split(","):
        with tempfile.TemporaryDirectory(prefix="bfreplay-bench-tuning-") as folder:
            texts.append(f"### {log}\n\n{_tuned(log, Path(folder), given.pictures)}")
    print("\n" + "\n\n".join(texts))


def _tuned(log: str, folder: Path, pictures: Path | None) -> str:
    reader, events, window = LOGS[log]
    if reader is not None:
        made = folder / "events.parquet"
        command = [sys.executable, "-m", "bfreplay.cli", "ingest", reader, str(events), "-o", str(made), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        events = made
    begun = perf_counter()
    found = tune(
        events,
        SUMMIT / "ImageNet-imgps-Jbnd-1001J.pkl",
        curves=SUMMIT / "ImageNet-imgps-JNPs-1001J.pkl",
        window=window,
        t_fwd=T_FWD,
        max_parallel=MAX_PARALLEL,
        processes=1,
    )
    seconds = perf_counter() - begun
    t_fwd, number = found.recommended
    column = next(each for each in found.record["columns"] if each["max_parallel"] == number)
    validation = found.record["validation"]
    best = validation["best_t_fwd"]
    table_row(
        log,
        f"{_seconds(t_fwd)}, {number} jobs",
        " to ".join(f"{each:g}" for each in column["flat"][0]) + " s",
        f"{100 * validation['share_of_bound']:.2f} %",
        f"{100 * validation['loss']:.2f} %",
        _seconds(best),
        str(2 * len(T_FWD) * len(MAX_PARALLEL)),
        f"{seconds:.0f}",
    )
    if pictures is not None:
        from bfreplay.report.figures.picture_files import save_picture
        from bfreplay.report.figures.tuning import TUNING

        save_picture(TUNING.draw_from(found.record), pictures / f"tuning-{log.lower()}.png", overwrite=True)
    return f"```text\n{render(found)}\n```"


def _seconds(t_fwd: float | str) -> str:
    return t_fwd if isinstance(t_fwd, str) else f"{t_fwd:g} s"


if __name__ == "__main__":
    main()
