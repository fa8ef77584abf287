"""``list_runs``: the runs below a folder, with the options in which they differ and their headline metrics."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.run_comparison.pairing import log_name, options_of
from bfreplay.result_folders.reading import check_digest
from bfreplay.result_folders.records import FINISH, RULES, RUN, JsonObject
from bfreplay.runs.comparison_tables import option_text
from bfreplay.runs.headline_metrics import COLUMNS, column_heading, headline_texts, split_constants
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of, instant_words, window_words
from bfreplay.wording import aligned_lines, count, paragraphs

if TYPE_CHECKING:
    import pandas as pd

_FILES = {RUN.record_file, *RUN.more_documents}


@dataclass(frozen=True, slots=True, repr=False)
class ListedRun:
    """One run folder.

    Parameters
    ----------
    name
        Its path below the listed folder.
    folder
        Its path.
    run
        The run; ``None`` where the folder is damaged.
    error
        Reason for which the folder cannot be read, in one line; empty for a sound folder.
    """

    name: str
    folder: Path
    run: RunResult | None
    error: str = ""

    def __repr__(self) -> str:
        return f"<ListedRun: {self.name}{f', damaged: {self.error}' if self.error else ''}>"

    @property
    def start_time(self) -> str | None:
        """Start of the replay, ISO-8601; ``None`` for a damaged folder."""
        return None if self.run is None else self.run.session.started

    def to_json(self) -> JsonObject:
        """Return name, folder, time and error."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "made": self.start_time,
            "error": self.error or None,
        }


