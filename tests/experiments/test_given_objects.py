"""Objects in place of files: the same results as from files, through worker processes, and records that say so."""

import copy
import json
import pickle
import tomllib
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest

import bfreplay
from bfreplay import InputError, JobSet, NodeEvents, RunOptions
from bfreplay.datasets.log.event_tables import LogHeader
from bfreplay.experiments import given_objects
from bfreplay.experiments.given_objects import digest_of
from bfreplay.experiments.sweep import run_sweep
from bfreplay.workload import Orders, Verdict
from tests.experiments.sweep.small_sweeps import Inline
from tests.experiments.test_finish import JOBS
from tests.experiments.tuning.little_logs import write_log
from tests.replay.tiny import job, log

CAMPAIGN = """
[campaign]
trials = 4
parallel = 2
[trial]
epochs = 2
samples_per_epoch = 4_000
min_nodes = 1
max_nodes = 4
scale_up_cost_s = 20
scale_down_cost_s = 10
curve = "amdahl(rate_1=20, serial=0.02)"
[pruner]
kind = "median"
"""
QUICK = {"efficiency": False, "bound": False}


class Sent(Inline):
    """Sends tasks as another process would get them."""

    def run_tasks(self, work, tasks):
        return super().run_tasks(work, {key: pickle.loads(pickle.dumps(task)) for key, task in tasks.items()})


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Sent)
    write_log(tmp_path / "events.csv")
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "search.toml").write_text(CAMPAIGN)
    return tmp_path


def in_memory(events: NodeEvents) -> NodeEvents:
    rows = events.to_frame()
    n_nodes, us = len(events.nodes), rows["time"].to_numpy("datetime64[us]").astype(np.int64)
    node, state = rows["node"].cat.codes.to_numpy(), rows["state"].cat.codes.to_numpy()
    return NodeEvents.from_arrays(
        events.nodes,
        state[:n_nodes],
        us[n_nodes:],
        node[n_nodes:],
        state[n_nodes:],
        events.window_start_us,
        events.window_end_us,
    )


def plain(finished):
    """All that does not name the inputs, or depend on their names."""
    record = msgspec.structs.replace(finished.record, inputs=None, config=None)
    return [record.to_json() | {"starts": None}, finished.table.drop(columns="run").to_dict()]


def test_finish_takes_objects_and_has_the_results_of_files(files):
    expected = bfreplay.finish("events.csv", "jobs.csv", starts=3)
    events, jobs = bfreplay.load_events("events.csv"), bfreplay.load_jobs("jobs.csv")
    for given in ((events, "jobs.csv"), (in_memory(events), JobSet(jobs, submit_is_relative=True))):
        found = bfreplay.finish(*given, starts=3)
        assert plain(found) == plain(expected)
        assert found.record.config == expected.record.config
        assert [each.name for each in found.record.inputs.events] == [each.name for each in given[0].sources]


@pytest.mark.parametrize("optuna", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["random", "optuna"])
def test_a_campaign_is_a_file_an_object_or_a_mapping(files, optuna):
    text = CAMPAIGN + ('[optuna]\nsampler = "random"\n[search.lr]\nlow = 0.001\nhigh = 0.1\n' if optuna else "")
    (files / "search.toml").write_text(text)
    expected = bfreplay.finish("events.csv", "search.toml", starts=2)
    by_mapping = bfreplay.load_campaign(
        {**tomllib.loads(text), "campaign": {"trials": 4, "parallel": 2, "name": "search"}}
    )
    for campaign in (bfreplay.load_campaign("search.toml"), by_mapping):
        found = bfreplay.finish("events.csv", campaign, starts=2)
        assert plain(found) == plain(expected)
        assert found.record.inputs.is_search
        assert [each.name for each in found.record.inputs.jobs] == [campaign.sources[0][0]]
    assert by_mapping.sources[0][0] == "<dict>"
    run = bfreplay.replay_log("events.csv", by_mapping, **QUICK)
    assert run.summary == bfreplay.replay_log("events.csv", "search.toml", **QUICK).summary


