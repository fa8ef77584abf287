"""Warnings about node counts that jobs may hold although their curves were not measured there."""

from __future__ import annotations

from dataclasses import replace

from bfreplay import replay_log
from bfreplay.datasets import load_jobs
from bfreplay.datasets.bundled import sample_jobs_path
from bfreplay.runs.run_warnings import extrapolation_warnings, shown_warnings
from bfreplay.runs.summary_text import render
from bfreplay.scalability import Amdahl, CommunicationWeak, MeasuredLaw, TabulatedCurve
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log

FROM_64 = TabulatedCurve([0, 64, 128], [0.0, 20.8, 41.0])
"""20.8 / 64 = 0.325 samples/s a node below 64."""
RISES = MeasuredLaw(CommunicationWeak(175.0, 260.0, 0.0), (64, 1024))
"""175 samples/s on 1 node, and 64 * 175 / (1 + 63 * 2 * 260 / 64) = 21.84 on 64."""


def a_job(name, curve, least, most):
    return replace(job(name), throughput=curve, min_nodes=least, max_nodes=most)


def test_counts_below_the_measured_ones_are_named_with_what_the_curve_gives_there():
    jobs = [a_job("a", FROM_64, 1, 128), a_job("b", FROM_64, 64, 128), a_job("c", FROM_64, 1, 100)]
    assert extrapolation_warnings(jobs) == [
        "2 jobs, such as a, may run on 1 to 63 nodes, where the curve was not measured (only on 64 to 128). It gives "
        "0.325 samples/s on 1 and 20.48 samples/s on 63, a straight line to (0, 0). Set min_nodes 64, or measure there."
    ]


def test_a_law_that_gives_more_on_fewer_nodes_than_were_measured_is_called_wrong_there():
    (said,) = extrapolation_warnings([a_job("a", RISES, 1, 64)])
    assert "It gives 175 samples/s on 1 and 21.5 samples/s on 63" in said
    assert "on some count more than the 21.84 on 64: it cannot be right. Set min_nodes 64" in said


def test_a_point_at_more_nodes_than_fit_into_memory_is_no_reason_to_make_a_table():
    curve = TabulatedCurve([0, 2_000_000_000_000], [0.0, 1e12])
    (sentence,) = extrapolation_warnings([a_job("a", curve, 1, 8)])
    assert "It gives 0.5 samples/s on 1 and 4 samples/s on 8, a straight line to (0, 0)" in sentence


def test_counts_above_the_measured_ones_are_named_as_well():
    curve = MeasuredLaw(Amdahl(10.0, 0.0), (1, 4))
    assert extrapolation_warnings([a_job("a", curve, 1, 5), a_job("b", curve, 6, 8)]) == [
        "Job a may run on 5 nodes, where the curve was not measured (only on 1 to 4). It gives 50 samples/s on 5. Set "
        "max_nodes 4, or measure there.",
        "Job b may run on 6 to 8 nodes, where the curve was not measured (only on 1 to 4). It gives 60 samples/s on 6 "
        "and 80 samples/s on 8. Set max_nodes 4, or measure there.",
    ]


def test_a_job_that_stays_within_what_was_measured_and_a_law_without_measurements_raise_no_warning():
    assert extrapolation_warnings([a_job("a", RISES, 64, 1024), a_job("b", Amdahl(1.0, 0.1), 1, 9)]) == []
    assert extrapolation_warnings(load_jobs(sample_jobs_path())) == []


def test_a_run_holds_the_warnings_and_its_summary_begins_with_them():
    run = replay_log(log(4, [], 100.0, range(4)), JobSet([a_job("a", FROM_64, 1, 100)], True))
    (said,) = run.summary["extrapolation"]
    text = " ".join(render(run).split())
    assert said in text
    assert text.index(said) < text.index("Where the idle node-hours went")
    assert not replay_log(log(4, [], 100.0, range(4)), JobSet([job("a")], True)).summary["extrapolation"]


def test_texts_show_three_warnings_and_how_many_more_there_are():
    assert shown_warnings(list("abc")) == ["a", "b", "c"]
    assert shown_warnings(list("abcde"))[3:] == ["2 such warnings more: summary.extrapolation"]
    assert shown_warnings(()) == []
