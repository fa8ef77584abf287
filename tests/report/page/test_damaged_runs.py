"""Whatever is wrong with a run folder is said by an InputError that names it; what is read can be shown."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.report.page.document import one_run_page
from bfreplay.result_folders.reading import digest
from bfreplay.runs import RunResult
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log

_GONE = object()
_VALUES = {
    "left out": _GONE,
    "null": None,
    "text": "x",
    "a list": [1],
    "negative": -1.5,
    "an object": {},
    "true": True,
    "beyond floats": 10**400,
    "zero": 0,
}
_TABLES = ("decisions", "timings", "jobs", "allocations", "pool", "idle_intervals", "nodes")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of a run of two nodes and two jobs, one of which has a model and a deadline."""
    events = log(2, [(10, 0, False), (20, 1, True), (30, 0, True)], 60, idle_first=[0])
    first = replace(job("a", work=150.0, up_s=1.0), model="net", deadline_us=50 * SECOND)
    folder = tmp_path_factory.mktemp("whole") / "run"
    jobs = JobSet([first, job("b", submit_s=5, up_s=1.0)])
    replay_log(events, jobs, BFTrainerPolicy(t_fwd_s=120), ReplaySettings(record_nodes=True), out=folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(saved, tmp_path / "run")


def _without_table_checksums(folder):
    """The folder after somebody changed it and made the checksums fit, so that the checks behind them are reached."""
    document = json.loads((folder / "run.json").read_text())
    document["sha256"] = {}
    _write_signed(folder, document)
    return folder


def _write_signed(folder, record):
    """Write ``run.json`` and its checksum in ``session.json``."""
    (folder / "run.json").write_text(json.dumps(record))
    session = json.loads((folder / "session.json").read_text())
    session["sha256"] = {"run.json": digest(folder / "run.json")}
    (folder / "session.json").write_text(json.dumps(session))


def _is_refused(folder):
    try:
        RunResult.load(folder)
    except InputError as error:
        return bool(error.file and error.fix)
    return False


def _page(folder):
    return one_run_page(RunResult.load(folder))


def _refused(folder):
    with pytest.raises(InputError) as refused:
        _page(folder)
    assert refused.value.fix
    return refused.value


def test_a_run_that_is_whole_has_a_page(folder):
    assert _page(folder)


@pytest.mark.parametrize("name", _TABLES)
def test_a_table_of_which_a_byte_has_changed_is_refused_by_name(folder, name):
    file = folder / f"{name}.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    error = _refused(folder)
    assert str(error.file).endswith(f"{name}.parquet")
    assert error.column == "sha256"


@pytest.mark.parametrize("name", _TABLES)
def test_a_table_that_is_gone_is_refused_by_name(folder, name):
    (folder / f"{name}.parquet").unlink()
    assert name in str(_refused(folder))


def test_a_table_of_another_run_is_refused(folder, sample_run):
    shutil.copy(sample_run.folder / "decisions.parquet", folder)
    assert "decisions.parquet" in str(_refused(folder))


def test_a_table_that_the_run_did_not_write_is_refused(folder):
    shutil.copy(folder / "jobs.parquet", folder / "reports.parquet")
    with pytest.raises(InputError, match=r"a file that run\.json names"):
        RunResult.load(folder).table("reports")


def test_a_record_that_was_edited_is_refused(folder):
    file = folder / "run.json"
    file.write_text(file.read_text().replace('"n_scale_ups": ', '"n_scale_ups": 1'))
    assert str(_refused(folder).file).endswith("run.json")


@pytest.mark.parametrize("entry", ["idle_node_us", "useful_node_us", "allocated_node_us", "gross_samples"])
def test_a_ledger_that_does_not_close_is_refused(folder, entry):
    document = json.loads((folder / "run.json").read_text())
    document["summary"]["ledger"][entry] += 1
    _write_signed(folder, document)
    assert "ledger of the run does not close" in str(_refused(folder))


@pytest.mark.parametrize("name", _TABLES)
@pytest.mark.parametrize("damage", ["left out", "of text"])
def test_a_column_that_is_not_as_it_is_written_is_refused(folder, name, damage):
    _without_table_checksums(folder)
    file = folder / f"{name}.parquet"
    table = pq.read_table(file)
    for column in table.column_names:
        place = table.column_names.index(column)
        if damage == "left out":
            changed = table.drop_columns([column])
        else:
            changed = table.set_column(place, column, _texts(table))
        if changed.schema.equals(table.schema):
            continue
        pq.write_table(changed, file)
        with pytest.raises(InputError) as refused:
            RunResult.load(folder).table(name)
        assert refused.value.column == column
        assert str(refused.value.file).endswith(f"{name}.parquet")


def _texts(table):
    return pa.array([["zz"]] * table.num_rows, pa.list_(pa.string()))


def _paths(document, before=()):
    for key, value in document.items():
        yield (*before, key), value
        if isinstance(value, dict):
            yield from _paths(value, (*before, key))


def _set(document, path, value):
    for key in path[:-1]:
        document = document.get(key) if isinstance(document, dict) else None
    if not isinstance(document, dict):
        return
    if value is _GONE:
        document.pop(path[-1], None)
    else:
        document[path[-1]] = copy.deepcopy(value)


@pytest.mark.often("run.json-text", "run.json-null", "session.json-null", "session.json-beyond floats")
@pytest.mark.parametrize("value", _VALUES.values(), ids=_VALUES)
@pytest.mark.parametrize("name", ["run.json", "session.json"])
def test_an_entry_that_is_something_else_is_refused_or_does_no_harm(folder, name, value):
    file = _without_table_checksums(folder) / name
    original = json.loads(file.read_text())
    harmless = {False: copy.deepcopy(original), True: copy.deepcopy(original)}
    n_refused = 0

    def write(document):
        if name == "run.json":
            _write_signed(folder, document)
        else:
            file.write_text(json.dumps(document))

    for path, before in _paths(original):
        changed = copy.deepcopy(original)
        _set(changed, path, value)
        write(changed)
        if _is_refused(folder):
            n_refused += 1
        else:  # all of them at once: objects apart, as there is nothing to change in one that is gone
            _set(harmless[isinstance(before, dict)], path, value)
    assert n_refused > (60 if name == "run.json" else 4 if value not in (0, None) else 1)
    for changed in harmless.values():
        write(changed)
        assert _page(folder)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "1e999"])
def test_what_is_no_number_in_json_is_refused(folder, constant):
    file = folder / "run.json"
    file.write_text(file.read_text().replace('"schema_version"', f'"x": {constant}, "schema_version"'))
    with pytest.raises(InputError, match=r"run\.json is no JSON document"):
        RunResult.load(folder)