@dataclass(frozen=True, repr=False)
class RunList(Sequence[ListedRun]):
    """The runs below a folder, by name; damaged ones are included.

    Parameters
    ----------
    folder
        The folder that was searched.
    runs
        One entry per run folder.
    left_out
        Folders of ``bfreplay finish`` and ``compare rules`` below the folder, whose runs are not listed.
    """

    folder: Path
    runs: tuple[ListedRun, ...]
    left_out: tuple[str, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"<RunList: {count(len(self.runs), 'run')} in {self.folder}, {self.n_damaged:,} damaged>"

    @property
    def n_damaged(self) -> int:
        """Number of folders that cannot be read."""
        return sum(run.run is None for run in self.runs)

    @cached_property
    def readable(self) -> list[RunResult]:
        """Runs in folders that are not damaged."""
        return [run.run for run in self.runs if run.run is not None]

    @cached_property
    def options(self) -> dict[str, list[Any]]:
        """Log, jobs, window and options that differ, by name; one value for each of ``readable``.

        An option that one of two policies does not have is no difference.
        """
        runs = self.readable
        flat = [{**inputs, **options_of(run)} for inputs, run in zip(_inputs(runs), runs, strict=True)]
        names = dict.fromkeys(("log", "jobs", "policy.name"))
        names |= dict.fromkeys(sorted({name for options in flat for name in options}))
        return {name: [run_options.get(name) for run_options in flat] for name in names if _is_different(name, flat)}

    @cached_property
    def metrics(self) -> dict[str, list[Any]]:
        """Metrics of any run, by column; one value for each of ``readable``."""
        values_by_name = {name: [metric.of(run) for run in self.readable] for name, metric in COLUMNS.items()}
        return {name: values for name, values in values_by_name.items() if any(value is not None for value in values)}

    @cached_property
    def headline(self) -> dict[str, list[str]]:
        """Metrics for tables of many runs, as texts by column."""
        is_cluster = [cluster_of(run.record) is not None for run in self.readable]
        values = {column_name: self.metrics.get(column_name, [None] * len(is_cluster)) for column_name in COLUMNS}
        return headline_texts(values, log=not all(is_cluster), cluster=any(is_cluster))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per run: name, time, error, the options that differ, and the metrics of any run."""
        import pandas as pd

        return pd.DataFrame([listed_run.to_json() | options | metrics for listed_run, options, metrics in self.rows()])

    def to_json(self) -> list[JsonObject]:
        """Return plain data, one object per run."""
        return [
            {**listed_run.to_json(), "options": options, "metrics": metrics}
            for listed_run, options, metrics in self.rows()
        ]

    def rows(self) -> Iterator[tuple[ListedRun, JsonObject, JsonObject]]:
        """Yield each folder with its values of ``options`` and ``metrics``, empty for a damaged folder."""
        index = 0
        for run in self.runs:
            if run.run is None:
                yield run, {}, {}
            else:
                options, metrics = (
                    {name: columns[name][index] for name in columns} for columns in (self.options, self.metrics)
                )
                yield run, options, metrics
                index += 1


def list_runs(folder: str | Path) -> RunList:
    """Read every run folder in ``folder``, at any depth, for instance the runs of a sweep.

    Raises
    ------
    InputError
        The folder does not exist, or holds no run.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError("the folder does not exist", file=path)
    left_out: list[str] = []
    runs = tuple(_read_run(run_folder, path) for run_folder in _run_folders(path, left_out))
    if not runs:
        problem, expected = "the folder has no run in it", f"run folders, with {RUN.record_file}"
        fix = f"bfreplay runs {left_out[0]}" if left_out else f"give results of '{RUN.made_by}' or 'bfreplay sweep'"
        raise InputError(problem, file=path, expected=expected, fix=fix)
    return RunList(path, runs, tuple(left_out))


def render(runs: RunList, width: int | None = None) -> str:
    """Return the list as a table, the metrics with the same value in all runs, and the errors of damaged folders.

    With a ``width`` in characters, the table has the columns that fit; the others are named below it.
    """
    varying, constants = split_constants(runs.headline)
    options = {name: [*map(option_text, values)] for name, values in runs.options.items()}
    columns, hidden_names = _fit_columns(
        options, {column_heading(name): values for name, values in varying.items()}, runs, width
    )
    texts, titles = [*columns.values()], ["run", "made (UTC)", *columns]
    rows, index = [], 0
    for run in runs:
        if run.run is None:
            rows.append([run.name, "damaged", *[""] * len(texts)])
        else:
            rows.append([run.name, creation_time_text(run), *(column[index] for column in texts)])
            index += 1
    table = aligned_lines([titles, *rows], range(2 + len(columns.keys() & options.keys())))
    errors = [f"{run.name}: {run.error}" for run in runs if run.error]
    total = [
        f"{count(len(runs), 'run')}{f', {runs.n_damaged:,} damaged' if errors else ''}.",
        *filter(None, [constants]),
        *(f"Not listed are the runs behind an answer: bfreplay runs {folder}" for folder in runs.left_out),
    ]
    if hidden_names:
        names = ", ".join(hidden_names[:_MOST_NAMED]) + (", ..." if len(hidden_names) > _MOST_NAMED else "")
        total.append(f"{count(len(hidden_names), 'more column')} in --html and --json: {names}")
    return paragraphs([table, total, errors])


_LONGEST = 20
"""Longest cell of an option in a terminal, in characters."""
_MOST_NAMED = 8
"""Largest number of columns that are named because they do not fit."""


def _fit_columns(
    options: Mapping[str, list[str]], metrics: Mapping[str, list[str]], runs: RunList, width: int | None
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the columns that fit, options first, and the names of the others.

    Options take at most 60 % of the width, and those of job files come last.
    """
    if width is None:
        return {**options, **metrics}, []
    short = {column_name: [_shorten(text) for text in texts] for column_name, texts in options.items()}
    of_jobs = [column_name for column_name in options if column_name.startswith("jobs.")]
    n_free = width - max(len(run.name) for run in runs) - len("  2026-03-01 12:30")
    for_metrics, fits = 0.4 * width, set[str]()
    for column_name in (*(column_name for column_name in options if column_name not in of_jobs), *metrics, *of_jobs):
        texts = short.get(column_name) or metrics[column_name]
        n_needed = 2 + max(map(len, (column_name, *texts)))
        if n_needed <= n_free - (for_metrics if column_name in options and column_name not in of_jobs else 0):
            n_free -= n_needed
            fits.add(column_name)
    columns = {column_name: texts for column_name, texts in (*short.items(), *metrics.items()) if column_name in fits}
    return columns, [column_name for column_name in (*options, *metrics) if column_name not in fits]


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def creation_time_text(listed_run: ListedRun) -> str:
    """Return the start of the replay as ``2026-03-01 12:30``; empty for a damaged folder."""
    return (listed_run.start_time or "")[:16].replace("T", " ")


def _run_folders(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """Yield run folders; add answers below ``folder``, with a hundred runs behind each, to ``left_out``."""
    for place, below, files in os.walk(folder):
        below[:] = sorted(folder_name for folder_name in below if not folder_name.startswith("."))
        if not {FINISH.record_file, RULES.record_file}.isdisjoint(files) and Path(place) != folder:
            left_out.append(place)
            below.clear()
        elif not _FILES.isdisjoint(files):
            below.clear()
            yield Path(place)


def _read_run(folder: Path, below: Path) -> ListedRun:
    run_name = (folder.name if folder == below else str(folder.relative_to(below))) or str(folder.resolve())
    try:
        run_result = RunResult.load(folder)
        for file, digest in run_result.digests.items():
            check_digest(folder / file, digest, RUN)
        return ListedRun(run_name, folder, run_result)
    except FileNotFoundError as error:
        return ListedRun(run_name, folder, None, f"{Path(error.filename).name} is missing")
    except (BfreplayError, OSError) as error:
        place = Path(getattr(error, "file", None) or folder)
        prefix = "" if place == folder else f"{place.name}: "
        return ListedRun(run_name, folder, None, f"{prefix}{str(error).splitlines()[0]}")


def _is_different(option_name: str, flat: Sequence[JsonObject]) -> bool:
    by_policy: defaultdict[object, set[str]] = defaultdict(set)  # values as text, which is hashable
    for options in flat:
        by_policy[options.get("policy.name")].add(repr(options.get(option_name)))
    values = set[str]().union(*by_policy.values()) - {repr(None)}
    is_of_source = option_name.startswith("jobs.")  # a file of jobs has none of these
    return len(values) > 1 or (not is_of_source and any(len(policy_values) > 1 for policy_values in by_policy.values()))


def _inputs(runs: Sequence[RunResult]) -> Iterator[JsonObject]:
    """Yield the names of log and jobs, and the window, of each run."""
    logs = _names(runs, lambda run: [(file.name, file.sha256) for file in run.record.inputs.events.files])
    jobs = _names(runs, lambda run: [(file.name, file.sha256) for file in run.record.inputs.jobs.files])
    for run, log_text, job_files in zip(runs, logs, jobs, strict=True):
        record = run.record
        ends_with_jobs = f"from {instant_words(record, record.config.window_start_us)}"
        yield {
            "log": log_text if log_text and cluster_of(record) is None else log_name(run),
            "jobs": job_files or (record.inputs.jobs.source or {}).get("name", f"{record.inputs.jobs.n_jobs} jobs"),
            "window": ends_with_jobs if record.config.until_done else window_words(record),
        }


def _names(runs: Sequence[RunResult], files_of: Callable[[RunResult], list[tuple[str, str]]]) -> list[str]:
    """Return the names of the files of each run, with the start of their SHA-256 where files of one name differ."""
    contents: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        for name, sha256 in files_of(run):
            contents[name].add(sha256)
    return [
        ", ".join(name if len(contents[name]) == 1 else f"{name} ({sha256[:8]})" for name, sha256 in files_of(run))
        for run in runs
    ]
