"""The decisions of a rerun are compared with the recorded ones, of which few are held at a time."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay.tables import DECISIONS
from bfreplay.runs import rerun
from bfreplay.runs.rerun import ComparedDecisions, EndOfRerun
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log


@pytest.fixture(scope="module")
def run():
    """Seven decisions: two nodes come and go, and jobs that arrive."""
    changes = [(10, 0, False), (20, 1, True), (30, 0, True), (40, 1, False)]
    jobs = JobSet([job("a"), job("b", submit_s=25), job("c", submit_s=35)])
    return replay_log(log(2, changes, 60, idle_first=[0]), jobs, EqualSharePolicy(), efficiency=False, bound=False)


def rows(run):
    table = run.table("decisions")
    columns = [table[name].cast("int64") if name == "time" else table[name] for name in DECISIONS.names]
    for row in zip(*(column.to_pylist() for column in columns), strict=True):
        yield [np.array(value) if name == "counts" else value for name, value in zip(DECISIONS.names, row, strict=True)]


def test_all_rows_up_to_the_last_are_compared_few_at_a_time(run, monkeypatch):
    monkeypatch.setattr(rerun, "_ROWS", 2)
    recorded = [*rows(run)]
    assert len(recorded) == run.n_rows("decisions") == 7
    compared = ComparedDecisions(run, 6)
    for k, row in enumerate(recorded):
        assert (compared.n_rows, compared.value("time")) == (k, row[0])
        assert compared.row()["n_idle"] == row[2]
        assert compared.counts.tolist() == row[DECISIONS.names.index("counts")].tolist()
        assert len(compared._counts) <= 2
        if k == 6:
            with pytest.raises(EndOfRerun):
                compared.append(row)
        else:
            compared.append(row)


def test_a_difference_in_a_later_piece_is_found(run, monkeypatch):
    monkeypatch.setattr(rerun, "_ROWS", 2)
    compared = ComparedDecisions(run, 6)
    recorded = [*rows(run)]
    for row in recorded[:5]:
        compared.append(row)
    recorded[5][2] += 1
    with pytest.raises(InputError, match="n_idle is "):
        compared.append(recorded[5])
