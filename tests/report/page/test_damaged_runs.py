"""Whatever is wrong with a run is said by an InputError that names it; what passes can be shown."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from bfreplay.answers.soundness import check_run

from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import RunResult, replay_log
from bfreplay.report.page.document import one_run_page
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log

_GONE = object()
_VALUES = {
    "left out": _GONE, "null": None, "text": "x", "a list": [1], "negative": -1.5, "an object": {}, "true": True,
    "beyond floats": 10**400, "zero": 0,
}  # fmt: skip
_ADDED_UP = ("finished",)
"""What is found by a sum, which is of no row."""
_TABLES = ("decisions", "timings", "jobs", "allocations", "pool", "holes")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two nodes and two jobs, one of which has a model and a deadline; its tables are in memory."""
    events = log(2, [(10, 0, False), (20, 1, True), (30, 0, True)], 60, idle_first=[0])
    first = replace(job("a", work=150.0, up_s=1.0), model="net", deadline_us=50 * SECOND)
    folder = tmp_path_factory.mktemp("whole") / "run"
    replay_log(events, JobSet([first, job("b", submit_s=5, up_s=1.0)]), BFTrainerPolicy(t_fwd_s=120), out=folder)
    run = RunResult.load(folder)
    check_run(run)
    return run


def _paths(document, before=()):
    for key, value in document.items():
        yield (*before, key), value
        if isinstance(value, dict):
            yield from _paths(value, (*before, key))


def _set(document, path, value):
    """Whether there is still such a place."""
    for key in path[:-1]:
        document = document.get(key) if isinstance(document, dict) else None
    if not isinstance(document, dict):
        return False
    if value is _GONE:
        document.pop(path[-1], None)
    else:
        document[path[-1]] = value
    return True


def _with(run, record=None, session=None, **tables):
    return RunResult(
        run.record if record is None else record, run.session if session is None else session, run.folder,
        {**run.tables, **tables},
    )  # fmt: skip


def _is_refused(run):
    try:
        check_run(run)
    except InputError as error:
        said = error
    else:
        return False
    assert said.file
    assert said.expected
    assert said.fix
    return True


def _changed(table, column, how):
    field, place = table.schema.field(column), table.column_names.index(column)
    if how == "left out":
        return table.drop_columns([column])
    if how == "twice":
        return table.append_column(field, table[column])
    if how == "of text":
        return table.set_column(place, column, pa.array(["zz"] * table.num_rows))
    return table.set_column(place, field, pa.nulls(table.num_rows, field.type))


@pytest.mark.parametrize("value", _VALUES.values(), ids=_VALUES)
@pytest.mark.parametrize("document", ["record", "session"])
def test_an_entry_that_is_something_else_is_refused_or_does_no_harm(whole, document, value):
    original = getattr(whole, document)
    harmless = {False: copy.deepcopy(original), True: copy.deepcopy(original)}
    n_refused = 0
    for path, before in _paths(original):
        changed = copy.deepcopy(original)
        _set(changed, path, value)
        if _is_refused(_with(whole, **{document: changed})):
            n_refused += 1
        else:  # all of them at once: objects apart, as there is nothing to change in one that is gone
            _set(harmless[isinstance(before, dict)], path, value)
    assert n_refused > (60 if document == "record" else 4 if value not in (0, _GONE, None) else -1)
    for changed in harmless.values():
        one_run_page(_with(whole, **{document: changed}))


@pytest.mark.parametrize("damage", ["left out", "of text", "null", "twice"])
def test_a_column_that_is_not_as_it_is_written_is_refused_or_does_no_harm(whole, damage):
    harmless = {}
    refused = set()
    for name in _TABLES:
        table = harmless[name] = whole.table(name)
        for column in table.column_names:
            if _is_refused(_with(whole, **{name: _changed(table, column, damage)})):
                refused.add(f"{name}.{column}")
            else:
                harmless[name] = _changed(harmless[name], column, damage)
    assert {"timings.decide_s", "jobs.status", "pool.n_idle", "holes.idle_node_us", "allocations.count"} <= refused
    assert {"decisions.message", "jobs.params"}.isdisjoint(refused) or damage in ("twice", "left out")
    one_run_page(_with(whole, **harmless))


_RECORD_SAYS = [
    ("summary.ledger.node_hours.useful", 999.0, "summary.ledger.node_hours.useful"),
    ("summary.ledger.samples", 1.0, "sum of done_samples"),
    ("summary.ledger.rescale_samples", 11.0, "sum of rescale_cost_samples"),
    ("summary.ledger.preempt_samples", 1.0, "sum of preempt_cost_samples"),
    ("summary.ledger.gross_samples", 801.0, "summary.ledger.gross_samples"),
    ("summary.ledger.samples_by_job", 791.0, "summary.ledger.samples_by_job"),
    ("summary.ledger.free_node_us", 1, "summary.ledger.idle_node_us"),
    ("summary.n_grown", 77, "sum of n_jobs_grown"),
    ("summary.n_shrunk", 77, "sum of n_jobs_shrunk"),
    ("summary.n_preemptions", 77, "sum of n_jobs_preempted"),
    ("summary.decisions", {"proven": 6}, "decisions that are 'proven'"),
    ("summary.decisions", {"proven": 5, "proven_trivially": 1, "lucky": 1}, "decisions that are 'lucky'"),
    ("summary.fallbacks", {"timed_out": 1}, "decisions that fell back, 'timed_out'"),
    ("summary.jobs", {"finished": 2}, "jobs finished"),
    ("summary.deadlines.met", 0, "deadlines met"),
    ("summary.job_times.submit_to_finish.n_jobs", 2, "jobs with a time of finished"),
    ("summary.duration_s", 61.0, "summary.duration_s"),
    ("summary.equivalent_nodes", 1.5, "summary.equivalent_nodes"),
    ("summary.most_idle_nodes", 1, "summary.most_idle_nodes"),
    ("summary.last_finish_us", 60 * SECOND, "last_finish_us"),
    ("summary.efficiency.u", 1.0, "summary.efficiency.u"),
    ("summary.efficiency.samples", 1.0, "summary.efficiency.samples"),
    ("summary.bound.share", 0.5, "summary.bound.share"),
    ("summary.bound.earliest_finish_us", 61 * SECOND, "summary.bound.earliest_finish_us"),
    ("config.window_end_us", 0, ""),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "words"), _RECORD_SAYS)
