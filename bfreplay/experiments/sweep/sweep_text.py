"""A sweep as text that a person can read."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from bfreplay.experiments.sweep.columns import text_of
from bfreplay.experiments.sweep.plan import SweepPlan
from bfreplay.experiments.sweep.result import SweepResult
from bfreplay.experiments.sweep.run_sweep import FAILED, Outlook
from bfreplay.runs.metrics import COLUMNS, texts_in_sweep, title_in_sweep, without_constants
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.wording import aligned, count, paragraphs

MOST_ROWS = 40
"""Longer tables are not printed."""


def render(result: SweepResult) -> str:
    """Warnings, what was done, the table where it is short, the first error, and where all of it lies."""
    results = result.results
    n_runs, n_failed = len(result.ids), result.n_failed
    said = [count(n_runs, "run")]
    if results.num_rows != n_runs:
        said[0] += f" for {results.num_rows:,} rows"
    if result.n_reused:
        said.append(f"{result.n_reused:,} of them there before")
    said.append(f"{n_failed:,} failed" if n_failed else "none failed")
    blocks = [[*warning_lines(result.warnings), ", ".join(said) + "."]]
    if results.num_rows <= MOST_ROWS:
        blocks.append(_table(result))
    if n_failed:
        first = next(row for row in results.select(["id", "status", "error"]).to_pylist() if row["status"] == FAILED)
        note = result.folder / "failures" / f"{first['id']}.json"
        blocks.append([f"First error: {first['error']}", f"             {note}; again with --retry-failed"])
    return paragraphs([*blocks, [f"Table        {result.folder / 'results.parquet'}"]])


def render_outlook(plan: SweepPlan, there: Outlook) -> str:
    """What a sweep would do, and the ids of its runs."""
    n_runs, n_points = len(plan.runs), len(plan.ids)
    rows = f" for {n_points:,} rows" if n_points != n_runs else ""
    done = f"{len(there.finished):,} there, {len(there.failed):,} failed before, {len(there.missing):,} to do."
    blocks = [[f"{count(n_runs, 'run')}{rows}: {done}"]]
    if n_points <= MOST_ROWS:
        state = dict.fromkeys(there.finished, "there") | dict.fromkeys(there.failed, "failed")
        columns = plan.spec.columns
        body = [
            [*(text_of(point.cells[name]) for name in columns), run_id, state.get(run_id, "to do")]
            for point, run_id in zip(plan.spec.points, plan.ids, strict=True)
        ]
        blocks.append(aligned([[*columns, "id", "state"], *body], range(len(columns) + 2)))
    return paragraphs(blocks)


def _table(result: SweepResult) -> list[str]:
    """The options that vary and the metrics that differ, then a line about the metrics that do not."""
    ends = [not {"cluster", "measure"}.isdisjoint(run.options) for run in result.record.runs.values()]
    results, columns = result.results, result.record.columns
    is_done = pc.not_equal(results.column("status"), FAILED)
    done = results.filter(is_done)
    values = {name: done.column(name).to_pylist() for name in COLUMNS}
    texts = texts_in_sweep(values, log=not all(ends), cluster=any(ends))
    shown, same = without_constants(texts)
    at = (np.cumsum(np.asarray(is_done)) - 1).tolist()
    rows = [
        [
            *(text_of(row[name]) for name in columns),
            *("-" if row["status"] == FAILED else each[k] for each in shown.values()),
            row["status"],
        ]
        for row, k in zip(results.select([*columns, "status"]).to_pylist(), at, strict=True)
    ]
    titles = [*columns, *map(title_in_sweep, shown), "status"]
    return [*aligned([titles, *rows], range(len(titles))), *filter(None, [same])]
