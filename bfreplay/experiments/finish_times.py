"""``finish``: when all jobs are done on the idle nodes of a log, and on dedicated nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.week import choose_zone
from bfreplay.datasets.times import iso_utc, microseconds_of
from bfreplay.errors import InputError
from bfreplay.experiments import option_checks
from bfreplay.experiments.declared_options import FILE_OPTIONS, OPTIONS, DeclaredOptions
from bfreplay.experiments.finish_text import answer_of, cautions, notes
from bfreplay.experiments.prepared_run import load_jobs_of, load_log, max_parallel_of
from bfreplay.experiments.resumable_folder import complete_sweep, resumable_folder, scheduler_needs
from bfreplay.experiments.run_comparison.confidence import START, mean_difference
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.study_options import N_STARTS, Bootstrap, FinishOptions
from bfreplay.experiments.sweep import SweepProgress, SweepResult
from bfreplay.options import checked_keywords, option_name
from bfreplay.outputs import write_whole
from bfreplay.result_folders import finish as saved
from bfreplay.result_folders.records import FINISH
from bfreplay.result_folders.tuning import InputFile
from bfreplay.result_folders.writing import record_json
from bfreplay.runs.censored_times import censored_quantiles
from bfreplay.versions import versions
from bfreplay.wording import count, duration
from bfreplay.workload import ElasticJob, JobSet, JobSource

if TYPE_CHECKING:
    from bfreplay.experiments.keywords import FinishKeywords

Times = Mapping[int, float | None]
"""Seconds by number of dedicated nodes; ``None`` where the jobs never end."""


def smallest_cluster(
    limit_s: float, known_times: Times, most_nodes: int, times_on: Callable[[Sequence[int]], Times], *, at_once: int = 1
) -> int | None:
    """Return a number of nodes on which all is done within ``limit_s``, while on one node fewer it is not.

    This is the smallest such number if more nodes never take longer. Otherwise it is one of several, and the times on
    it and on one node fewer are the evidence.

    Parameters
    ----------
    limit_s
        Seconds.
    known_times
        Times known before; they narrow the search.
    most_nodes
        Largest number to try.
    times_on
        Returns the times on some numbers of nodes.
    at_once
        Numbers tried in one call, which cut the range in equal parts.

    Returns
    -------
    int or None
        ``None`` if it takes longer on all numbers that were tried.
    """

    def is_enough(seconds: float | None) -> bool:
        return seconds is not None and seconds <= limit_s

    enough = min((n_nodes for n_nodes, seconds in known_times.items() if is_enough(seconds)), default=None)
    if enough is None:
        if not is_enough(times_on([most_nodes])[most_nodes]):
            return None
        enough = most_nodes
    too_few = max(
        (n_nodes for n_nodes, seconds in known_times.items() if n_nodes < enough and not is_enough(seconds)), default=0
    )
    while enough - too_few > 1:
        between = np.linspace(too_few, enough, min(at_once, enough - too_few - 1) + 2).round().astype(int).tolist()
        new_times = times_on(between[1:-1])
        for n_nodes in between[1:-1]:
            if is_enough(new_times[n_nodes]):
                enough = n_nodes
                break
            too_few = n_nodes
    return enough


_SECOND_US = 1_000_000


def stratified_starts(first_us: int, last_us: int, n_starts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return ``n_starts`` times, whole seconds, ascending: one uniformly random in each of ``n_starts`` equal strata.

    Parameters
    ----------
    first_us, last_us
        Earliest and latest start. If fewer than ``n_starts`` whole seconds lie there, each of them is a start.
    n_starts
        Number of starts.
    rng
        Source of randomness.
    """
    first, last = -(-first_us // _SECOND_US), last_us // _SECOND_US
    if last < first:
        return np.array([first_us], np.int64)
    n_starts = min(n_starts, last - first + 1)
    edges = np.linspace(first, last + 1, n_starts + 1)
    start_s = np.floor(edges[:-1] + rng.random(n_starts) * np.diff(edges)).astype(np.int64)
    return np.minimum(start_s, last) * _SECOND_US


PICTURES = ("finish.png", "finish.svg")
"""Pictures that the command draws in its folder."""

_AT_ONCE = 4
"""Numbers of dedicated nodes tried at once; the same on every machine, as the answer may depend on it."""

_OF_ENDS = ("cluster", "measure", "unlimited_work", "until_done", "semantics")
FIXED_OPTIONS = (*_OF_ENDS, "efficiency", "bound", "fairness", "ideal", "batch_jobs", "record_nodes")
"""Options of a run that ``finish`` sets."""
_QUARTILES = (0.25, 0.5, 0.75)
_ANY_NODE = "node"


@checked_keywords(DeclaredOptions, without=FIXED_OPTIONS)
def finish(
    events: NodeEvents | str | PathLike[str],
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str],
    *,
    against: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str] | None = None,
    dedicated: int | None = None,
    starts: int = N_STARTS,
    seed: int = 0,
    tz: str | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    **options: Unpack[FinishKeywords],
) -> saved.Finish:
    """Return when all jobs are done: on the idle nodes of a log from many starts, and on dedicated nodes.

    Parameters
    ----------
    events, jobs
        Objects or files, as ``RunOptions`` takes them. Submit times must count from the start of the window.
    against
        Other jobs, replayed from the same starts: the paired difference says which are done sooner.
    dedicated
        Number of dedicated nodes to compare with.
    starts, seed
        Number of starts, one at random in each of as many equal parts of the log; and the seed of that.
    tz
        IANA name of the time zone of weekdays and hours; by default that of the log's source if known, else UTC.
    out
        Folder for the record and the runs; the same call again resumes it. ``None``: a temporary folder.
    processes, scheduler, progress, on_wait
        As for ``sweep``.
    **options
        Other fields of ``RunOptions``, for the runs on the log and on dedicated nodes alike:

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        An input, an option or the folder cannot be used; the log has several node types, the jobs have calendar times,
        or they cannot be done within the log.
    BfreplayError
        A run failed.
    """
    own_options = FinishOptions(dedicated=dedicated, starts=starts, seed=seed)
    scheduler_needs(out, scheduler)
    other_options: dict[str, Any] = {**options}
    base = RunOptions(events=events, jobs=jobs, until_done=True, efficiency=False, bound=False, **other_options)
    log, workload = load_log(base), load_jobs_of(base)
    against = None if against is None else option_checks.jobs("against", against)
    other = None if against is None else load_jobs_of(replace(base, jobs=against))
    _check_inputs(log, workload, other)
    zone = choose_zone(tz, log.metadata)
    base = replace(base, max_parallel=max_parallel_of(base, log, workload))
    make_runs = partial(complete_sweep, processes=processes, scheduler=scheduler, progress=progress, on_wait=on_wait)
    with resumable_folder(out, FINISH, stale=PICTURES) as folder:
        node_type = log.node_types.names[0] if log.node_types.has_type_names else _ANY_NODE
        clusters = _Clusters(base, node_type, dedicated, partial(make_runs, folder=folder / "dedicated"))
        most_nodes = _most_nodes(base, log, workload)
        fastest_s = clusters.times([most_nodes, *([] if dedicated is None else [dedicated])])[most_nodes]
        begins = stratified_starts(
            log.window_start_us,
            _latest_start(log, fastest_s, most_nodes),
            own_options.starts,
            np.random.default_rng(own_options.seed),
        )
        on_log = [replace(base, window=(iso_utc(begin), iso_utc(log.window_end_us))) for begin in begins.tolist()]
        sweep_result = make_runs(on_log, folder=folder / "starts")
        starts_on_log = _starts(sweep_result, begins.tolist(), log.window_end_us)
        quantiles = _quantiles(starts_on_log)
        worth = _worth(quantiles, clusters, most_nodes)
        record = saved.FinishRecord(
            schema_version=FINISH.schema_version,
            versions=versions(),
            config=saved.FinishConfig(
                options={
                    name: option_value
                    for name, option_value in base.to_json().items()
                    if name not in FILE_OPTIONS and name not in map(option_name, FIXED_OPTIONS)
                },
                **asdict(own_options),
                time_zone=None if zone is None else zone[0],
            ),
            inputs=saved.FinishInputs(
                events=[InputFile(name=source_file.name, sha256=source_file.sha256) for source_file in log.sources],
                window_us=(log.window_start_us, log.window_end_us),
                n_nodes=len(log.nodes),
                jobs=[InputFile(name=name, sha256=digest) for name, digest in workload.sources],
                is_search=not isinstance(workload, JobSet),
            ),
            starts=starts_on_log,
            quantiles=quantiles,
            dedicated=[
                saved.Dedicated(nodes=n_nodes, duration_s=seconds)
                for n_nodes, seconds in sorted(clusters.known.items())
            ],
            worth=worth,
            answer="",
            warnings=[],
            notes=[],
        )
        all_warnings = [*sweep_result.warnings, *clusters.warnings]
        if against is not None and other is not None:
            other_sweep = make_runs([replace(run, jobs=against) for run in on_log], folder=folder / "against")
            other_starts = _starts(other_sweep, begins.tolist(), log.window_end_us)
            record = msgspec.structs.replace(record, against=_against(other, other_starts, record))
            all_warnings += other_sweep.warnings
        record = msgspec.structs.replace(
            record,
            answer=answer_of(record),
            warnings=list(dict.fromkeys([*all_warnings, *cautions(record)])),
            notes=notes(record, None if zone is None else zone[2]),
        )
        write_whole(folder / FINISH.record_file, record_json(record, "the finish"))
    return saved.Finish(record, None if out is None else folder)