def test_tune_takes_objects_and_has_the_table_of_files(files):
    grid = {"t_fwd": [20, 300], "max_parallel": [1, 2]}
    expected = bfreplay.tune("events.csv", "jobs.csv", **grid, out="files")
    jobs = bfreplay.load_jobs("jobs.csv")
    found = bfreplay.tune(bfreplay.load_events("events.csv"), jobs, **grid, out="objects")
    assert found.table.equals(expected.table)
    assert found.record.config == expected.record.config
    saved = json.loads((files / "objects" / "tuning.json").read_text())
    assert [each["name"] for each in saved["inputs"]["jobs"]] == ["jobs.csv"]
    swept = json.loads((files / "objects" / "sweep" / "sweep.json").read_text())
    assert swept["spec"]["runs"][0]["jobs"] == f"<JobSet {digest_of(jobs)[:8]}>"
    assert {tuple(run["paths"]) for run in swept["runs"].values()} == {("events",)}
    listed = bfreplay.tune("events.csv", list(jobs), **grid, unlimited_work=True)
    assert listed.record.inputs.n_jobs == 2


def test_a_sweep_of_objects_has_a_row_for_each_of_them(files):
    events, jobs = bfreplay.load_events("events.csv"), bfreplay.load_jobs("jobs.csv")
    half = JobSet([replace(each, work_samples=each.work_samples / 2) for each in jobs], submit_is_relative=True)
    found = bfreplay.sweep([RunOptions(events=events, jobs=each, **QUICK) for each in (jobs, half)], "out")
    assert found.table["jobs"].tolist() == [f"<JobSet {digest_of(each)[:8]}>" for each in (jobs, half)]
    assert found.table["last_finish"].nunique() == 2
    spec = {"run": {"events": events, **QUICK}, "vary": {"jobs": [jobs, half, "jobs.csv"]}}
    again = bfreplay.sweep(spec, "out")
    assert again.n_reused == 2
    assert again.table["jobs"].tolist() == [*found.table["jobs"], "jobs.csv"]


def test_only_equal_content_is_the_same_object(files):
    events, jobs = bfreplay.load_events("events.csv"), bfreplay.load_jobs("jobs.csv")
    assert digest_of(jobs) == digest_of(JobSet(list(jobs), submit_is_relative=True))
    assert digest_of(events) == digest_of(bfreplay.load_events("events.csv"))
    memory = in_memory(events)
    middle_us = (events.window_start_us + events.window_end_us) // 2
    different = [
        *(events, events.between(events.window_start_us, middle_us), bfreplay.load_campaign("search.toml")),
        *(memory, memory.between(memory.window_start_us, middle_us), jobs, JobSet(jobs), JobSet(jobs[:1])),
        JobSet([replace(jobs[0], throughput=jobs[1].throughput), jobs[1]], submit_is_relative=True),
        log(2, [(10, 1, True)], 60),
        log(2, [(11, 1, True)], 60),
    ]
    digests = [digest_of(each) for each in different]
    assert len(set(digests)) == len(digests)
    campaign = bfreplay.load_campaign("search.toml")
    before = digest_of(campaign)
    bfreplay.replay_log(events, campaign, **QUICK)
    assert digest_of(campaign) == before


@dataclass
class Halves:
    """A curve of a user that is not hashable."""

    rate: float
    last_nodes = 64

    def table(self, max_nodes):
        return self.rate * np.arange(max_nodes + 1) / 2


def test_a_log_in_memory_is_read_once_for_the_digests_of_many_runs(files, monkeypatch):
    events = in_memory(bfreplay.load_events("events.csv"))
    jobs = JobSet([replace(each, throughput=Halves(10.0)) for each in bfreplay.load_jobs("jobs.csv")])
    passes = []
    monkeypatch.setattr(given_objects, "LogHeader", Counting(passes))
    run_sweep.plan_of([RunOptions(events=events, jobs=jobs, t_fwd=each, **QUICK) for each in range(10, 20)])
    assert len(passes) == 1


