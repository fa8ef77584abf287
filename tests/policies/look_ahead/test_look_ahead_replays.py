"""Whole replays by policies that look ahead."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.policies.forward_time import AutoForwardTime
from bfreplay.policies.learning import LearningPolicy
from bfreplay.policies.look_ahead import ForesightPolicy, LookAheadPolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult
from bfreplay.testing import PolicyContract
from bfreplay.workload import JobSet, Orders
from tests.examples import examples
from tests.replay.test_job_sources import Scripted
from tests.replay.tiny import job, job_sets, log, logs

_ALL = pytest.mark.parametrize("name", ["foresight", "look-ahead"])
_MADE = {"foresight": lambda: ForesightPolicy(3, 40.0), "look-ahead": lambda: LookAheadPolicy(2, 2, 6, 40.0)}
"""With so short a memory that look-ahead soon looks, and soon forgets."""


class TestForesightThatSeesLittle(PolicyContract):
    def make(self) -> Policy:
        return ForesightPolicy(1, 60.0)


class TestLookAheadThatRemembersLittle(PolicyContract):
    def make(self) -> Policy:
        return LookAheadPolicy(2, 3, 8, 60.0)


def _replay(events, jobs, policy, settings=None, **options) -> RunResult:
    return replay_log(events, jobs, policy, settings or ReplaySettings(3), efficiency=False, bound=False, **options)


def _decided(run: RunResult) -> pa.Table:
    """All but the forward-looking time of each decision, and who answered where nothing was to be solved."""
    return run.table("decisions").drop_columns(["t_fwd_s", "solver"])


_ANY = given(
    events=logs(),
    jobs=job_sets(),
    name=st.sampled_from(sorted(_MADE)),
    max_parallel=st.integers(1, 4),
    semantics=st.sampled_from(list(Semantics)),
    unlimited_work=st.booleans(),
)


@settings(max_examples=examples(60))
@given(
    events=logs(),
    jobs=job_sets(),
    t_fwd_s=st.sampled_from([3.0, 60.0, 400.0]),
    semantics=st.sampled_from(list(Semantics)),
)
def test_with_nothing_in_sight_they_decide_as_bftrainer(events, jobs, t_fwd_s, semantics):
    plain = _decided(_replay(events, jobs, BFTrainerPolicy(t_fwd_s), ReplaySettings(3, semantics)))
    for policy in (ForesightPolicy(0, t_fwd_s), LookAheadPolicy(2, 30, 40, t_fwd_s)):  # logs have 25 changes at most
        assert _decided(_replay(events, jobs, policy, ReplaySettings(3, semantics))).equals(plain)


@settings(max_examples=examples(60))
@_ANY
def test_any_replay_closes_its_ledger_and_repeats(events, jobs, name, max_parallel, semantics, unlimited_work):
    given_ = ReplaySettings(max_parallel, semantics)
    one, other = (_replay(events, jobs, _MADE[name](), given_, unlimited_work=unlimited_work) for _ in range(2))
    assert one.record == other.record
    assert one.table("decisions").equals(other.table("decisions"))


@settings(max_examples=examples(60))
@given(events=logs(), jobs=job_sets(), until_ms=st.integers(1, 299_999))
def test_look_ahead_uses_nothing_of_the_future(events, jobs, until_ms):
    whole = _replay(events, jobs, _MADE["look-ahead"]()).table("decisions").to_pylist()
    part = _replay(events.between(0, until_ms * 1000), jobs, _MADE["look-ahead"]()).table("decisions").to_pylist()
    before = [(row["time"], row["counts"]) for row in whole if row["time"].timestamp() * 1e3 < until_ms - 1e-3]
    assert [(row["time"], row["counts"]) for row in part][: len(before)] == before


def _busy(n: int = 40):
    """Four nodes, two of them for 30 s every 50 s, the others for 4 s once in between."""
    rows = []
    for k in range(1, n):
        rows += [(50.0 * k + after, node, after == 0) for after in (0, 30) for node in (1, 2)]
        rows += [(50.0 * k + after, 3, after == 10) for after in (10, 14)]
    return log(4, rows, 50.0 * n, idle_first=(0,))


def _two() -> JobSet:
    steep = job("steep", rates=(0.0, 10.0, 20.0, 30.0, 40.0), up_s=8.0, down_s=3.0)
    return JobSet([steep, job("flat", rates=(0.0, 12.0, 15.0), up_s=2.0, down_s=2.0, submit_s=100)])


@_ALL
def test_looking_makes_a_difference_to_these_replays(name):
    plain = _replay(_busy(), _two(), BFTrainerPolicy(40.0))
    other = _replay(_busy(), _two(), _MADE[name]())
    assert plain.table("decisions")["counts"] != other.table("decisions")["counts"]
    assert other.summary["ledger"]["samples"] > plain.summary["ledger"]["samples"]


@_ALL
def test_runs_give_the_same_bytes_twice(name, tmp_path):
    for folder in ("one", "two"):
        replay_log(_busy(), _two(), _MADE[name](), ReplaySettings(2, record_nodes=True), out=tmp_path / folder)
    for file in ("run.json", "decisions.parquet", "jobs.parquet", "allocations.parquet", "nodes.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


@_ALL
@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize("unlimited_work", [True, False])
def test_one_job_at_once_on_one_node_that_never_goes(name, semantics, unlimited_work):
    still = log(1, [], 100, idle_first=(0,))
    run = _replay(
        still,
        JobSet([job("a", work=200.0), job("b", work=300.0)]),
        _MADE[name](),
        ReplaySettings(1, semantics),
        unlimited_work=unlimited_work,
    )
    # under the published clock nobody notices, without a pool event, that the first job is done
    expected = 1000.0 if unlimited_work else 500.0 if semantics is Semantics.CONTINUOUS else 200.0
    assert run.summary["ledger"]["samples"] == pytest.approx(expected)


@_ALL
def test_without_an_idle_node_nobody_asks(name):
    run = _replay(log(2, [], 100), _two(), _MADE[name]())
    assert run.summary["ledger"]["samples"] == 0.0


@_ALL
@pytest.mark.parametrize("share", ["job", "model"])
def test_they_work_on_curves_that_are_learned(name, share):
    run = replay_log(_busy(), _two(), LearningPolicy(_MADE[name](), share, noise=0.1), ReplaySettings(2))
    assert run.record["config"]["policy"]["name"] == name
    known = _replay(_busy(), _two(), _MADE[name](), ReplaySettings(2))
    assert run.summary["learning"]["known_samples"] == known.summary["ledger"]["samples"]
    assert 0 < run.summary["learning"]["samples"] < known.summary["ledger"]["samples"]


def test_foresight_sees_through_one_who_learns():
    seen = _replay(_busy(), _two(), LearningPolicy(ForesightPolicy(3, 40.0)))
    blind = _replay(_busy(), _two(), LearningPolicy(BFTrainerPolicy(40.0)))
    assert seen.table("decisions")["counts"] != blind.table("decisions")["counts"]


def test_a_run_tells_their_parameters():
    policy = _replay(_busy(), _two(), LookAheadPolicy(2, 3, 8, 60.0)).record["config"]["policy"]
    solver = ExactSolver().describe()
    assert policy == {"name": "look-ahead", "events": 2, "futures": 3, "memory": 8, "t_fwd_s": 60.0, "solver": solver}
    policy = _replay(_busy(), _two(), ForesightPolicy(7, 60.0)).record["config"]["policy"]
    assert policy == {"name": "foresight", "events": 7, "t_fwd_s": 60.0, "solver": solver}


@_ALL
@pytest.mark.parametrize("t_fwd_s", ["auto", AutoForwardTime(), None, True])
def test_they_take_a_number_for_the_forward_looking_time(name, t_fwd_s):
    made = {"foresight": ForesightPolicy, "look-ahead": LookAheadPolicy}[name]
    with pytest.raises(InputError) as caught:
        made.from_options(t_fwd_s=t_fwd_s, solver=ExactSolver())
    assert f"the policy {name!r} looks ahead itself and takes a number for --t-fwd" in caught.value.problem
    assert "auto" not in f"{caught.value.expected} {caught.value.fix}"


@_ALL
@pytest.mark.parametrize("t_fwd_s", [0.0, -1, float("nan"), float("inf")])
def test_the_last_pool_in_sight_lasts_a_positive_time(name, t_fwd_s):
    made = {"foresight": ForesightPolicy, "look-ahead": LookAheadPolicy}[name]
    with pytest.raises(InputError, match=r"not a positive number\n(.*\n)*.*expected: seconds > 0\n"):
        made(t_fwd_s=t_fwd_s)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: ForesightPolicy(-1), "events"),
        (lambda: ForesightPolicy(2.5), "events"),
        (lambda: LookAheadPolicy(0), "events"),
        (lambda: LookAheadPolicy(5, 0), "futures"),
        (lambda: LookAheadPolicy(5, 20, 24), "memory"),
        (lambda: LookAheadPolicy(5, 20, "all"), "memory"),
    ],
)
def test_parameters_without_sense_are_refused_by_name(make, key):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.column == key


def test_known_curves_of_a_job_source_are_measured_by_one_who_sees_the_log_too():
    def source():
        jobs = (replace(each, submit_us=0, work_samples=1e9) for each in _two())
        return Scripted([Orders(submit=tuple(jobs))])

    learned = replay_log(_busy(), source(), LearningPolicy(_MADE["foresight"]()))
    known = replay_log(_busy(), source(), _MADE["foresight"](), efficiency=False, bound=False)
    assert learned.summary["learning"]["known_samples"] == known.summary["ledger"]["samples"]
