"""``tune``: recommends a T_fwd and a number of jobs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.observe import pool_of
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.declared_options import DeclaredOptions
from bfreplay.experiments.option_checks import AUTO
from bfreplay.experiments.prepared_run import known_jobs, load_jobs_of, load_log
from bfreplay.experiments.resumable_folder import complete_sweep, resumable_folder, scheduler_needs
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.study_options import TOLERANCE, TRAIN, TuningOptions
from bfreplay.experiments.sweep import SweepProgress, SweepResult
from bfreplay.experiments.tuning.grid import ForwardTime, Grid, LogPart, Surface, grid_of, split, surface_of
from bfreplay.experiments.tuning.recommendation import FLAT, cautions, recommend, validate
from bfreplay.experiments.tuning.trade_off import trade_off_cautions, trade_off_sentence, weigh
from bfreplay.experiments.tuning.tuning_text import answer_of
from bfreplay.options import checked_keywords
from bfreplay.outputs import write_whole
from bfreplay.result_folders.records import TUNING
from bfreplay.result_folders.tuning import (
    PARTS,
    GridValues,
    InputFile,
    RecommendedPair,
    TunedPart,
    Tuning,
    TuningConfig,
    TuningInputs,
    TuningRecord,
)
from bfreplay.result_folders.writing import record_json
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, JobSet, JobSource

if TYPE_CHECKING:
    from bfreplay.experiments.keywords import TuneKeywords

SWEEP_FOLDER, TRADE_OFF_FOLDER = "sweep", "trade-off"
"""Folders of the runs in the folder of a tuning: of the grid, and with nodes left alone."""
PICTURES = ("tuning.png", "tuning.svg")
"""Pictures that the command draws there."""

_OTHER_JOBS = (
    "Unlimited work: N at once are the first N jobs, so a larger number also means other jobs. Use --own-work to "
    "compare numbers of jobs at once on the same work."
)
_GRID_OPTIONS = ("t-fwd", "max-parallel", "window", "events", "jobs", "curves")


@checked_keywords(DeclaredOptions, without=("cluster",))
def tune(
    events: NodeEvents | str | PathLike[str],
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str],
    *,
    t_fwd: Sequence[ForwardTime] | None = None,
    max_parallel: Sequence[int] | None = None,
    train: float = TRAIN,
    tolerance: float = TOLERANCE,
    reserve: Sequence[int] | None = None,
    min_age: Sequence[float] | None = None,
    unlimited_work: bool = True,
    out: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    **options: Unpack[TuneKeywords],
) -> Tuning:
    """Recommend a T_fwd and a number of jobs at once, tuned on the first part of a log and validated on the rest.

    Parameters
    ----------
    events, jobs
        Objects or files, as ``RunOptions`` takes them.
    t_fwd, max_parallel
        Values to try, every combination of them; by default 10 s to 20 min and ``"auto"``, and 5 to 70 jobs, fewer
        for a log of more than 30,000 pool events.
    train
        Share of the log to tune on, above 0 and below 1.
    tolerance
        Relative distance from the best within which the smallest ``max_parallel`` is recommended.
    reserve, min_age
        Idle nodes to leave alone, and seconds for which a node has to be idle, to try in every combination with the
        recommended pair: training against delay to batch jobs. By default neither.
    unlimited_work
        Jobs never end, and samples are the measure. Otherwise their own work counts, and if every run does all of it,
        the finish time.
    out
        Folder for the record and the runs; the same call again resumes it. ``None``: a temporary folder.
    processes, scheduler, progress, on_wait
        As for ``sweep``.
    **options
        Other fields of ``RunOptions``:

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        An input, a value of the grid or the folder cannot be used; or no job processed anything.
    BfreplayError
        A run failed.
    """
    other_options: dict[str, Any] = {"efficiency": False, "bound": True, **options}
    base = RunOptions(events=events, jobs=jobs, unlimited_work=unlimited_work, **other_options)
    own_options = TuningOptions(train=train, tolerance=tolerance)
    scheduler_needs(out, scheduler)
    log, job_set = load_log(base), load_jobs_of(base)
    if unlimited_work:
        known_jobs(job_set, "add --own-work (Python: unlimited_work=False)")
    parts = split(log.window_start_us, log.window_end_us, own_options.train)
    n_jobs = len(job_set) if isinstance(job_set, JobSet) else None
    pool_us = pool_of(log).time_us
    shortest_s = min(part.duration_s for part in parts)
    grid = grid_of(t_fwd, max_parallel, n_jobs=n_jobs, shortest_s=shortest_s, n_pool_events=pool_us.size - 1)
    runs = [
        replace(base, window=part.window, t_fwd=seconds, max_parallel=n_at_once)
        for part in parts
        for seconds in grid.t_fwd
        for n_at_once in grid.max_parallel
    ]
    with resumable_folder(out, TUNING, stale=PICTURES) as folder:
        make_runs = partial(
            complete_sweep,
            processes=processes,
            scheduler=scheduler,
            progress=progress,
            on_wait=on_wait,
            expected_run_s=None if progress is None else _expected_run_s(base, grid, pool_us),
        )
        sweep_result = make_runs(runs, folder / SWEEP_FOLDER)
        surfaces = _surfaces(sweep_result, grid, parts, unlimited_work=unlimited_work)
        recommendation = recommend(grid, surfaces[0].share, surfaces[0].rescales, tolerance=tolerance)
        validation = validate(grid, recommendation, surfaces[1])
        trade_off = None
        if reserve is not None or min_age is not None:
            trade_off = weigh(
                base, parts, recommendation, reserve, min_age, partial(make_runs, folder=folder / TRADE_OFF_FOLDER)
            )
        record = TuningRecord(
            schema_version=TUNING.schema_version,
            versions=versions(),
            config=TuningConfig(
                options={name: value for name, value in base.to_json().items() if name not in _GRID_OPTIONS},
                **asdict(own_options),
                flat=FLAT,
            ),
            inputs=TuningInputs(
                events=[InputFile(name=source.name, sha256=source.sha256) for source in log.sources],
                jobs=[InputFile(name=name, sha256=digest) for name, digest in job_set.sources],
                n_jobs=n_jobs,
            ),
            grid=GridValues(t_fwd=list(grid.t_fwd), max_parallel=list(grid.max_parallel)),
            recommended=RecommendedPair(t_fwd=recommendation.t_fwd, max_parallel=recommendation.max_parallel),
            columns=list(recommendation.columns),
            parts={name: _part(part, surface) for name, part, surface in zip(PARTS, parts, surfaces, strict=True)},
            validation=validation,
            answer=[
                *answer_of(grid, recommendation, validation, surfaces),
                *([] if trade_off is None else [trade_off_sentence(trade_off)]),
            ],
            warnings=[
                *sweep_result.warnings,
                *cautions(grid, recommendation, parts, surfaces, tolerance),
                *([] if trade_off is None else trade_off_cautions(trade_off)),
            ],
            trade_off=trade_off,
            notes=[*grid.notes, *([_OTHER_JOBS] if unlimited_work and len(grid.max_parallel) > 1 else [])],
        )
        write_whole(folder / TUNING.record_file, record_json(record, "the tuning"))
    return Tuning(record, None if out is None else folder)


_TIMED_S, _TIMED_EVENTS = 0.3, 250


def _expected_run_s(base_options: RunOptions, grid: Grid, pool_us: NDArray[np.int64]) -> float | None:
    """Return the mean seconds of a run of the grid, from runs on the first pool events; ``None`` if these fail."""
    fixed_s = [value_s for value_s in grid.t_fwd if value_s != AUTO]
    seconds = 0.0
    middle = fixed_s[len(fixed_s) // 2] if fixed_s else AUTO
    for t_fwd, n_runs in ((middle, len(fixed_s)), (AUTO, len(grid.t_fwd) - len(fixed_s))):
        n_events, took_s, is_loaded = min(_TIMED_EVENTS, pool_us.size - 1), 0.0, False
        while n_runs:
            window = iso_utc(int(pool_us[0])), iso_utc(int(pool_us[n_events]) + 1)
            timed_run = replace(base_options, window=window, t_fwd=t_fwd, max_parallel=grid.max_parallel[-1])
            try:
                took_s = timed_run.run().session.seconds.total_s
            except BfreplayError:
                return None
            if is_loaded:  # the first run loads code
                if took_s >= _TIMED_S or n_events == pool_us.size - 1:
                    break
                n_events = min(8 * n_events, pool_us.size - 1)
            is_loaded = True
        seconds += n_runs * took_s / max(n_events, 1) * pool_us.size / len(PARTS)
    return seconds / len(grid.t_fwd)


def _surfaces(
    sweep_result: SweepResult, grid: Grid, parts: tuple[LogPart, LogPart], *, unlimited_work: bool
) -> tuple[Surface, Surface]:
    results = sweep_result.results
    size = results.num_rows // 2
    tuning_part, validation_part = (
        surface_of(results.slice(index * size, size), grid, unlimited_work=unlimited_work, start_us=log_part.start_us)
        for index, log_part in enumerate(parts)
    )
    if not tuning_part.share.any():
        raise InputError(
            "no job processed anything in the part of the log to tune on",
            value=" to ".join(parts[0].window),
            expected="idle nodes, and jobs that fit them",
            fix="give another --window, or look at the log with 'bfreplay describe'",
        )
    return tuning_part, validation_part


def _part(log_part: LogPart, surface: Surface) -> TunedPart:
    bound = surface.share_of_bound
    return TunedPart(
        window=log_part.window,
        window_us=(log_part.start_us, log_part.end_us),
        duration_s=log_part.duration_s,
        idle_nodes=surface.idle_nodes,
        n_pool_events=surface.n_pool_events,
        measure=surface.measure,
        value=surface.value.tolist(),
        share=surface.share.tolist(),
        rescales=surface.rescales.tolist(),
        share_of_bound=[[None if np.isnan(share) else share for share in row] for row in bound.tolist()],
    )
