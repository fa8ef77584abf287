"""Traces and recorded runs of the published Chronus."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfreplay.systems.elasticflow.published.program import TraceJob


def recorded_runs(shared: Path) -> Any:
    """The recorded runs by name, each with ``meta`` and ``per_job`` rows [id, end, GPUs, stops, starts, met]."""
    with gzip.open(shared / "golden/elasticflow/chronus.json.gz", "rt") as file:
        return json.load(file)["runs"]


def trace_jobs(shared: Path, name: str, gpu_type: str) -> list[TraceJob]:
    """The jobs of a trace. Flags of best-effort jobs are lost, as in the published converter."""
    folder = shared / "data/elasticflow"
    tables = {each.stem: _rates(each) for each in (folder / f"throughputs_{gpu_type}").glob("*.csv")}
    with (folder / f"traces/{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [_job(k, row, tables) for k, row in enumerate(rows)]


def trace_ids(shared: Path, name: str) -> list[str]:
    """The job ids of a trace, in the order of the file."""
    with (shared / f"data/elasticflow/traces/{name}.csv").open() as file:
        return [row["job_id"] for row in csv.DictReader(file)]


def _job(index: int, row: Mapping[str, str], tables: Mapping[str, Mapping[str, dict[int, float]]]) -> TraceJob:
    rates = tables[row["model_name"]][row["batch_size"]]
    return TraceJob(
        index=index,
        submit_s=int(row.get("submit_time") or row["submission_time"]),
        deadline_s=int(row.get("ddl") or row["deadline"]),
        gpus=int(row["num_gpu"]),
        duration_s=int(row["duration"]),
        iterations=int(row.get("iteration") or row["num_iteration"]),
        rates=rates,
        most_gpus=max(rates),
    )


def _rates(path: Path) -> dict[str, dict[int, float]]:
    """Iterations per second by batch size and number of GPUs; holes of the table are left out."""
    with path.open() as file:
        return {row.pop("global_batch_size"): _numbers(row) for row in csv.DictReader(file)}


def _numbers(row: Mapping[str, str]) -> dict[int, float]:
    rates = {int(gpus): float(rate or 0) for gpus, rate in row.items()}
    return {gpus: rate for gpus, rate in sorted(rates.items()) if rate > 0 and not math.isnan(rate)}
