"""Runs beside upper bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bfreplay.experiments.regret as regret_module
from bfreplay import load_events, load_jobs, replay_log
from bfreplay.bounds import Effort, Kind, UpperBound
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.experiments.regret import Regret, regret, render
from bfreplay.policies import BFTrainerPolicy, Decision, EqualSharePolicy, Policy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.saved_inputs import MissingInputsError
from bfreplay.workload import Orders
from tests.replay.test_job_sources import Scripted, reporting
from tests.replay.tiny import job, log

FEW = 12
"""Evaluations of a search in these tests."""

_INTERVALS = "".join(
    f"2024-05-01T00:{minute:02d}:{second:02d},n{node},{str(second == 0).lower()}\n"
    for minute in range(1, 20)
    for second in (0, 20)
    for node in (2, 3)
)
EVENTS = "time,node,idle\n2024-05-01T00:00:00,n1,true\n" + _INTERVALS
JOBS = """name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve
small,1,2,10,5,{work},0:0 1:10 2:18
large,1,4,10,5,{work},0:0 1:20 2:38 4:60
"""


class Nothing(Policy):
    """Lets nobody run."""

    name = "nothing"

    def decide(self, state):
        return Decision(np.zeros(state.n_jobs, np.int64))


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "jobs.csv").write_text(JOBS.format(work="1e9"))
    (tmp_path / "short.csv").write_text(JOBS.format(work="1000"))
    return tmp_path


def _run(there: Path, policy, *, jobs="jobs.csv", out=None, max_parallel=2, unlimited_work=True) -> RunResult:
    return replay_log(
        there / "events.csv",
        there / jobs,
        policy,
        ReplaySettings(max_parallel),
        unlimited_work=unlimited_work,
        efficiency=False,
        out=None if out is None else there / out,
    )


@pytest.fixture
def n_bounds(monkeypatch) -> list[dict]:
    """Options of every bound that is looked for."""
    asked, search = [], regret_module.upper_bound

    def counted(*arguments, **options) -> UpperBound:
        asked.append(options)
        return search(*arguments, **options)

    monkeypatch.setattr(regret_module, "upper_bound", counted)
    return asked


def test_a_run_is_put_beside_the_bound_that_it_tells_itself(there):
    run = _run(there, BFTrainerPolicy(120.0), out="one")
    (found,) = regret([there / "one"], effort="quick")
    told = run.summary["bound"]
    assert found.bound.samples == told["samples"]
    assert found.samples == run.summary["ledger"]["samples"]
    assert found.share == told["share"] == found.samples / found.bound.samples
    assert found.regret == 1 - found.share
    assert 0 < found.regret < 1
    assert (found.run, found.max_parallel) == ("one", 2)
    assert found.policy == "bftrainer, decided by exact, T_fwd 120 s"


def test_a_thorough_bound_is_no_higher(there):
    run = _run(there, BFTrainerPolicy(120.0))
    (quick,) = regret([run], effort=Effort.QUICK)
    (thorough,) = regret([run], evaluations=60)
    assert thorough.bound.kind is quick.bound.kind is Kind.PRICED
    assert thorough.samples <= thorough.bound.samples < quick.bound.samples
    assert thorough.bound.samples <= thorough.bound.free_rescaling_samples == quick.bound.free_rescaling_samples


def test_runs_that_share_their_inputs_share_a_bound_found_once(there, n_bounds):
    runs = [
        _run(there, BFTrainerPolicy(120.0), out="a"),
        _run(there, EqualSharePolicy(), out="b"),
        _run(there, BFTrainerPolicy(5.0)),
    ]
    found = regret([there / "a", *runs[1:]], evaluations=FEW)
    assert len(n_bounds) == 1
    assert [each.run for each in found] == ["a", "b", "in memory"]
    assert len({each.bound for each in found}) == 1
    assert [each.samples for each in found] == [run.summary["ledger"]["samples"] for run in runs]


def test_other_jobs_fewer_at_once_or_another_window_have_bounds_of_their_own(there, n_bounds):
    whole = _run(there, BFTrainerPolicy(120.0))
    part = replay_log(
        there / "events.csv",
        there / "jobs.csv",
        window=tuple(map(iso_utc, _minutes(whole, 5, 15))),
        max_parallel=2,
        unlimited_work=True,
        efficiency=False,
    )
    runs = [
        whole,
        part,
        _run(there, None, max_parallel=1),
        _run(there, None, unlimited_work=False),
        _run(there, None, jobs="short.csv", unlimited_work=False),
        _run(there, EqualSharePolicy()),
    ]
    found = regret(runs, effort="quick")
    assert len(n_bounds) == 5
    assert len({each.bound.samples for each in found[:3]}) == 3
    assert found[5].bound == found[0].bound
    assert found[3].bound.samples == pytest.approx(found[0].bound.free_rescaling_samples)
    assert found[4].bound.samples == pytest.approx(2000.0)


def _minutes(run: RunResult, first: int, last: int) -> tuple[int, int]:
    start_us = run.record["config"]["window_start_us"]
    return start_us + first * 60_000_000, start_us + last * 60_000_000


def test_runs_that_are_over_are_told_the_earliest_end_whoever_comes_first(there):
    idle = _run(there, Nothing(), jobs="short.csv", unlimited_work=False)
    done = _run(there, BFTrainerPolicy(120.0), jobs="short.csv", unlimited_work=False)
    assert idle.summary["last_finish_us"] is None
    for runs in ([idle, done], [done, idle]):
        found = regret(runs)
        start_us = done.record["config"]["window_start_us"]
        assert found[0].bound == found[1].bound
        assert start_us < found[0].bound.earliest_finish_us <= done.summary["last_finish_us"]
    assert f"no policy can finish before {iso_utc(found[0].bound.earliest_finish_us // 10**6 * 10**6)}" in render(found)
    (alone,) = regret([idle])
    assert alone.bound.earliest_finish_us is None  # not asked for
    assert alone.share == 0.0


def test_a_run_of_a_job_source_is_refused_before_anything_is_searched(there, n_bounds):
    plain = _run(there, None)
    campaign = replay_log(
        log(2, [(50, 1, True)], 100, idle_first=(0,)),
        Scripted([Orders(submit=(reporting("a", 100.0),))]),
        EqualSharePolicy(),
        efficiency=False,
        out=there / "campaign",
    )
    assert campaign.summary["bound"] is None
    with pytest.raises(InputError) as caught:
        regret([plain, there / "campaign"])
    assert caught.value.problem.startswith("there is no upper bound for a job source")
    assert caught.value.value == "scripted"
    assert str(there / "campaign") == caught.value.file
    assert n_bounds == []


def test_inputs_that_were_moved_are_named_and_others_refused(there):
    _run(there, None, out="run")
    (there / "events.csv").rename(there / "moved.csv")
    (there / "jobs.csv").rename(there / "old-jobs.csv")
    with pytest.raises(MissingInputsError, match="events of the run are no longer"):
        regret([there / "run"], effort="quick")
    with pytest.raises(MissingInputsError, match="jobs of the run are no longer"):
        regret([there / "run"], effort="quick", events=there / "moved.csv")
    places = {"events": there / "moved.csv", "jobs": there / "old-jobs.csv"}
    (found,) = regret([there / "run"], effort="quick", **places)
    assert found.share is not None
    with pytest.raises(InputError, match="content differs"):
        regret([there / "run"], effort="quick", **{**places, "jobs": there / "short.csv"})


def test_a_run_of_objects_says_where_the_log_came_from_and_takes_the_jobs_again(there):
    run = replay_log(load_events(there / "events.csv"), load_jobs(there / "short.csv"), efficiency=False)
    assert run.session.files == {"events": str(there / "events.csv")}
    (found,) = regret([run], effort="quick", jobs=load_jobs(there / "short.csv"))
    assert found.share is not None


def test_a_run_made_in_memory_alone_does_not_say_where_its_inputs_are():
    run = replay_log(log(1, [], 100, idle_first=(0,)), [job()], efficiency=False)
    with pytest.raises(MissingInputsError, match="the path of the events is not recorded"):
        regret([run])


def test_a_folder_that_is_no_run_is_refused(there):
    for folder in (there, there / "nowhere"):
        with pytest.raises(InputError) as caught:
            regret([folder])
        assert str(folder) in str(caught.value)


def test_an_unknown_effort_is_refused_with_those_there_are(there):
    with pytest.raises(InputError, match=r"'quick' or 'thorough'"):
        regret([_run(there, None)], effort="hard")


def test_progress_counts_bounds_and_evaluations(there):
    said = []
    runs = [_run(there, None), _run(there, None, max_parallel=1), _run(there, EqualSharePolicy())]
    regret(runs, evaluations=FEW, progress=lambda *numbers: said.append(numbers))
    assert {(done, n) for done, n, _, _ in said} == {(0, 2), (1, 2)}
    for bound in (0, 1):
        counted = [evaluation for done, _, evaluation, _ in said if done == bound]
        assert counted == list(range(1, len(counted) + 1))
    assert {most for *_, most in said} == {FEW}


def _made(name: str, samples: float, bound: UpperBound) -> Regret:
    return Regret(name, "some policy", 3, samples, bound)


def test_the_table_has_the_best_first_and_each_bound_once():
    bound = UpperBound(1000.0, Kind.PRICED, 1100.0, None)
    other = UpperBound(0.0, Kind.FREE_RESCALING, 0.0, None)
    text = render([_made("bad", 500.0, bound), _made("none", 0.0, other), _made("good", 951.234, bound)])
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["good", "bad", "none"]
    assert lines[1].split() == ["good", "951", "95.1", "%", "<=", "4.88", "%", "3,", "some", "policy"]
    assert lines[3].split()[2:4] == ["-", "-"]
    assert lines[5:] == [
        "Bound of good, bad: 1,000 samples (rescaling paid, the future known); 1,100 with free rescaling",
        "Bound of none: 0 samples (free rescaling, the future known)",
    ]


@pytest.mark.parametrize(
    ("samples", "left"),
    [
        (1000.0, "0 %"),
        (1000.0 - 1e-6, "0.00100 %"),
        (954.54, "4.55 %"),
        (954.5, "4.55 %"),
        (954.49, "4.56 %"),
        (0.0, "100 %"),
    ],
)
def test_what_is_left_to_gain_is_rounded_up(samples, left):
    text = render([_made("run", samples, UpperBound(1000.0, Kind.WORK, None, None))])
    assert f"<= {left}" in text


def test_json_has_the_bound_and_the_share():
    found = _made("run", 500.0, UpperBound(1000.0, Kind.WORK, None, 7))
    assert found.to_json() == {
        "run": "run",
        "policy": "some policy",
        "max_parallel": 3,
        "samples": 500.0,
        "share": 0.5,
        "regret": 0.5,
        "bound": {"samples": 1000.0, "kind": "work", "free_rescaling_samples": None, "earliest_finish_us": 7},
        "warnings": [],
    }
