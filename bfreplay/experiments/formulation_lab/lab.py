"""``compare_formulations``: formulations and back ends compared on decisions of a real replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import pyarrow as pa

from bfreplay.campaigns.workloads import workload_of
from bfreplay.datasets import NodeEvents, load_events
from bfreplay.experiments.formulation_lab.pairs import EXACT, PairPlan, plan_pairs
from bfreplay.experiments.formulation_lab.sampling import (
    DecisionSample,
    LabProgress,
    LabSettings,
    no_progress,
    sample_decisions,
)
from bfreplay.experiments.formulation_lab.summary import (
    ROWS,
    DecisionRow,
    performance_profile,
    summarise,
    time_by_size,
    winner,
)
from bfreplay.experiments.formulation_lab.trials import Answer, Optima, Trials
from bfreplay.milp.backends import version_of
from bfreplay.milp.formulations import Formulation
from bfreplay.policies import BFTrainerPolicy
from bfreplay.result_folders.lab import LabBackend, LabConfig, LabPair, LabRecord, SummaryRow
from bfreplay.result_folders.lab import LabResult as LabResult
from bfreplay.result_folders.records import LAB, JsonObject, table_of
from bfreplay.result_folders.writing import FAILURES, new_folder, write_result
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, JobSet, JobSource

KEPT_FAILURES = 5
"""Number of failures kept per pair and outcome in ``failures`` of the lab folder."""


def compare_formulations(
    events: NodeEvents | str | Path,
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | Path,
    settings: LabSettings | None = None,
    *,
    formulations: Sequence[str | Formulation] | None = None,
    backends: Sequence[str] | None = None,
    more_formulations: Sequence[str | Formulation] = (),
    more_backends: Sequence[str] = (),
    save_failures: str | Path | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    pictures: Callable[[Path], object] | None = None,
    progress: LabProgress | None = None,
    session: JsonObject | None = None,
) -> LabResult:
    """Solve decisions of a replay with every pair of a formulation and a back end, and with the exact solver.

    The replay has BFTrainer's policy with exact decisions, sampled by ``sampling.sample_decisions``. Every answer is
    checked against the exact optimum. Failures of solvers and formulations do not stop the comparison.

    Parameters
    ----------
    events, jobs
        As in ``replay_log``.
    settings
        Everything else that changes the result.
    formulations, backends
        Names, or ``package.module:Class``; a formulation may be an instance. ``None``: all registered ones that work
        here.
    more_formulations, more_backends
        Additional ones.
    save_failures
        Folder for the model (MPS) and the decision (JSON) of every rejected answer, in a folder per pair. By default
        ``failures`` in ``out``, with the first 5 per pair and outcome; nothing without ``out``.
    out
        Folder to write, made when the comparison is complete; by default nothing is written.
    overwrite
        Replace an existing lab folder.
    pictures
        Called with the complete but not yet renamed folder, to draw into it: ``bfreplay.report.draw_lab``.
    progress
        See ``sampling.LabProgress``.
    session
        More entries for the record's ``session``, such as the command line.

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        The log, the jobs, an option, a name or the output folder cannot be used.
    """
    settings, progress = settings or LabSettings(), progress or no_progress
    begin_s, begin_time = perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    plan = plan_pairs(
        formulations,
        backends,
        more_formulations=more_formulations,
        more_backends=more_backends,
        reformulate_sets=settings.reformulate_sets,
    )
    BFTrainerPolicy(settings.t_fwd_s)  # refuses a bad time before reading the inputs
    if not isinstance(events, NodeEvents):
        events = load_events(events)
    workload = workload_of(jobs)
    with new_folder(out, LAB, overwrite=overwrite) as folder:
        failures, most_failures = (None if save_failures is None else Path(save_failures)), None
        if failures is None and folder is not None:
            failures, most_failures = folder / FAILURES, KEPT_FAILURES
        with Trials(plan, settings, failures, most_failures) as trials:
            sample = sample_decisions(events, workload, settings, progress)
            sampled_s = perf_counter()
            trials.warm_up(progress)
            warm_s = perf_counter()
            answers, optima = trials.run(sample.decisions, progress)
            worker_starts = trials.worker_starts
        rows = summarise(answers, [EXACT, *(pair.name for pair in plan.pairs)], settings.time_limit_s)
        tables = _tables(sample, answers, optima, rows)
        solved_s = perf_counter()
        seconds = {"sample_s": sampled_s - begin_s, "warm_up_s": warm_s - sampled_s, "solve_s": solved_s - warm_s}
        measurements = {"started": begin_time, "seconds": seconds, "worker_starts": worker_starts, **(session or {})}
        record = write_result(folder, _record(plan, sample, rows, settings, measurements), tables, LAB, pictures)
    return LabResult(record, None if out is None else Path(out).resolve(), tables)


def _tables(
    sample: DecisionSample, answers: Sequence[Answer], optima: Sequence[Optima], summary: Sequence[SummaryRow]
) -> dict[str, pa.Table]:
    """Return the tables by name."""
    names = [summary_row.pair for summary_row in summary]
    sizes = {decision.index: (decision.problem.n_jobs, decision.problem.capacity) for decision in sample.decisions}
    decisions = [
        DecisionRow(
            index=sampled_decision.index,
            time=sampled_decision.time_us,
            n_idle=sampled_decision.problem.capacity,
            n_jobs=sampled_decision.problem.n_jobs,
            n_held=int(sampled_decision.problem.current.sum()),
            optimum=optima_of_decision.optimum,
            published_optimum=optima_of_decision.published_optimum,
            stratum=sampled_decision.stratum,
        )
        for sampled_decision, optima_of_decision in zip(sample.decisions, optima, strict=True)
    ]
    sorted_answers = sorted(answers, key=lambda answer: (answer.decision, names.index(answer.pair)))
    rows: dict[str, Sequence[object]] = {
        "decisions": decisions,
        "answers": sorted_answers,
        "summary": summary,
        "profile": performance_profile(answers, names),
        "time_by_size": time_by_size(answers, sizes, names),
    }
    return {name: table_of(rows[name], summary_row) for name, summary_row in ROWS.items()}


def _record(
    plan: PairPlan, sample: DecisionSample, rows: list[SummaryRow], settings: LabSettings, session: JsonObject
) -> LabRecord:
    config, inputs = sample.record.config, sample.record.inputs
    return LabRecord(
        schema_version=LAB.schema_version,
        versions=versions(),
        config=LabConfig(
            **asdict(settings),
            formulations=list(dict.fromkeys(pair.formulation.name for pair in plan.pairs)),
            backends=[backend.name for backend in plan.backends],
            window_start_us=config.window_start_us,
            window_end_us=config.window_end_us,
        ),
        inputs=inputs.to_json(),
        warnings=inputs.events.metadata.log_warnings.sentences(),
        sampling=sample.sampling,
        pairs=[
            LabPair(
                pair=pair.name,
                formulation=pair.formulation.name,
                backend=pair.backend.name,
                change_limited=bool(pair.formulation.formulation.change_limited),
            )
            for pair in plan.pairs
        ],
        backends=[
            LabBackend(
                backend=backend.name,
                location=backend.location,
                version=version_of(backend.backend),
                licence=backend.backend.capabilities.licence,
            )
            for backend in plan.backends
        ],
        left_out=list(plan.left_out),
        summary=rows,
        winner=winner(rows),
        session=session,
    )
