"""Numbers of scheduling, types and shared nodes that a run does not have are found."""

from __future__ import annotations

import copy

import numpy as np
import pyarrow as pa
import pytest
from bfreplay.answers.soundness import check_run

from bfreplay.errors import InputError
from bfreplay.replay import RunResult
from bfreplay.report.page.document import one_run_page


def _with(run, record=None, **tables):
    return RunResult(record or run.record, run.session, run.folder, {**run.tables, **tables})


def _changed(run, path, change):
    record = copy.deepcopy(run.record)
    *before, last = path.split(".")
    place = record
    for key in before:
        place = place[key]
    place[last] = change(place[last])
    return _with(run, record)


def _column(run, table, column, change):
    """``change`` gets the values as a list."""
    rows = run.table(table)
    values = rows[column].to_pylist()
    change(values)
    place, kind = rows.column_names.index(column), rows.schema.field(column).type
    array = pa.array(values, kind.value_type).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else (
        pa.array(values, kind)
    )  # fmt: skip
    return _with(run, **{table: rows.set_column(place, column, array)})


def _put(row, value):
    def change(values):
        values[row] = value

    return change


def test_runs_with_types_and_shared_nodes_are_sound(packed_run, typed_run):
    assert max(packed_run.table("allocations")["sharing"].to_pylist()) == 2
    for run in (packed_run, typed_run):
        held = {each.in_table for each in check_run(run) if each.what == "node-microseconds held by jobs"}
        assert held == {run.summary["ledger"]["allocated_node_us"]}


def _next_float(value):
    return value * (1 + 1e-6)


_SCHEDULING = (
    ("n_jobs", lambda n: n + 1), ("n_completed", lambda n: n - 1), ("average_jct_s", _next_float),
    ("average_jct_s_by_weight.5", _next_float), ("makespan_s", _next_float), ("makespan_s", lambda _: None),
    ("utilisation", _next_float), ("node_hours_by_type.v100", _next_float), ("cost", _next_float),
    ("cost", lambda _: None), ("finish_time_fairness.average_rho", _next_float),
    ("finish_time_fairness.largest_rho", _next_float), ("finish_time_fairness.share_above_1", lambda x: x + 0.01),
    ("average_jct_s_by_weight", lambda by: {"1": by["1"]}),
    ("node_hours_by_type", lambda by: {"any": sum(by.values())}),
    ("finish_time_fairness", lambda _: None),
)  # fmt: skip


@pytest.mark.parametrize(("path", "change"), _SCHEDULING)
def test_a_metric_that_the_tables_do_not_have_is_a_contradiction(packed_run, path, change):
    with pytest.raises(InputError, match="the run contradicts itself") as refused:
        check_run(_changed(packed_run, f"summary.scheduling.{path}", change))
    assert refused.value.column.startswith(f"summary.scheduling.{path}")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("config.prices", {"v100": 1.0, "p100": 0.43}, "at their prices"),
        ("config.measured", [1, 2], "deadlines met"),
        ("config.measured", [2, 2], "two whole numbers"),
        ("config.until_done", "yes", "true or false"),
        ("summary.scheduling.utilisation", -0.1, "at least 0"),
        ("summary.scheduling.average_jct_s_by_weight", {"1": "long"}, "numbers of at least 0"),
        ("summary.scheduling.finish_time_fairness.policy", 7, "text"),
        ("summary.policy", [], "an object, or null"),
        ("inputs.events.metadata.node_types", {"v100": "n1"}, "lists of texts"),
        ("inputs.events.metadata.node_types", {"v100": ["n0"], "p100": ["n2"]}, "the nodes of all types"),
    ],
)
def test_an_entry_of_scheduling_that_is_something_else_is_refused(packed_run, path, value, words):
    with pytest.raises(InputError, match=words):
        check_run(_changed(packed_run, path, lambda _: value))


def test_an_entry_of_scheduling_that_is_left_out_is_refused_or_does_no_harm(packed_run):
    for key in packed_run.summary["scheduling"]:
        record = copy.deepcopy(packed_run.record)
        del record["summary"]["scheduling"][key]
        with pytest.raises(InputError, match=f"summary.scheduling.{key}"):
            check_run(_with(packed_run, record))
    record = copy.deepcopy(packed_run.record)
    for key in ("scheduling", "policy"):  # as of a run of an older version
        del record["summary"][key]
    one_run_page(_with(packed_run, record))


def test_what_a_policy_says_of_itself_may_be_anything(packed_run):
    for said in (None, {}, {"n_rounds": "many"}, {"n_rounds": 1, "n_recomputations": None}):
        one_run_page(_changed(packed_run, "summary.policy", lambda _, said=said: said))


@pytest.mark.parametrize("column", ["weight", "isolated_jct_s"])
def test_a_table_of_jobs_without_a_column_of_scheduling_is_refused(packed_run, column):
    jobs = packed_run.table("jobs").drop_columns([column])
    with pytest.raises(InputError, match="0 such columns"):
        check_run(_with(packed_run, jobs=jobs))


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("weight", _put(0, 2.0)),
        ("isolated_jct_s", lambda values: _put(0, values[0] * 2)(values)),
        ("isolated_jct_s", _put(0, None)),
    ],
)
def test_a_job_with_another_weight_or_yardstick_contradicts_the_record(packed_run, column, change):
    with pytest.raises(InputError, match="the run contradicts itself"):
        check_run(_column(packed_run, "jobs", column, change))


@pytest.mark.parametrize("how", [0, 1, 2, 3])
def test_a_changed_sharing_is_found(packed_run, how):
    sharing = np.asarray(packed_run.table("allocations")["sharing"])
    for row in np.flatnonzero(sharing != how).tolist():
        with pytest.raises(InputError, match="the run contradicts itself"):
            check_run(
                _column(packed_run, "allocations", "sharing", lambda values, row=row: values.__setitem__(row, how))
            )


@pytest.mark.parametrize("fixture", ["packed_run", "typed_run"])
def test_a_changed_type_is_found(fixture, request):
    run = request.getfixturevalue(fixture)
    for name, words in (("k80", "a type of the log: p100, v100"), ("v100", "node_hours_by_type|first of two")):
        rows = run.table("allocations")["node_type"].to_pylist()
        row = rows.index("p100")
        with pytest.raises(InputError, match=words):
            check_run(
                _column(
                    run, "allocations", "node_type", lambda values, row=row, name=name: values.__setitem__(row, name)
                )
            )


def test_a_column_of_sharing_that_is_lost_is_found(packed_run):
    with pytest.raises(InputError, match="the run contradicts itself"):
        check_run(_with(packed_run, allocations=packed_run.table("allocations").drop_columns(["sharing"])))


def test_a_trigger_that_there_is_not_is_found(packed_run):
    with pytest.raises(InputError, match="round"):
        check_run(_column(packed_run, "decisions", "trigger", _put(3, "lunch")))
