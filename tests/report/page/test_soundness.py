"""A broken or half-written run folder gives a clear error, never a page."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bfreplay.answers.soundness import check_run

from bfreplay.errors import InputError
from bfreplay.replay import RunResult
from bfreplay.report.page.document import write_report


@pytest.fixture
def folder(sample_run, tmp_path):
    """A copy of a run to be damaged."""
    copy = tmp_path / "run"
    shutil.copytree(sample_run.folder, copy)
    return copy


def test_a_whole_run_is_sound(sample_run):
    sums = check_run(sample_run)
    assert {each.table for each in sums} == {"decisions", "timings", "jobs", "allocations", "pool", "holes"}
    assert all(each.in_table == each.in_record for each in sums if not each.rounding)
    assert all(each.in_table == pytest.approx(each.in_record, rel=1e-9) for each in sums)
    assert max(each.in_table for each in sums) == sample_run.summary["ledger"]["idle_node_us"]


@pytest.mark.parametrize("name", ["run.json", "session.json"])
def test_a_folder_without_a_document_is_no_run(folder, name):
    (folder / name).unlink()
    _refused(folder, f"it has no {name}")


@pytest.mark.parametrize("name", ["run.json", "session.json"])
def test_a_document_cut_short_is_refused(folder, name):
    text = (folder / name).read_text()
    (folder / name).write_text(text[: len(text) // 2])
    _refused(folder, f"{name} is no JSON document")


@pytest.mark.parametrize("table", ["decisions", "jobs", "allocations", "timings", "pool", "holes"])
def test_a_missing_table_is_named(folder, table):
    (folder / f"{table}.parquet").unlink()
    _refused(folder, f"no table '{table}'")


@pytest.mark.parametrize("table", ["decisions", "pool"])
def test_a_folder_in_the_place_of_a_table_is_no_table(folder, table):
    (folder / f"{table}.parquet").unlink()
    (folder / f"{table}.parquet").mkdir()
    _refused(folder, "the table cannot be read: it is no file")


@pytest.mark.parametrize("table", ["decisions", "jobs", "allocations", "timings", "pool", "holes"])
def test_a_table_cut_short_is_named(folder, table):
    file = folder / f"{table}.parquet"
    file.write_bytes(file.read_bytes()[:-200])
    _refused(folder, f"{table}.parquet")


@pytest.mark.parametrize("table", ["decisions", "jobs", "allocations", "timings", "pool", "holes"])
def test_a_table_that_lost_its_last_row_contradicts_the_record(folder, table):
    file = folder / f"{table}.parquet"
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, rows.num_rows - 1), file)
    _refused(folder, "the run contradicts itself")


def test_a_changed_number_is_found(folder):
    file = folder / "jobs.parquet"
    rows = pq.read_table(file)
    column = rows["useful_node_us"].to_pylist()
    column[0] += 1
    place = rows.column_names.index("useful_node_us")
    pq.write_table(rows.set_column(place, "useful_node_us", pa.array(column)), file)
    _refused(folder, "node-microseconds of useful_node_us")


@pytest.mark.parametrize("key", ["summary", "config", "inputs", "versions"])
def test_a_record_without_a_part_is_not_complete(folder, key):
    record = json.loads((folder / "run.json").read_text())
    del record[key]
    (folder / "run.json").write_text(json.dumps(record))
    _refused(folder, "the record of the run is not complete")


def test_another_schema_version_is_refused_with_what_to_do(folder):
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"schema_version": 0}))
    _refused(folder, "another schema version")


def test_a_run_of_an_older_version_has_a_page_without_what_it_did_not_record(folder, tmp_path):
    for table in ("pool", "holes"):
        (folder / f"{table}.parquet").unlink()
    record = json.loads((folder / "run.json").read_text())
    for key in ("bound", "learning", "scores", "most_idle_nodes", "n_jobs_wider_than_the_pool"):
        del record["summary"][key]
    record["versions"]["bfreplay"] = "0.0.1"
    (folder / "run.json").write_text(json.dumps(record))
    decisions = pq.read_table(folder / "decisions.parquet")
    pq.write_table(decisions.drop_columns(["t_fwd_s"]), folder / "decisions.parquet")
    jobs = pq.read_table(folder / "jobs.parquet")
    pq.write_table(jobs.drop_columns(["ended", "n_reports", "last_score", "best_score"]), folder / "jobs.parquet")
    text = write_report(folder, tmp_path / "old.html").read_text()
    assert "The run was made before idle nodes and holes were recorded" in text
    assert "0.0.1" in text


def _refused(folder, words):
    page = folder.parent / "page.html"
    with pytest.raises(InputError) as refused:
        write_report(folder, page)
    assert words in str(refused.value)
    assert not page.exists()
    assert RunResult.kind.word in str(refused.value)
