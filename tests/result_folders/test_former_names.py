"""Run folders of the schema before are read under today's names."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bfreplay import RunResult, replay_log
from bfreplay.cli import main
from bfreplay.result_folders.former_names import NAMES, TABLES, name_of_today
from bfreplay.result_folders.reading import digest

_FORMER = {today: former for former, today in NAMES.items()}
_TABLES = ("decisions", "jobs", "idle_intervals")


def _former(document):
    if isinstance(document, dict):
        return {_FORMER.get(key, key): _former(value) for key, value in document.items()}
    return [_former(each) for each in document] if isinstance(document, list) else document


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory):
    return replay_log("sample", "sample", out=tmp_path_factory.mktemp("today") / "run")


@pytest.fixture(scope="module")
def former(sample_run, tmp_path_factory):
    """The sample run as the schema before wrote it."""
    folder = tmp_path_factory.mktemp("former") / "run"
    shutil.copytree(sample_run.folder, folder)
    record = _former(json.loads((folder / "run.json").read_text()))
    record["schema_version"] = 2
    for name in _TABLES:
        today = folder / f"{name}.parquet"
        file = folder / f"{TABLES.get(name, name)}.parquet"
        table = pq.read_table(today)
        today.unlink()
        # of another table: a column may have one former name here and another there
        names = [_FORMER.get(column, column) for column in table.column_names]
        pq.write_table(table.rename_columns(names), file)
        record["sha256"].pop(today.name)
        record["sha256"][file.name] = digest(file)
    (folder / "run.json").write_text(json.dumps(record))
    session = json.loads((folder / "session.json").read_text())
    session["sha256"]["run.json"] = digest(folder / "run.json")
    (folder / "session.json").write_text(json.dumps(session))
    return folder


def test_a_run_of_the_schema_before_is_read_under_the_names_of_today_with_a_note(former, sample_run):
    with pytest.warns(FutureWarning, match=r"run was made by an earlier version .* until bfreplay 0\.3"):
        run = RunResult.load(former)
    run.check()
    assert run.summary == sample_run.summary
    for name in _TABLES:
        assert run.frame(name).equals(sample_run.frame(name)), name


def test_a_damaged_table_of_such_a_run_is_refused(former, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(former, folder)
    shutil.copy(folder / "jobs.parquet", folder / "holes.parquet")
    with pytest.warns(FutureWarning), pytest.raises(Exception, match="belongs to another run"):
        RunResult.load(folder).check()


def test_a_former_name_is_noted_and_one_of_today_is_not():
    with pytest.warns(FutureWarning, match="'n_grown' is called 'n_scale_ups' now"):
        assert name_of_today("n_grown") == "n_scale_ups"
    assert name_of_today("n_scale_ups") == "n_scale_ups"


def test_a_figure_is_drawn_under_its_former_name(sample_run, tmp_path):
    with pytest.warns(FutureWarning, match="'holes' is called 'idle-intervals' now"):
        result = CliRunner().invoke(main, ["plot", "holes", str(sample_run.folder), "-o", str(tmp_path / "a.png")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a.png").exists()
