"""Gantt chart of nodes: rows, bars, and limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.report.figures import node_gantt as module
from bfreplay.report.figures.figure import NotForThisRunError, NothingToShowError
from bfreplay.report.figures.node_gantt import NODES, node_gantt
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log
from tests.report.figures.drawn import check_page


@pytest.fixture(scope="module")
def run():
    """Two nodes, the second from 20 s on; ``late`` waits until ``early`` has left at 15 s."""
    jobs = JobSet([job("early", work=150.0, rates=(0.0, 10.0)), job("late", submit_s=1, work=1e6)])
    return replay_log(
        log(2, [(20, 1, True)], 60, idle_first=[0]),
        jobs,
        EqualSharePolicy(),
        ReplaySettings(record_nodes=True),
        efficiency=False,
        bound=False,
    )


def steps(series, start_us):
    return list(zip(((series.edge_us[:-1] - start_us) / SECOND).tolist(), series.mean.tolist(), strict=True))


def test_a_row_tells_which_job_held_the_node_when(run):
    found = node_gantt(run)
    start_us = found.span.start_us
    assert found.jobs == ("early", "late")
    assert steps(found.series_of(0), start_us) == [(0, 1), (15, 2)]
    assert steps(found.series_of(1), start_us) == [(0, 0), (20, 2)]
    assert NODES.words({"": found}) == (
        "2 jobs held 2 nodes; colours repeat after eight jobs, and pointing at a bar names its job."
    )


def test_page_and_picture_have_all_nodes(run):
    found = node_gantt(run)
    page = check_page(NODES.page({"A": found, "B": found}))
    assert [trace["holders"] for trace in page.traces] == [["early", "late"]] * 2
    assert set(page.series) == {f"{label}: {node}" for label in "AB" for node in found.nodes}
    assert all(page.layout[axis]["fixedrange"] is False for axis in ("yaxis", "yaxis2"))
    figure = NODES.draw({"": found})
    assert sum(len(bars.get_segments()) for bars in figure.axes[0].collections) == len(found.node) == 3


def test_the_nodes_with_the_most_node_time_are_shown_and_the_words_say_so(run, monkeypatch):
    monkeypatch.setattr(module, "MOST_NODES", 1)
    found = node_gantt(run)
    assert (len(found.nodes), found.n_nodes, set(found.node.tolist())) == (1, 2, {0})
    assert "of which the 1 with the most node time are shown" in NODES.words({"": found})
    monkeypatch.setattr(module, "_MOST_INTERVALS", 0)
    assert node_gantt(run).nodes == ()


def test_a_part_of_the_window_is_cut_at_its_ends(run):
    found = node_gantt(run)
    part = found.between(found.span.start_us + 10 * SECOND, found.span.start_us + 18 * SECOND)
    assert np.array_equal((part.to_us - part.from_us) // SECOND, [5, 3])
    empty = replace(found, from_us=found.to_us, to_us=found.to_us)
    with pytest.raises(NothingToShowError):
        empty.between(found.span.start_us, found.span.start_us + SECOND)


def test_a_run_that_did_not_record_nodes_has_none(sample_run):
    with pytest.raises(NotForThisRunError, match="record-nodes"):
        node_gantt(sample_run)
