"""``sacct --json`` in the shapes of its versions."""

import json

import pytest

from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.read_log import ingest
from bfreplay.datasets.ingest.slurm import sacct_rows as sentences
from bfreplay.datasets.ingest.slurm.reader import SlurmReader
from bfreplay.errors import InputError
from tests.datasets.ingest.slurm_logs import at, files_of, jobs, read, rows_balance, skipped, warnings

NOON = at("2024-03-01 12:00:00")


def number(value):
    return {"set": True, "infinite": False, "number": value}


def job(job_id=7, state="COMPLETED", start=NOON, end=NOON + 3600, limit=120, **other):
    return {
        "account": "acc",
        "job_id": job_id,
        "array": {"job_id": 0, "task_id": None},
        "association": {"cluster": "hill"},
        "cluster": "hill",
        "allocation_nodes": 2,
        "nodes": "n[1-2]",
        "state": {"current": state, "reason": "None"},
        "time": {
            "submission": NOON - 60,
            "eligible": NOON - 60,
            "start": start,
            "end": end,
            "elapsed": 3600 if end else 600,
            "suspended": 0,
            "limit": limit,
        },
        "steps": [{"time": {"start": 1}, "nodes": {"list": ["n1"]}, "state": "COMPLETED"}],
        **other,
    }


def document(*all_jobs, **other):
    return json.dumps({"meta": {"Slurm": {"release": "23.11"}}, "errors": [], "jobs": list(all_jobs), **other})


def test_a_job_holds_its_nodes_and_steps_are_no_jobs(tmp_path):
    record = read(tmp_path, document(job()))
    assert jobs(record) == [(NOON, NOON + 3600, 2, ("n1", "n2"))]
    assert warnings(record) == {}
    assert record.cluster == "hill"
    assert record.source_format == "slurm sacct --json"
    assert record.report.facts["time zone"] == "epoch seconds: no zone needed"


@pytest.mark.parametrize(
    "shape",
    [
        job(state=["COMPLETED"]),
        job(limit=number(120)),
        job(limit={"set": False, "infinite": True, "number": 0}),
        job(job_id=number(7), start=number(NOON), end=number(NOON + 3600)),
        job(allocation_nodes=number(2)),
        job(job_id="7"),
        job(start=float(NOON)),
        job(array={"job_id": 5, "task_id": 42}),
        job(array={"job_id": 5, "task_id": number(42)}),
        {**job(), "state": "COMPLETED"},
        {**job(), "state": ["COMPLETED"]},
    ],
)
def test_the_shapes_of_all_versions_mean_the_same(tmp_path, shape):
    record = read(tmp_path, document(shape))
    assert jobs(record) == [(NOON, NOON + 3600, 2, ("n1", "n2"))]
    assert warnings(record) == {}


@pytest.mark.parametrize("limit", [120, number(120), "120"])
def test_a_job_that_runs_has_no_end_but_a_limit(tmp_path, limit):
    record = read(tmp_path, document(job(state=["RUNNING"], end=0, limit=limit)))
    assert jobs(record) == [(NOON, None, 2, ("n1", "n2"))]
    ((part, _),) = record.jobs.slices()
    assert part.limit_end_us[0] / 1e6 == NOON + 7200
    assert record.last_stamp_us / 1e6 == NOON + 600
    ((part, _),) = read(tmp_path, document(job(limit=limit))).jobs.slices()
    assert part.limit_end_us[0] / 1e6 == NOON + 7200  # also of a job that ended: did it end in time?


@pytest.mark.parametrize("limit", [4294967295, {"set": False, "infinite": True, "number": 0}, None])
def test_no_limit_is_no_limit(tmp_path, limit):
    record = read(tmp_path, document(job(state=["RUNNING"], end=0, limit=limit)))
    ((part, _),) = record.jobs.slices()
    assert part.limit_end_us[0] == 2**63 - 1