class Counting:
    def __init__(self, passes):
        self.passes = passes

    def of(self, events):
        self.passes.append(events)
        return LogHeader.of(events)


def test_a_file_that_changes_behind_an_object_is_refused(files):
    events = bfreplay.load_events("events.csv")
    plan = run_sweep.plan_of([RunOptions(events=events, jobs="jobs.csv", **QUICK)])
    (files / "events.csv").write_text((files / "events.csv").read_text().replace("true", "false", 1))
    error = bfreplay.sweep(plan, "out").table["error"][0]
    assert error.startswith("the file of the events has changed since the sweep began")


class OneJob:
    """A job source of a user, in a module that a worker can import."""

    name, higher_is_better, sources = "one-job", True, ()

    def begin(self, window_start_us, window_end_us):
        self.jobs = [job("only", work=100.0, submit_s=0)]

    def ask(self, now_us):
        jobs, self.jobs = self.jobs, []
        return Orders(submit=tuple(replace(each, submit_us=now_us) for each in jobs))

    def tell(self, report):
        return Verdict()

    def describe(self):
        return {"source": self.name}


def test_a_job_source_of_a_user_is_sent_to_workers_or_refused_with_the_reason(files):
    source = OneJob()
    assert bfreplay.finish("events.csv", source, starts=2).record.n_done == 2
    (run,) = run_sweep.plan_of([RunOptions(events="events.csv", jobs=source, **QUICK)]).runs.values()
    assert list(run.content["code"]) == [f"{__name__}:OneJob"]
    source.score = lambda: 0
    with pytest.raises(InputError, match="a copy of the log and the jobs for other processes cannot be made"):
        bfreplay.finish("events.csv", source, starts=2)


def test_objects_and_their_files_are_not_given_together(files):
    for call in (bfreplay.finish, bfreplay.tune, bfreplay.replay_log):
        with pytest.raises(InputError, match="curves is given twice: as an option and by an object as jobs"):
            call("sample", bfreplay.load_jobs("jobs.csv"), curves="curves.csv")
    for wrong, message in (({"events": 5}, "events is of type int"), ({"jobs": 5}, "these are no jobs")):
        with pytest.raises(InputError, match=message):
            RunOptions.from_mapping({"events": "sample", "jobs": "sample", **wrong})
    with pytest.raises(InputError, match=r"the table \[trial\] is missing\n  file: +<campaign>"):
        bfreplay.load_campaign({"campaign": {"trials": 2}})
    with pytest.raises(InputError, match="the file has no key 1"):
        bfreplay.load_campaign({1: 2})


def test_the_tables_of_a_campaign_may_have_numbers_of_numpy_and_nothing_that_no_file_has():
    tables = tomllib.loads(CAMPAIGN)
    plain = bfreplay.load_campaign(tables)
    of_numpy = copy.deepcopy(tables)
    of_numpy["campaign"]["trials"], of_numpy["trial"]["max_nodes"] = np.int64(4), np.int32(4)
    of_numpy["trial"]["samples_per_epoch"] = np.float64(4_000)
    assert bfreplay.load_campaign(of_numpy).describe() == plain.describe()
    assert (plain.name, plain.campaign.models[0].job.max_nodes) == ("campaign", 4)
    with pytest.raises(InputError, match=r"has no key 'trail'\n  file: +<campaign>.toml\n  key: +trail"):
        bfreplay.load_campaign({"campaign": {}, "trail": {}})
    with pytest.raises(InputError, match="a campaign has no function"):
        bfreplay.load_campaign({"campaign": {}, "trial": {"curve": lambda nodes: nodes}})
