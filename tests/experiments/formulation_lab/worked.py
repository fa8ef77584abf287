"""Three decisions and three entrants, small enough to work out by hand."""

from __future__ import annotations

from dataclasses import asdict

from bfreplay.experiments import LabSettings
from bfreplay.experiments.formulation_lab.trials import Answer, Outcome
from bfreplay.result_folders.lab import LabConfig, LabRecord, Sampling
from bfreplay.result_folders.records import LAB

PAIRS = ["exact", "a on x", "b on x"]


def answer(decision: int, pair: str, total_s: float = 0.0, outcome: Outcome = Outcome.PROVEN, **changes) -> Answer:
    fields = {
        "decision": decision,
        "pair": pair,
        "formulation": pair.partition(" on ")[0],
        "backend": pair.partition(" on ")[2] or "exact",
        "outcome": outcome,
        "process_status": "ok",
        "solver_status": "optimal",
        "quality": "proven",
        "objective": 10.0,
        "bound": 10.0,
        "gap": 0.0,
        "posed_optimum": 10.0,
        "optimum": 10.0,
        "relative_loss": 0.0,
        "build_s": total_s / 4,
        "solve_s": total_s * 3 / 4,
        "total_s": total_s,
    }
    return Answer(**{**fields, **changes})


ANSWERS = [
    answer(0, "exact", 0.001),
    answer(0, "a on x", 0.002, columns=10, rows=4, entries=20),
    answer(0, "b on x", 0.008, columns=30, rows=6, entries=90),
    answer(1, "b on x", 0.004, columns=50, rows=8, entries=110),
    answer(1, "exact", 0.001),
    answer(1, "a on x", 0.012, columns=20, rows=6, entries=40),
    answer(2, "exact", 0.002),
    answer(2, "a on x", 0.050, Outcome.FEASIBLE, columns=40, rows=8, entries=60, gap=0.5, relative_loss=0.25),
    answer(2, "b on x", 0.030, Outcome.CRASHED, gap=None, relative_loss=None, objective=None, worker_lost=True),
]


def lab_record(taken: int) -> LabRecord:
    """A record of so many decisions, with nothing else in it."""
    config = LabConfig(
        **asdict(LabSettings()), formulations=[], backends=[], window_start_us=0, window_end_us=1_000_000
    )
    return LabRecord(
        schema_version=LAB.schema_version,
        versions={},
        config=config,
        inputs={},
        warnings=[],
        sampling=Sampling(asked=taken, available=taken, taken=taken, strata=[]),
        pairs=[],
        backends=[],
        left_out=[],
        summary=[],
        winner=None,
        session={},
    )