@dataclass(slots=True)
class _Clusters:
    """Runs on dedicated nodes, each made once; ``known`` has their times by number of nodes.

    ``warnings`` has those of the number that was ``requested``: others are tried to find an answer.
    """

    base: RunOptions
    node_type: str
    requested: int | None
    make_runs: Callable[[Sequence[RunOptions]], SweepResult]
    known: dict[int, float | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def times(self, numbers: Sequence[int]) -> dict[int, float | None]:
        """Return the seconds until all is done by number of nodes; ``None`` where the jobs never end."""
        all_numbers = list(dict.fromkeys([*self.known, *numbers]))
        of_log = {
            name: declaration.default for name, declaration in OPTIONS.items() if declaration.not_on_cluster is not None
        }
        sweep_result = self.make_runs(
            [replace(self.base, **of_log, events=None, cluster=f"{self.node_type}={number}") for number in all_numbers]
        )
        columns = (sweep_result.results[name].to_pylist() for name in ("last_finish", "warnings"))
        for n_nodes, last_finish, warnings in zip(all_numbers, *columns, strict=True):
            self.known[n_nodes] = None if last_finish is None else microseconds_of(last_finish) / 1e6
            if n_nodes == self.requested:
                self.warnings = warnings or []
        return self.known


def _check_inputs(log: NodeEvents, *workloads: JobSet | JobSource | None) -> None:
    if any(isinstance(workload, JobSet) and not workload.submit_is_relative for workload in workloads):
        raise InputError(
            "the jobs have calendar times, so they cannot start at another time",
            column="submit_time",
            expected="times after the start",
            fix="replace the column submit_time by submit_after_s, in seconds; in Python JobSet(jobs, "
            "submit_is_relative=True) with submit_us after the start",
        )
    if len(log.node_types.names) > 1:
        raise InputError(
            "the log has nodes of several types: which are dedicated?",
            value=", ".join(log.node_types.names),
            expected="nodes of one type",
            fix="make a log of the nodes of one type",
        )


def _most_nodes(base_options: RunOptions, log: NodeEvents, workload: JobSet | JobSource) -> int:
    """Return the largest number of dedicated nodes that the jobs could use, within the number of nodes of the log."""
    if not isinstance(workload, JobSet):  # jobs to come are unknown
        return len(log.nodes)
    assert base_options.max_parallel is not None
    return min(len(log.nodes), base_options.max_parallel * max(job.max_nodes for job in workload))


def _latest_start(log: NodeEvents, fastest_s: float | None, most_nodes: int) -> int:
    """Return the latest start from which the jobs could be done before the log ends."""
    nodes = count(most_nodes, "dedicated node")
    if fastest_s is None:
        raise InputError(
            f"the jobs are never all done, even on {nodes}",
            value=nodes,
            expected="jobs that fit the nodes, with work that ends",
            fix=f"see which job it is with 'bfreplay replay --cluster {_ANY_NODE}={most_nodes} --jobs JOBS'",
        )
    latest_us = log.window_end_us - round(fastest_s * 1e6)
    if latest_us < log.window_start_us:
        length = duration((log.window_end_us - log.window_start_us) / 1e6)
        problem, expected = f"the log is too short: even on {nodes} the jobs take {duration(fastest_s)}", "a longer log"
        raise InputError(problem, value=length, expected=expected, fix="give a log several times as long, or less work")
    return latest_us


def _starts(sweep_result: SweepResult, begins: list[int], end_us: int) -> list[saved.Start]:
    columns = (sweep_result.results[column_name].to_pylist() for column_name in ("id", "last_finish"))
    return [
        saved.Start(
            time=iso_utc(start_us),
            time_us=start_us,
            is_done=time is not None,
            run=run_id,
            duration_s=((end_us if time is None else microseconds_of(time)) - start_us) / 1e6,
        )
        for start_us, run_id, time in zip(begins, *columns, strict=True)
    ]


def _against(jobs: JobSet | JobSource, starts: list[saved.Start], record: saved.FinishRecord) -> saved.Against:
    """Compare the runs of other jobs with those of the first, start by start."""
    quantiles = _quantiles(starts)
    pairs = [(one, two) for one, two in zip(record.starts, starts, strict=True) if one.is_done or two.is_done]
    later_s, later = np.array([two.duration_s - one.duration_s for one, two in pairs]), None
    if pairs:
        # a start sees the same nodes as those that follow while it lasts
        interval_s = (starts[-1].time_us - starts[0].time_us) / 1e6 / max(1, len(starts) - 1)
        lasts_s = max(record.quantiles.median_or_bound_s, quantiles.median_or_bound_s)
        n_overlapping = math.ceil(lasts_s / interval_s) if interval_s else 1
        later, _ = mean_difference(later_s, Bootstrap(seed=record.config.seed), START, n_overlapping)
    files = [InputFile(name=name, sha256=digest) for name, digest in jobs.sources]
    return saved.Against(jobs=files, starts=starts, quantiles=quantiles, later_s=later)


def _quantiles(starts: list[saved.Start]) -> saved.Quantiles:
    seconds = np.array([start.duration_s for start in starts])
    quarter_s, median_s, three_quarters_s = censored_quantiles(
        seconds, np.array([start.is_done for start in starts]), _QUARTILES
    )
    return saved.Quantiles(
        quarter_s=quarter_s, median_s=median_s, three_quarters_s=three_quarters_s, observed_s=float(seconds.max())
    )


def _worth(quantiles: saved.Quantiles, clusters: _Clusters, most_nodes: int) -> saved.Worth:
    limit_s = quantiles.observed_s if quantiles.median_s is None else quantiles.median_s
    nodes = smallest_cluster(limit_s, clusters.known, most_nodes, clusters.times, at_once=_AT_ONCE)
    if nodes is None:
        return saved.Worth(meaning=saved.MORE, nodes=max(clusters.known))
    return saved.Worth(meaning=saved.AT_MOST if quantiles.median_s is None else saved.EXACT, nodes=nodes)
