"""The printed summary of a run."""

from __future__ import annotations

from bfreplay import replay_log
from bfreplay.runs import metrics, summary_text
from bfreplay.runs.metric import Metric
from bfreplay.runs.metrics import METRICS, key_figures
from bfreplay.runs.summary_text import render
from bfreplay.wording import WIDTH
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log


def test_a_new_metric_is_printed_and_a_key_figure_by_its_entry_alone(monkeypatch):
    run = replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]))
    entries = [
        Metric("new.share", "a new share", "percent", lambda _: 0.25),
        Metric("new.time_s", "a new time", "seconds", lambda _: 7_200.0),
        Metric("new.none", "no value", "ratio", lambda _: None),
        Metric("plans.zero", "a count of 0", "count", lambda _: 0),
    ]
    for module in (metrics, summary_text):
        monkeypatch.setattr(module, "METRICS", (*METRICS, *entries))
    assert "\nAlso        a new share 25 %, a new time 2 h\n" in render(run)
    assert key_figures(run)["new.time_s"].value == 7_200.0


def test_every_printed_metric_is_one():
    names = {metric.figure_key or metric.column for metric in METRICS}
    assert {name for parts in summary_text._LINES.values() for name in parts} <= names
    assert "\nAlso " not in render(replay_log("sample", "sample"))


def test_lines_break_between_metrics():
    run = replay_log("sample", "sample", efficiency=False, bound=False)
    lines = render(run).splitlines()
    assert max(map(len, lines)) <= WIDTH
    first = next(number for number, line in enumerate(lines) if line.startswith("Batch jobs  "))
    assert lines[first].endswith(",")
    assert lines[first + 1].startswith(" " * 12)


def test_what_the_batch_system_did_not_suffer_is_said():
    lines = render(replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]))).splitlines()
    assert "Rescales    1 up, 0 down, 0 by preemption" in lines
    assert not any(line.startswith("Deadlines") for line in lines)
    assert not any("0 finished" in line for line in lines)


def test_a_ratio_that_is_undefined_is_said():
    run = replay_log(log(2, [], 10, idle_first=[0]), JobSet([job(min_nodes=2)]))
    assert "U           undefined: the same jobs process nothing on 1 dedicated nodes" in render(run).splitlines()
