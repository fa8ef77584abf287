"""Columns of the table of results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.placeholders import OF_STATE, SECONDS, text_of
from bfreplay.experiments.sweep.run_sweep import column_of
from bfreplay.runs.headline_metrics import COLUMNS
from bfreplay.runs.metrics import METRICS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sweeps.md"


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        ([1, 2, None], pa.int64(), [1, 2, None]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([np.float64(0.5), 1], pa.float64(), [0.5, 1.0]),
        ([True, False], pa.bool_(), [True, False]),
        ([60.0, "auto", 0.5], pa.string(), ["60", "auto", "0.5"]),
        ([True, 1], pa.string(), ["true", "1"]),
        ([None, None], pa.string(), [None, None]),
    ],
)
def test_a_column_of_what_varies_has_the_narrowest_type_that_holds_it(cells, kind, values):
    column = column_of(cells)
    assert column.type == kind
    assert column.to_pylist() == values


def test_cells_are_written_as_people_write_them():
    assert [text_of(cell) for cell in (None, True, 120.0, 0.1, 7, "a")] == ["", "true", "120", "0.1", "7", "a"]


def test_every_column_is_in_the_summary_of_a_run():
    options = RunOptions(events="sample", jobs="sample", window=("2024-07-01T06:00", "2024-07-01T12:00"))
    result = options.run()
    there = {name for name, metric in COLUMNS.items() if metric.of(result) is not None}
    # of learning, of a campaign, of work that was done, of prices, of rounds and of fairness
    of_others = {"learning_lost", "best_score", "last_finish", "done_s", "average_jct_s", "makespan_s", "cost"}
    of_others |= {"known_average_jct_s", "ideal_average_jct_s"}
    of_others |= {"average_rho", "largest_rho", "share_of_rho_above_1"}
    of_others |= {"geometric_mean_jct_s", "harmonic_mean_jct_s", "worst_rho", "unfair_share", "worst_rho_by_presence"}
    of_others |= {"n_plans", "n_plan_solves_stopped"}
    of_others |= {"deadlines_satisfied", "accepted_as_published"}  # of jobs with deadlines, of a published program
    of_others |= {"log_verdict"}  # of logs with warnings
    of_others |= {"n_batch_jobs_late", "propagated_delay_node_hours"}  # with the batch jobs of the log
    assert set(COLUMNS) - there <= of_others | {"median_submit_to_finish_s"}


def test_keys_and_columns_of_metrics_are_told_apart():
    for names in (
        [metric.figure_key for metric in METRICS if metric.figure_key],
        [m.column for m in METRICS if m.column],
    ):
        assert len(names) == len(set(names))
    assert all(metric.words_for() for metric in METRICS)


def test_every_column_is_documented():
    page = PAGE.read_text()
    documented = set(re.findall(r"`(\w+)`", page))
    assert sorted({*OF_STATE, "warnings", *SECONDS, "started", "worker"} - documented) == []
    assert "<!-- metrics -->" in page  # where docs/conf.py lists the others