def test_a_state_with_flags_runs_if_one_of_them_does(tmp_path):
    assert jobs(read(tmp_path, document(job(state=["COMPLETING", "CANCELLED"], end=0))))[0][1] is None
    assert jobs(read(tmp_path, document(job(state=["CANCELLED", "COMPLETING"], end=0))))[0][1] is None
    assert jobs(read(tmp_path, document(job(state=["REQUEUE_FLAG", "FAILED"]))))[0][1] == NOON + 3600


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (job(8, "PENDING", 0, 0, nodes="None assigned"), "pending"),
        (job(8, "PENDING", number(0), {"set": False, "number": 0}, nodes=""), "pending"),
        (job(8, "CANCELLED", 0, NOON, nodes="None assigned"), "never started"),
    ],
)
def test_jobs_that_hold_no_nodes_by_their_nature_are_skipped_without_warning(tmp_path, row, reason):
    record = read(tmp_path, document(job(), row))
    assert len(jobs(record)) == 1
    assert skipped(record) == {reason: 1}
    assert warnings(record) == {}
    assert rows_balance(record)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("text", "a job that is not a JSON object"),
        (job(job_id=None), "a number that cannot be read"),
        (job(job_id=-3), "unreadable job_id"),
        (job(start="soon"), "a number that cannot be read"),
        (job(start=True), "a number that cannot be read"),
        (job(start=1.5), "a number that cannot be read"),
        (job(end=10**30), "a number that cannot be read"),
        (job(start=-5), "unreadable time.start"),
        (job(state=[]), "unreadable state"),
        (job(nodes=["n1"]), "unreadable nodes"),
        ({**job(), "time": 3}, "a job without times"),
        ({**job(), "time": {"start": NOON}}, "a job without time.end"),
    ],
)
def test_jobs_that_cannot_be_read_are_skipped_and_warned_of(tmp_path, row, reason):
    record = read(tmp_path, document(job(), row))
    assert len(jobs(record)) == 1
    assert skipped(record) == {reason: 1}
    assert warnings(record) == {UNREADABLE: 1}
    assert "jobs[1]" in record.report.skipped[reason].examples[0].value
    assert rows_balance(record)


def test_parts_of_a_heterogeneous_job_are_all_kept(tmp_path):
    parts = [job(job_id=7, het={"job_id": 7, "job_offset": number(i)}) for i in range(2)]
    assert len(jobs(read(tmp_path, document(*parts)))) == 2


def test_runs_missing_without_duplicates_raise_a_warning(tmp_path):
    assert warnings(read(tmp_path, document(job(restart_cnt=2)))) == {sentences.RUNS_MISSING: 1}


def test_documents_one_after_the_other_are_all_read(tmp_path):
    assert len(jobs(read(tmp_path, document(job(7)) + "\n" + document(job(8))))) == 2


def test_text_and_json_of_one_job_count_once(tmp_path):
    text = f"JobIDRaw|State|Start|End|NodeList\n7|COMPLETED|{NOON}|{NOON + 3600}|n[1-2]\n"
    assert len(jobs(read(tmp_path, text, document(job())))) == 1


@pytest.mark.parametrize("cut", [150, -1, -40])
def test_a_cut_document_is_refused(tmp_path, cut):
    with pytest.raises(InputError, match="broken or cut"):
        read(tmp_path, document(job(), job(8))[:cut])


@pytest.mark.parametrize("where", ["job_id", "nodes", "comment"])
@pytest.mark.parametrize("hostile", ["1" * 5_000, "[" * 100_000, "[" * 100_000 + "]" * 100_000, "1e999"])
def test_numbers_of_thousands_of_digits_and_endless_nesting_are_refused(tmp_path, where, hostile):
    text = document(job(), job(8, **{where: "HERE"}) if where != "job_id" else job("HERE"))
    with pytest.raises(InputError, match="broken or cut") as caught:
        read(tmp_path, text.replace('"HERE"', hostile))
    assert (caught.value.file, caught.value.row) == ("log0", "after record 1")


@pytest.mark.parametrize("text", ["{}", '{"nodes": []}', "[]"])
def test_json_without_jobs_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="no jobs"):
        read(tmp_path, text)


def test_a_document_without_rows_is_refused(tmp_path):
    with pytest.raises(InputError, match="no rows"):
        read(tmp_path, document())


def test_json_of_squeue_is_refused_by_name(tmp_path):
    queue = {"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "start_time": number(NOON), "nodes": "n1"}]}
    (tmp_path / "queue.json").write_text(json.dumps(queue))
    with pytest.raises(InputError, match="squeue"):
        ingest(tmp_path / "queue.json", "slurm")


def test_json_of_sacct_is_recognised_and_other_json_is_not(tmp_path):
    flux = {"jobs": [{"id": 1, "t_submit": 1.5, "t_run": 2.5, "nodelist": "n1", "state": "INACTIVE"}]}
    own, other = files_of(tmp_path, document(job()), json.dumps(flux))
    assert "job_id" in SlurmReader().recognise(own)
    assert SlurmReader().recognise(other) is None