def test_a_number_of_the_record_that_the_run_does_not_have_is_a_contradiction(whole, path, value, words):
    record = copy.deepcopy(whole.record)
    assert _set(record, path.split("."), value)
    with pytest.raises(InputError, match="the run contradicts itself") as refused:
        check_run(_with(whole, record))
    assert words in str(refused.value)


def test_the_slowest_decision_is_the_one_of_the_table(whole):
    session = copy.deepcopy(whole.session)
    session["slowest_decision"]["decide_s"] *= 2
    with pytest.raises(InputError, match=r"the run contradicts itself[\s\S]*slowest_decision\.decide_s"):
        check_run(_with(whole, session=session))


def test_samples_may_differ_by_rounding_and_node_time_may_not(whole):
    record = copy.deepcopy(whole.record)
    record["summary"]["ledger"]["samples"] *= 1 + 1e-14
    check_run(_with(whole, record))
    record["summary"]["ledger"]["idle_node_us"] += 1
    assert _is_refused(_with(whole, record))


@pytest.mark.parametrize(
    ("table", "column", "row", "value"),
    [
        ("decisions", "time", 2, 0),
        ("decisions", "time", 5, 61 * SECOND),
        ("decisions", "rescale_cost_samples", 1, float("nan")),
        ("decisions", "preempt_cost_samples", 1, float("inf")),
        ("decisions", "n_idle", 0, -1),
        ("decisions", "quality", 0, "splendid"),
        ("timings", "time", 2, 1),
        ("timings", "decide_s", 0, float("nan")),
        ("timings", "solve_s", 0, -1.0),
        ("jobs", "job", 1, "a"),
        ("jobs", "status", 1, "on holiday"),
        ("jobs", "first_start", 1, 1),
        ("jobs", "ended", 0, 61 * SECOND),
        ("jobs", "finished", 0, None),
        ("jobs", "submitted", 1, 2**62),
        ("jobs", "work_samples", 0, float("nan")),
        ("allocations", "job", 0, "c"),
        ("jobs", "admitted", 0, -SECOND),
        ("holes", "over_s", 0, -1.0),
        ("holes", "up_to_s", -1, 0.0),
        ("holes", "n_cut", 0, 1_000),
        ("holes", "n_held", 0, 1_000),
    ],
)
def test_a_row_that_cannot_be_is_named(whole, table, column, row, value):
    rows = whole.table(table)
    field = rows.schema.field(column)
    column_type = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    values = rows[column].cast("int64" if pa.types.is_timestamp(field.type) else column_type).to_pylist()
    assert values[row] != value
    values[row] = value
    changed = pa.array(values, type=pa.int64() if pa.types.is_timestamp(field.type) else column_type)
    changed = changed.dictionary_encode() if pa.types.is_dictionary(field.type) else changed.cast(field.type)
    damaged = rows.set_column(rows.column_names.index(column), column, changed)
    with pytest.raises(InputError) as refused:
        check_run(_with(whole, **{table: damaged}))
    assert f"{table}.parquet" in str(refused.value)
    assert refused.value.column == column
    if column not in _ADDED_UP:
        assert refused.value.row == row % rows.num_rows + 1


def test_jobs_that_swap_their_node_time_are_told_from_the_table_of_allocations(whole):
    rows = whole.table("jobs")
    swapped = rows["useful_node_us"].take([1, 0])
    assert swapped != rows["useful_node_us"]
    place = rows.column_names.index("useful_node_us")
    with pytest.raises(InputError, match="that the table 'allocations' has of the job"):
        check_run(_with(whole, jobs=rows.set_column(place, "useful_node_us", swapped)))


@pytest.mark.parametrize("name", ["pool", "holes"])
def test_a_pool_or_a_hole_that_holds_nothing_is_refused(whole, name):
    with pytest.raises(InputError, match=r"contradicts itself: (idle )?node-microseconds"):
        check_run(_with(whole, **{name: whole.table(name).slice(0, 0)}))


def test_a_run_without_idle_nodes_whose_pool_has_no_row_is_refused(never_idle_run):
    check_run(never_idle_run)
    with pytest.raises(InputError, match="the window's start in the first row"):
        check_run(_with(never_idle_run, pool=never_idle_run.table("pool").slice(0, 0)))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "1e999"])
def test_what_is_no_number_in_json_is_refused(whole, tmp_path, constant):
    text = json.dumps(whole.record | {"x": -1}).replace('"x": -1', f'"x": {constant}')
    (tmp_path / "run.json").write_text(text)
    (tmp_path / "session.json").write_text("{}")
    with pytest.raises(InputError, match=r"run\.json is no JSON document"):
        RunResult.load(tmp_path)
