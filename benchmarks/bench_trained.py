"""Predicted against really trained: the minutes of a real Slurm, replayed from its workers' comings and goings.

Run it: ``python benchmarks/bench_trained.py``. The data are ../shared/data/real-slurm/trained. Rates, the pause of a
restart and the cost of a start are those of curves.json, which were measured in a run of their own; nothing is fitted.
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from measure import SHARED, heading, table_head, table_row

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents
from bfreplay.policies import Policy
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet, Restart, Saves

sys.path.append(str(Path(__file__).parents[1] / "examples" / "real-slurm"))

from predictions import AsTaken, n_decisions_met, presence_log

DATA = SHARED / "data" / "real-slurm" / "trained"
T_FWD_S = 60
MOST_NODES = 8
SETTLE_S = 0.3
LONGEST_RESTART_S = 10.0
"""A longer time between a stop and the next start is a time without nodes."""

SOURCES = {
    "by the workers' own times, gone when their connection closed": "closed",
    "by the workers' own times, gone at SIGTERM": "leaving",
    "as the coordinator handed them to its session": "rows",
}


class Trained(NamedTuple):
    """What the run left."""

    log: list[dict[str, Any]]
    rows: list[list[Any]]
    curves: dict[str, dict[str, Any]]
    window_us: tuple[int, int]

    @property
    def samples(self) -> dict[str, int]:
        """Samples of each job at the end."""
        samples: dict[str, int] = next(entry for entry in self.log if entry["ev"] == "end")["samples"]
        return samples

    @property
    def decisions(self) -> list[tuple[int, dict[str, int]]]:
        """When each decision was carried out, in microseconds, and its counts."""
        taken = (entry for entry in self.log if entry["ev"] == "decision")
        return [(round(entry["t"] * 1e6), dict(zip(self.curves, entry["counts"], strict=True))) for entry in taken]

    @property
    def pause_s(self) -> float:
        """Mean pause of a restart."""
        return statistics.mean(curve["up"] for curve in self.curves.values())


@dataclass(frozen=True)
class Model:
    """What a prediction is made with."""

    words: str
    restart: Restart = Restart.PAUSE
    settle_s: float = 0.0
    starts_cost: bool = True
    loses_steps: bool = False
    price: bool = False  # decisions are priced as those of the run
    as_taken: bool = False  # the decisions of the run
    survivors_wait: bool = False  # a job that was hit restarts at the decision


MODELS = (
    Model("charge, starts are free", Restart.CHARGE, starts_cost=False),
    Model("charge", Restart.CHARGE),
    Model(f"charge, settle {SETTLE_S} s", Restart.CHARGE, SETTLE_S),
    Model("pause"),
    Model(f"pause, settle {SETTLE_S} s", settle_s=SETTLE_S),
    Model(f"pause, settle {SETTLE_S} s, steps in flight lost", settle_s=SETTLE_S, loses_steps=True),
    Model("pause, decisions priced as in the run", price=True),
    Model("pause, decisions priced as in the run, steps in flight lost", price=True, loses_steps=True),
    Model(f"pause, settle {SETTLE_S} s, decisions priced as in the run", settle_s=SETTLE_S, price=True),
    Model("pause, decisions as they were taken", as_taken=True),
    Model(
        "pause, decisions as they were taken, steps in flight lost, hit jobs wait for the decision",
        as_taken=True,
        loses_steps=True,
        survivors_wait=True,
    ),
)


def load() -> Trained:
    """Read the run."""
    with gzip.open(DATA / "log.jsonl.gz", "rt", encoding="utf-8") as lines:
        log = sorted((json.loads(line) for line in lines), key=lambda entry: float(entry["t"]))
    others = (json.loads((DATA / f"{name}.json").read_text()) for name in ("rows", "curves", "window"))
    return Trained(log, *others)


def events_of(trained: Trained, source: str) -> NodeEvents:
    """Return the nodes as their workers came and went."""
    rows = [(time_us, node, state == "idle") for time_us, node, state in trained.rows]
    if source != "rows":
        entries = [entry for entry in trained.log if entry["ev"] in ("join", source)]
        rows = [(round(entry["t"] * 1e6), entry["node"], entry["ev"] == "join") for entry in entries]
    start_us, end_us = trained.window_us
    rows = sorted(row for row in rows if start_us < row[0] < end_us)
    return presence_log(sorted({node for _, node, _ in rows}), rows, trained.window_us)


def jobs_of(trained: Trained, model: Model) -> JobSet:
    """Return the jobs with what their changes cost; a step in flight is at risk for as long as one takes."""
    jobs = []
    for name, measured in trained.curves.items():
        rates = [0.0, *(measured["curve"][str(n)] for n in range(1, MOST_NODES + 1))]
        samples = [entry["samples"] for entry in trained.log if entry.get("job") == name and "samples" in entry]
        step_s = math.gcd(*samples) / rates[1]
        jobs.append(
            ElasticJob(
                name,
                trained.window_us[0],
                1,
                MOST_NODES,
                measured["up"],
                measured["down"],
                math.inf,
                TabulatedCurve(range(MOST_NODES + 1), rates),
                start_cost_s=measured["up"] if model.starts_cost else 0.0,
                restart=model.restart,
                work_saved_every_s=step_s if model.loses_steps else 0.0,
                saves=Saves.ON_RESIZE if model.loses_steps else Saves.NEVER,
            )
        )
    return JobSet(jobs)


def predict(trained: Trained, source: str, model: Model) -> tuple[dict[str, float], str]:
    """Return the samples of each job, and how many decisions of the run were met."""
    policy: Policy | str = f"bftrainer(price_s={trained.pause_s:.4f})" if model.price else "bftrainer"
    if model.as_taken:
        restart_s = trained.pause_s if model.survivors_wait else 0.0
        policy = AsTaken(list(trained.curves), trained.decisions, restart_s)
    run = replay_log(
        events_of(trained, source),
        jobs_of(trained, model),
        policy,
        t_fwd=T_FWD_S,
        settle=model.settle_s,
        unlimited_work=True,
        efficiency=False,
        bound=False,
    )
    n_met = n_decisions_met(run, list(trained.curves), trained.decisions, round(model.settle_s * 1e6))
    samples = {row["job"]: row["done_samples"] for row in run.table("jobs").to_pylist()}
    return samples, f"{n_met} of {len(trained.decisions)}"


def restarts_s(trained: Trained) -> Iterator[float]:
    """Yield how long each job stood still, from its stop to its next step, where it had nodes for it."""
    since: dict[str, float] = {}
    for entry in trained.log:
        if entry["ev"] in ("lost", "stopped"):
            since.setdefault(entry["job"], entry["t"])
        elif entry["ev"] == "go" and entry["job"] in since:
            seconds = entry["t"] - since.pop(entry["job"])
            if seconds < LONGEST_RESTART_S:
                yield seconds


def main() -> None:
    """Print a table for each source of events, and what remains."""
    trained = load()
    total = sum(trained.samples.values())
    print(heading("Predicted against really trained: 321 s of a real Slurm"))
    print(f"Trained: {total:,} samples ({', '.join(f'{job} {n:,}' for job, n in trained.samples.items())}).\n")
    for words, source in SOURCES.items():
        print(f"Predicted / trained; comings and goings {words}:\n")
        table_head("model", "total", *trained.samples, "decisions of the run met")
        for model in MODELS:
            samples, n_met = predict(trained, source, model)
            shares = [samples[job] / trained.samples[job] for job in trained.samples]
            share = sum(samples.values()) / total
            table_row(model.words, *(f"{value:.3f}" for value in (share, *shares)), n_met)
        print()
    walls = sorted(entry["wall"] for entry in trained.log if entry["ev"] == "decision")
    stills = list(restarts_s(trained))
    print(f"Decisions: the longest (the first) {walls[-1]:.2f} s, the {len(walls) - 1} others {sum(walls[:-1]):.2f} s.")
    print(f"Restarts: {len(stills)}, median {statistics.median(stills):.2f} s; measured alone {trained.pause_s:.2f} s.")


if __name__ == "__main__":
    main()
