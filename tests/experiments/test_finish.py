"""``finish`` from files to the record."""

import json
import math
import warnings

import pytest

import bfreplay
from bfreplay.datasets.log.events import with_node_types
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.experiments import finish_times
from bfreplay.experiments.finish_times import finish
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import run_sweep
from bfreplay.policies import BFTrainerPolicy
from bfreplay.result_folders.finish import Finish
from tests.experiments.sweep.small_sweeps import Inline
from tests.experiments.tuning.little_logs import END, write_log
from tests.replay.tiny import SECOND

JOBS = """name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve,submit_after_s
small,1,2,10,5,5000,0:0 1:10 2:18,0
large,1,4,10,5,100000,0:0 1:20 2:38 4:60,60
"""


REFUSED = (
    "cluster",
    "unlimited_work",
    "until_done",
    "semantics",
    "efficiency",
    "bound",
    "fairness",
    "ideal",
    "batch_jobs",
    "record_nodes",
)
"""Options of a run that are none of ``finish``."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    write_log(tmp_path / "events.csv")
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def found(jobs="jobs.csv", **given):
    return finish("events.csv", jobs, **{"starts": 6, **given})


def alone(**given):
    return RunOptions(jobs="jobs.csv", efficiency=False, bound=False, max_parallel=10, **given).run()


def test_every_start_ends_as_the_run_of_its_window_by_itself(files):
    record = found().record
    assert {each.is_done for each in record.starts} == {True, False}
    for start in record.starts:
        run = alone(events="events.csv", window=(start.time, f"{END}Z"))
        end_us = run.summary.last_finish_us if start.is_done else run.record.config.window_end_us
        assert (run.summary.last_finish_us is not None) == start.is_done
        assert start.duration_s == (end_us - start.time_us) / 1e6


def test_warnings_are_of_what_was_asked_for(files):
    """On one node, which is tried for an answer, a job of two can never run."""
    (files / "jobs.csv").write_text(JOBS.replace("large,1,4", "large,2,4"))
    assert not [each for each in found().record.warnings if "could never run" in each]
    asked = found(dedicated=1).record.warnings
    assert [
        each for each in asked if each.startswith("1 of 2 jobs could never run: large needs 2 nodes, and at most 1")
    ]


def test_warnings_of_the_starts_are_those_of_the_answer(files):
    assert "uses deadlines, but none of 2 jobs has one" in "".join(found(objective="deadline").record.warnings)


def test_dedicated_nodes_are_a_cluster_with_the_same_limits(files):
    record = found(dedicated=2, max_parallel=1).record
    run = RunOptions(cluster="node=2", jobs="jobs.csv", max_parallel=1).run()
    assert record.dedicated_s(2) == run.summary.last_finish_us / 1e6
    assert record.config.options["max-parallel"] == 1
    assert max(each.nodes for each in record.dedicated) == 3  # the log has no more, the jobs could use 4
    (files / "jobs.csv").write_text(JOBS.replace("large,1,4", "large,1,2"))
    assert max(each.nodes for each in found(max_parallel=1).record.dedicated) == 2


def test_idle_nodes_may_be_left_alone_and_dedicated_ones_are_not(files):
    plain, spared = found(dedicated=2).record, found(dedicated=2, min_age="6min", reserve=1, notice=True).record
    assert spared.dedicated_s(2) == plain.dedicated_s(2)
    first = [record.starts[0].duration_s for record in (plain, spared)]
    assert first[0] < first[1]


def test_the_worth_is_proven_by_the_times_on_as_many_nodes_and_on_one_fewer(files):
    record = found().record
    median_s = record.quantiles.median_s
    assert record.worth.nodes > 1
    assert record.dedicated_s(record.worth.nodes) <= median_s < record.dedicated_s(record.worth.nodes - 1)
    assert record.answer.endswith(f"worth {record.worth.nodes} dedicated nodes.")


def test_idle_nodes_may_be_worth_more_than_the_most_that_were_tried(files, monkeypatch):
    monkeypatch.setattr(finish_times, "smallest_cluster", lambda *_, **__: None)
    record = found(dedicated=1).record
    assert (record.worth.meaning, record.worth.nodes) == ("more than", 3)


def test_an_unknown_median_is_more_than_the_longest_time_and_bounds_the_worth(files):
    (files / "jobs.csv").write_text(JOBS.replace("100000", "470000"))
    record = found().record
    assert record.quantiles.median_s is None
    assert record.quantiles.observed_s == max(each.duration_s for each in record.starts)
    assert record.worth.meaning == "at most"
    assert record.dedicated_s(record.worth.nodes) <= record.quantiles.observed_s
    assert "(6 of 6 starts are unfinished when the log ends)" in record.answer


@pytest.mark.slow
def test_starts_cover_the_log_up_to_the_latest_from_which_the_jobs_could_be_done(files):
    record = found(starts=48).record
    first_us, end_us = record.inputs.window_us
    latest_us = end_us - min(each.duration_s for each in record.dedicated) * 1e6
    times = [each.time_us for each in record.starts]
    assert first_us <= min(times) < max(times) <= latest_us
    assert max(times) - min(times) > 0.9 * (latest_us - first_us)


def test_a_log_that_is_just_long_enough_has_one_start(files):
    record = found().record
    start_us, fastest_s = record.inputs.window_us[0], min(each.duration_s for each in record.dedicated)
    window = tuple(iso_utc(start_us + us) for us in (0, round(fastest_s * SECOND)))
    assert [each.time_us for each in found(window=window).record.starts] == [start_us]


def test_a_run_that_failed_is_tried_again(files, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(BFTrainerPolicy, "decide", lambda *_: 1 / 0)
        with pytest.raises(BfreplayError, match="division by zero"):
            found(out="out")
    assert found(out="out").record == found().record


def test_a_folder_is_read_again_and_resumed_without_repeating_runs(files):
    first = found(out="out")
    assert Finish.load("out").record == first.record == found().record
    assert Finish.load("out").table["run"].tolist() == [each.run for each in first.record.starts]
    text = (files / "out" / "finish.json").read_bytes()
    (files / "out" / "finish.json").unlink()  # as if killed
    victim = files / "out" / "starts" / "runs" / first.record.starts[2].run
    for each in victim.iterdir():
        each.unlink()
    victim.rmdir()
    runs = {path: path.stat().st_mtime_ns for path in (files / "out").glob("*/runs/*/run.json")}
    found(out="out")
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
    assert (files / "out" / "finish.json").read_bytes() == text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(out="out")  # the same answer again
    with pytest.warns(UserWarning, match="the earlier answer in .*out, of other inputs or options, is replaced"):
        found(out="out", seed=3)
    with pytest.raises(OutputExistsError):
        found(out=files)


def test_the_seed_and_the_number_of_starts_change_the_starts(files):
    times = [each.time for each in found().record.starts]
    assert len(times) == 6
    assert times != [each.time for each in found(seed=1).record.starts]


def test_jobs_with_calendar_times_are_refused(files):
    fixed = JOBS.replace("submit_after_s", "submit_time").replace(",0\n", ",2024-05-01T00:00:00\n")
    (files / "fixed.csv").write_text(fixed.replace(",60\n", ",2024-05-01T00:01:00\n"))
    with pytest.raises(InputError, match="calendar times") as refused:
        found(jobs="fixed.csv")
    assert "submit_after_s" in refused.value.fix


def test_hours_and_weekdays_are_those_of_a_time_zone(files):
    assert found().record.config.time_zone == "UTC"
    assert found(tz="Europe/Paris").record.config.time_zone == "Europe/Paris"
    with pytest.raises(InputError, match="time zone"):
        found(tz="Mars/Base")


def test_nodes_of_several_types_are_refused_and_the_only_type_is_dedicated(files):
    typed = JOBS.replace("submit_after_s", "node_types").replace(",0\n", ",v100\n").replace(",60\n", ",v100\n")
    (files / "typed.csv").write_text(typed)
    record = found(jobs="typed.csv", node_type="v100").record
    assert record.dedicated_s(record.worth.nodes) is not None
    log = bfreplay.load_events("events.csv")
    bfreplay.write_events(with_node_types(log, {"a": ["n1", "n2"], "b": ["n3"]}), "two.parquet")
    with pytest.raises(InputError, match="several types"):
        finish("two.parquet", "jobs.csv", starts=2)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"starts": 0}, "starts is below 1"),
        ({"dedicated": 0}, "dedicated is below 1"),
        ({"seed": -1}, "seed is below 0"),
        ({"measure": (0, 1)}, "measure"),
        *(({name: True}, f"finish has no option '{name}'") for name in REFUSED),
        ({"scheduler": "tcp://x:1"}, "add --out"),
    ],
)
def test_what_cannot_be_is_refused(files, given, problem):
    with pytest.raises(InputError, match=problem):
        found(**given)


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        (JOBS.replace("100000", "1e9"), "the log is too short"),
        (JOBS.replace("large,1,", "large,4,"), "never all done, even on 3 dedicated nodes"),
    ],
)
def test_jobs_that_cannot_be_done_within_the_log_are_refused(files, jobs, problem):
    (files / "jobs.csv").write_text(jobs)
    with pytest.raises(InputError, match=problem):
        found()


def test_the_record_is_plain_json(files):
    found(out="out")
    document = json.loads((files / "out" / "finish.json").read_text())
    assert document["answer"].startswith("All jobs are done after ")
    assert document["inputs"]["is_search"] is False
    assert [each["name"] for each in document["inputs"]["jobs"]] == ["jobs.csv"]


@pytest.mark.parametrize("n_starts", [16, 40])
def test_more_starts_that_overlap_give_no_interval(files, n_starts):
    (files / "more.csv").write_text(JOBS.replace("100000", "150000"))
    record = found(against="more.csv", starts=n_starts).record
    interval_s = (record.starts[-1].time_us - record.starts[0].time_us) / 1e6 / (n_starts - 1)
    n_overlapping = math.ceil(record.against.quantiles.median_s / interval_s)
    assert record.against.quantiles.median_s > record.quantiles.median_s
    assert f" blocks of {n_overlapping} (the range of correlation)" in record.against.later_s.why_no_interval
    assert record.against.later_s.why_no_interval.endswith("use a longer log")


def test_other_jobs_are_compared_from_the_same_starts(files):
    (files / "more.csv").write_text(JOBS.replace("100000", "150000"))
    both, one, other = found(against="more.csv"), found(), found("more.csv")
    against = both.record.against
    assert both.record.starts == one.record.starts
    pairs = list(zip(one.record.starts, against.starts, strict=True))
    assert [start.time_us for start in against.starts] == [start.time_us for start in one.record.starts]
    later_s = [two.duration_s - first.duration_s for first, two in pairs if first.is_done or two.is_done]
    assert 0 < len(later_s) < len(pairs)  # and of these some are censored: the log ends
    assert against.later_s.value == pytest.approx(sum(later_s) / len(later_s))
    assert against.later_s.n == len(later_s)
    assert "more.csv is done" in both.answer
    assert f"later than jobs.csv on average over the {len(later_s)} starts that either finished (no" in both.answer
    assert against.quantiles.observed_s == max(start.duration_s for start in against.starts)
    assert "use more (--starts)" in both.answer
    assert other.record.against is None
    dated = (
        JOBS.replace("submit_after_s", "submit_time").replace(",60\n", ",2024-01-01\n").replace(",0\n", ",2024-01-01\n")
    )
    (files / "dated.csv").write_text(dated)
    with pytest.raises(InputError, match="calendar"):
        found(against="dated.csv")
    with pytest.raises(InputError) as caught:
        found(against="mysql://me:secret@host/db")
    assert caught.value.column == "against"
