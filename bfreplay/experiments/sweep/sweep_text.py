"""Text of a sweep."""

from __future__ import annotations

from bfreplay.experiments.sweep.placeholders import text_of
from bfreplay.experiments.sweep.plan import SweepPlan
from bfreplay.experiments.sweep.result import FAILED, SweepResult
from bfreplay.experiments.sweep.run_sweep import Outlook
from bfreplay.runs.headline_metrics import cell_text, column_heading, split_constants
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.wording import aligned_lines, count, paragraphs

MOST_ROWS = 40
"""Largest number of rows that are printed."""


def render(result: SweepResult) -> str:
    """Return the sweep as text: warnings, numbers of runs, a short table, the first error, the file."""
    results = result.results
    n_runs, n_failed = len(result.ids), result.n_failed
    parts = [count(n_runs, "run")]
    if results.num_rows != n_runs:
        parts[0] += f" for {results.num_rows:,} rows"
    if result.n_reused:
        parts.append(f"{result.n_reused:,} reused")
    parts.append(f"{n_failed:,} failed" if n_failed else "none failed")
    blocks = [[*warning_lines(result.warnings), ", ".join(parts) + "."]]
    if results.num_rows <= MOST_ROWS:
        blocks.append(_table(result))
    if n_failed:
        first_id = results.column("id")[results.column("status").index(FAILED).as_py()]
        note = result.folder / "failures" / f"{first_id}.json"
        blocks.append([*result.errors, f"All of the first: {note}; again with --retry-failed"])
    return paragraphs([*blocks, [f"Table        {result.folder / 'results.parquet'}"]])


def render_outlook(plan: SweepPlan, states: Outlook) -> str:
    """Return the plan of a sweep as text, with the ids of its runs."""
    n_runs, n_points = len(plan.runs), len(plan.ids)
    rows = f" for {n_points:,} rows" if n_points != n_runs else ""
    state_text = (
        f"{len(states.finished):,} finished, {len(states.failed):,} failed before, {len(states.missing):,} to do."
    )
    blocks = [[f"{count(n_runs, 'run')}{rows}: {state_text}"]]
    if n_points <= MOST_ROWS:
        state = dict.fromkeys(states.finished, "finished") | dict.fromkeys(states.failed, "failed")
        columns = plan.spec.columns
        body = [
            [*(text_of(point.cells[name]) for name in columns), run_id, state.get(run_id, "to do")]
            for point, run_id in zip(plan.spec.points, plan.ids, strict=True)
        ]
        blocks.append(aligned_lines([[*columns, "id", "state"], *body], range(len(columns) + 2)))
    return paragraphs(blocks)


def _table(result: SweepResult) -> list[str]:
    """Return a table of varying options and differing metrics, then one line of equal metrics."""
    columns = result.record.columns
    varying, constants = split_constants(result.headline())
    rows = [
        [*(text_of(row[name]) for name in columns), *(cell_text(name, row[name]) for name in varying), row["status"]]
        for row in result.results.select([*columns, *varying, "status"]).to_pylist()
    ]
    titles = [*columns, *map(column_heading, varying), "status"]
    return [*aligned_lines([titles, *rows], range(len(titles))), *filter(None, [constants])]
