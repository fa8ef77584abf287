"""Runs that the figures are tried on: made once, read from their folders, and without what is odd about some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, load_events, load_jobs
from bfreplay.datasets.bundled import sample_events_path, sample_jobs_path
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy, Policy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.workload import Colocation, JobSet, JobSource
from tests.replay.placed import typed_job, typed_log
from tests.replay.tiny import SECOND, job, log
from tests.runs.explain.little_source import Scripted

SAMPLE_DAYS = 1
MANY = 1_500
_HOUR_S = 3_600


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """The first day of the bundled log with the bundled jobs, decided exactly; jobs finish in it."""
    return _sample(tmp_path_factory.mktemp("sample") / "run", BFTrainerPolicy(t_fwd_s=120))


@pytest.fixture(scope="session")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """The same with equal shares."""
    return _sample(tmp_path_factory.mktemp("equal-share") / "run", EqualSharePolicy())


@pytest.fixture(scope="session")
def no_jobs_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Idle nodes come and go, and the source of jobs submits none; a job set has at least one."""
    return _run(tmp_path_factory, _coming_and_going(), Scripted())


@pytest.fixture(scope="session")
def all_idle_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Eight nodes are idle all day; one job finishes, another does not, a third comes late."""
    jobs = JobSet(
        [
            job("short", work=20_000.0, up_s=10.0, down_s=5.0),
            job("endless", submit_s=600, up_s=10.0, down_s=5.0),
            job("late", submit_s=80_000, up_s=10.0, down_s=5.0),
        ]
    )
    return _run(tmp_path_factory, log(8, [], 24 * _HOUR_S, idle_first=range(8)), jobs)


@pytest.fixture(scope="session")
def never_idle_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Two jobs wait all day for nodes that never become idle."""
    return _run(tmp_path_factory, log(8, [], 24 * _HOUR_S), JobSet([job("a"), job("b", submit_s=600)]))


@pytest.fixture(scope="session")
def many_jobs_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Fifteen hundred short jobs, one every 30 s, most of which finish."""
    jobs = [
        replace(
            job(f"trial-{k:04}", submit_s=30 * k, work=600.0 + 200.0 * (k % 5), up_s=1.0, down_s=1.0),
            model=("resnet", "vgg", None)[k % 3],
        )
        for k in range(MANY)
    ]
    return _run(tmp_path_factory, _coming_and_going(), JobSet(jobs))


@pytest.fixture(scope="session")
def packed_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Six jobs of two weights on a cluster of two types, two at a time on some nodes; one misses its deadline."""
    rates = {"v100": (0.0, 10.0), "p100": (0.0, 4.0)}
    jobs = [
        replace(
            typed_job(f"{model}-{k}", rates, work=900.0 + 400 * k, submit_s=25 * k, model=model),
            weight=5.0 if k % 3 == 0 else 1.0,
            deadline_us=(400 if k == 5 else 9_000) * SECOND if k > 3 else None,
        )
        for k, model in enumerate("ababab")
    ]
    together = Colocation(
        {(*pair, 1, kind): (0.8 * rates[kind][1],) * 2 for pair in ("aa", "ab", "bb") for kind in rates}
    )
    folder = tmp_path_factory.mktemp("packed") / "run"
    replay_log(
        fixed_cluster("v100=2,p100=1"),
        JobSet(jobs, colocation=together),
        gavel_policy("max_min_fairness_packed")(GavelOptions(round_s=60.0, restart_s=5.0)),
        ReplaySettings(until_done=True),
        fairness=True,
        out=folder,
    )
    return RunResult.load(folder)


@pytest.fixture(scope="session")
def typed_run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Nodes of two types come and go; the run is about the second and third of four jobs, and ends with them."""
    changes = [(130, 0, False), (250, 0, True), (300, 2, False), (420, 2, True), (500, 1, False)]
    rates = {"v100": (0.0, 10.0), "p100": (0.0, 4.0)}
    jobs = [typed_job(f"job{k}", rates, work=2_500.0, submit_s=30 * k) for k in range(4)]
    folder = tmp_path_factory.mktemp("typed") / "run"
    replay_log(
        typed_log("v100 v100 p100", 3_600, changes),
        JobSet(jobs),
        gavel_policy("max_min_fairness_perf")(GavelOptions(round_s=60.0)),
        ReplaySettings(measured=(1, 3), prices={"p100": 0.5}),
        out=folder,
    )
    return RunResult.load(folder)


def _sample(folder: Path, policy: Policy) -> RunResult:
    events = load_events(sample_events_path())
    start_us = events.window_start_us
    day = events.between(start_us, start_us + SAMPLE_DAYS * 24 * _HOUR_S * SECOND)
    replay_log(day, load_jobs(sample_jobs_path()), policy, out=folder)
    return RunResult.load(folder)


def _run(tmp_path_factory: pytest.TempPathFactory, events: NodeEvents, jobs: JobSet | JobSource) -> RunResult:
    folder = tmp_path_factory.mktemp("odd") / "run"
    replay_log(events, jobs, EqualSharePolicy(), out=folder)
    return RunResult.load(folder)


def _coming_and_going() -> NodeEvents:
    """Eight nodes, idle all but every eighth quarter of an hour, one after another; none is for the first hour."""
    day_s, quarter_s = 24 * _HOUR_S, 900
    first = [(float(_HOUR_S + quarter_s * node), node, True) for node in range(8)]
    pauses = [
        (float(_HOUR_S + quarter_s * k + late_s), k % 8, is_idle)
        for k in range(8, day_s // quarter_s - 6)
        for late_s, is_idle in ((0, False), (quarter_s, True))
    ]
    return log(8, [*first, *pauses], day_s)
