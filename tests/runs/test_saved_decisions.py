"""Any decision of a run can be posed again, exactly, by what the run recorded."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, write_events, write_jobs
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import objective_of
from bfreplay.policies import BFTrainerPolicy, Decision, EqualSharePolicy, Placement, Policy, PolicyState, Trigger
from bfreplay.policies.bftrainer import problem_of
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult
from bfreplay.runs.saved_decisions import decision_at, recorded_decisions
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.replay.tiny import SECOND, job, job_sets, log, logs

T_FWD_S = 60.0
_POLICIES = {
    "exact": lambda: BFTrainerPolicy(T_FWD_S),
    "published limit": lambda: BFTrainerPolicy(T_FWD_S, ExactSolver(published_limit=True)),
    "equal share": EqualSharePolicy,
    "sleepy": lambda: _waking(Trigger.POOL),
}


class Witness(Policy):
    """Any policy, and the questions that it was asked."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name, self.wakes_on = policy.name, policy.wakes_on
        self.describe, self.close = policy.describe, policy.close
        self.asked: list[tuple[int, AllocationProblem, np.ndarray]] = []

    def decide(self, state: PolicyState) -> Decision:
        problem = problem_of(deepcopy(state), T_FWD_S)
        decision = self._policy.decide(state)
        self.asked.append((state.time_us, problem, np.array(decision.counts)))
        return decision


def _waking(on: Trigger) -> Policy:
    policy = BFTrainerPolicy(T_FWD_S)
    policy.wakes_on = on
    return policy


def decidable(run: RunResult) -> list[int]:
    table = run.table("decisions")
    both = zip(table["n_jobs"].to_pylist(), table["n_idle"].to_pylist(), strict=True)
    return [index for index, (n_jobs, n_idle) in enumerate(both) if n_jobs and n_idle]


def assert_same_problem(one: AllocationProblem, other: AllocationProblem) -> None:
    for name in ("current", "min_nodes", "max_nodes", "gain", "scale_up_loss", "scale_down_loss"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.capacity, one.change_limit) == (other.capacity, other.change_limit)


def check_all(run: RunResult, events: NodeEvents, jobs: JobSet, asked: list) -> None:
    """Every question that the policy was asked is posed again, and no other but those it slept through."""
    found = recorded_decisions(run, decidable(run), events=events, jobs=jobs, t_fwd_s=T_FWD_S)
    table = run.table("decisions")
    process = table["process_status"].to_pylist()
    solver_asked = [each for each in found if process[each.index] != "not_needed"]
    if run.record["config"]["semantics"] == "published" and found and found[0].index == 0:
        solver_asked = solver_asked[1:]  # the seeded first map asks nobody
    for each, (time_us, problem, counts) in zip(solver_asked, asked, strict=True):
        assert each.time_us == time_us
        assert_same_problem(each.problem, problem)
        assert each.counts.tolist() == counts.tolist()
    for each in found:
        each.problem.validate()
        assert table["time"].cast("int64")[each.index].as_py() == each.time_us
        assert len(each.job_names) == each.problem.n_jobs == len(each.counts)
        if process[each.index] == "not_needed":
            assert each.counts.tolist() == each.problem.current.tolist()


@settings(deadline=None, max_examples=examples(200))
@given(
    events=logs(),
    jobs=job_sets(),
    policy=st.sampled_from(sorted(_POLICIES)),
    semantics=st.sampled_from(list(Semantics)),
    max_parallel=st.integers(1, 4),
    seed=st.integers(0, 3),
    unlimited_work=st.booleans(),
    window=st.none() | st.tuples(st.integers(0, 140), st.integers(160, 300)),
)
def test_every_decision_of_any_run_is_posed_again_as_it_was(
    events, jobs, policy, semantics, max_parallel, seed, unlimited_work, window
):
    witness = Witness(_POLICIES[policy]())
    part = events if window is None else events.between(window[0] * SECOND, window[1] * SECOND)
    run = replay_log(
        part,
        jobs,
        witness,
        ReplaySettings(max_parallel, semantics, seed),
        unlimited_work=unlimited_work,
        efficiency=False,
        bound=False,
    )
    check_all(run, events, jobs, witness.asked)


def test_a_job_whose_end_is_predicted_late_by_rounding_ends_with_the_events_of_its_instant():
    """Work and rate whose quotient rounds to a hair over 31 ms: the job is to end 1 us later, and is done by then."""
    rate, when_s = 0.1, 0.031
    work = rate * (31_000 * 1e-6)
    jobs = JobSet([job("short", work=work, rates=(0.0, rate)), job("long", rates=(0.0, 0.01, 0.02))])
    events = log(3, [(when_s, 1, True), (when_s, 2, True), (5, 1, False)], 10, idle_first=[0])
    witness = Witness(BFTrainerPolicy(T_FWD_S))
    run = replay_log(events, jobs, witness, efficiency=False, bound=False)
    times = run.table("decisions")["time"].cast("int64").to_pylist()
    assert times[:2] == [0, round(when_s * SECOND)]
    assert run.table("decisions")["trigger"].to_pylist()[1] == "pool+completion"
    check_all(run, events, jobs, witness.asked)


def test_a_decision_at_the_very_end_of_the_window_is_recorded_although_nobody_holds_it():
    events = log(3, [(10, 1, True), (20, 2, True)], 20, idle_first=[0])
    jobs = JobSet([job("a"), job("b")])
    witness = Witness(BFTrainerPolicy(T_FWD_S))
    run = replay_log(events, jobs, witness, efficiency=False, bound=False)
    assert run.table("decisions")["time"].cast("int64").to_pylist() == [0, 10 * SECOND, 20 * SECOND]
    assert run.table("decisions")["counts"].to_pylist()[-1] == witness.asked[-1][2].tolist()
    check_all(run, events, jobs, witness.asked)


def test_a_job_left_below_its_minimum_is_posed_with_what_it_holds():
    events = log(3, [(10, 1, False), (30, 1, True)], 40, idle_first=[0, 1, 2])
    jobs = JobSet([job("wide", min_nodes=2, rates=(0.0, 0.0, 20.0)), job("small", rates=(0.0, 10.0))])
    witness = Witness(_waking(Trigger.ARRIVAL | Trigger.COMPLETION))  # sleeps through the reclaim
    run = replay_log(events, jobs, witness, efficiency=False, bound=False)
    check_all(run, events, jobs, witness.asked)
    at_reclaim = recorded_decisions(run, [decision_at(run, 10 * SECOND)], events=events, jobs=jobs)[0]
    assert at_reclaim.problem.current.tolist() == at_reclaim.counts.tolist()
    assert (at_reclaim.problem.current < at_reclaim.problem.min_nodes).any()
    assert at_reclaim.about["objective_of_counts"] is None  # no such counts would be decided


@pytest.mark.parametrize("fallback", ["exact", "keep"])
def test_a_run_whose_solver_failed_is_posed_again_without_it(fallback):
    events = log(4, [(10, 1, True), (20, 0, False), (30, 3, True)], 60, idle_first=[0, 2])
    jobs = JobSet([job("a", min_nodes=2, up_s=3, down_s=2), job("b", up_s=1)])
    solver = MilpSolver(
        "choices", "tests.milp.faulty_backends:CrashesEverySecondTime", fallback=fallback, referee=ExactSolver()
    )
    witness = Witness(BFTrainerPolicy(T_FWD_S, solver))
    run = replay_log(events, jobs, witness, efficiency=False, bound=False)
    assert run.summary["fallbacks"]
    check_all(run, events, jobs, witness.asked)


def test_what_is_told_about_a_decision():
    events = log(4, [(10, 1, True), (20, 2, True)], 60, idle_first=[0])
    jobs = JobSet([job("a", up_s=3), job("b")])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    second, first = recorded_decisions(run, [1, 0], events=events, jobs=jobs)
    assert (first.index, second.index) == (0, 1)
    assert second.job_names == ("a", "b")
    about = second.about
    assert about["time"] == "1970-01-01T00:00:10Z"
    assert about["jobs"] == ["a", "b"]
    assert about["counts"] == second.counts.tolist()
    assert about["t_fwd_s"] == T_FWD_S
    assert about["answer"]["quality"] == "proven"
    assert about["answer"]["objective"] == about["objective_of_counts"] == objective_of(second.problem, second.counts)
    assert about["config"] == run.record.config.to_json()


def test_another_look_ahead_gives_the_decision_another_worth():
    events, jobs = log(2, [], 60, idle_first=[0, 1]), JobSet([job()])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    of_run, doubled = (
        recorded_decisions(run, [0], events=events, jobs=jobs, t_fwd_s=t_fwd_s)[0] for t_fwd_s in (None, 2 * T_FWD_S)
    )
    np.testing.assert_array_equal(2 * of_run.problem.gain, doubled.problem.gain)


# -- what cannot be ---------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> RunResult:
    """A run of files, in a folder; decision 2 has no idle node."""
    write_events(log(2, [(10, 1, True), (20, 0, False), (20, 1, False), (30, 1, True)], 60, [0]), tmp_path / "log.csv")
    write_jobs(JobSet([job("a", up_s=3), job("b")]), tmp_path / "jobs.csv")
    replay_log(
        tmp_path / "log.csv",
        tmp_path / "jobs.csv",
        BFTrainerPolicy(T_FWD_S),
        efficiency=False,
        bound=False,
        out=tmp_path / "run",
    )
    return RunResult.load(tmp_path / "run")


def test_a_run_remembers_where_its_files_are(saved, tmp_path):
    assert saved.session["files"] == {"events": str(tmp_path / "log.csv"), "jobs": str(tmp_path / "jobs.csv")}
    assert "log.csv" in (saved.folder / "run.json").read_text()
    assert str(tmp_path) not in (saved.folder / "run.json").read_text()
    assert [each.index for each in recorded_decisions(saved.folder, [0, 3, 1])] == [0, 3, 1]
    assert recorded_decisions(saved, []) == []


def test_a_decision_that_is_not_there_is_refused_with_the_range(saved):
    for index in (-1, 4):
        with pytest.raises(InputError, match="0 to 3") as caught:
            recorded_decisions(saved, [0, index])
        assert caught.value.value == index


def test_a_decision_without_nodes_is_refused(saved):
    with pytest.raises(InputError, match="nothing to decide") as caught:
        recorded_decisions(saved, [2])
    assert "2 jobs and 0 idle nodes" in str(caught.value)


def test_files_may_move_and_be_renamed(saved, tmp_path):
    (tmp_path / "log.csv").rename(tmp_path / "other.csv")
    (tmp_path / "log.csv.meta.json").rename(tmp_path / "other.csv.meta.json")
    with pytest.raises(InputError, match="no longer at their recorded path") as caught:
        recorded_decisions(saved, [0])
    assert "--events FILE" in str(caught.value)
    assert len(recorded_decisions(saved, [0], events=tmp_path / "other.csv")) == 1


def test_a_run_that_does_not_know_its_files_asks_for_them(saved, tmp_path):
    forgetful = replace(saved, session=msgspec.structs.replace(saved.session, files={}))
    with pytest.raises(InputError, match="--events FILE"):
        recorded_decisions(forgetful, [0])
    with pytest.raises(InputError, match="--jobs FILE"):
        recorded_decisions(forgetful, [0], events=tmp_path / "log.csv")
    assert recorded_decisions(forgetful, [0], events=tmp_path / "log.csv", jobs=tmp_path / "jobs.csv")


@pytest.mark.parametrize(
    ("name", "what"), [("log.csv", "events"), ("log.csv.meta.json", "events"), ("jobs.csv", "jobs")]
)
def test_files_of_other_content_are_refused(saved, tmp_path, name, what):
    file = tmp_path / name
    file.write_text(file.read_text() + "\n")
    with pytest.raises(InputError, match=f"the {what} are not those of the run") as caught:
        recorded_decisions(saved, [0])
    assert name in str(caught.value)
    assert f"--{what} FILE" in str(caught.value)


def test_a_policy_without_look_ahead_needs_one(tmp_path):
    events, jobs = log(2, [], 60, idle_first=[0, 1]), JobSet([job()])
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    with pytest.raises(InputError, match="--t-fwd"):
        recorded_decisions(run, [0], events=events, jobs=jobs)
    with pytest.raises(InputError, match="not a positive number"):
        recorded_decisions(run, [0], events=events, jobs=jobs, t_fwd_s=-1)
    assert recorded_decisions(run, [0], events=events, jobs=jobs, t_fwd_s=5)[0].about["t_fwd_s"] == 5


def _tampered(run: RunResult, column: str, index: int, value: object) -> RunResult:
    table = run.table("decisions")
    place = table.column_names.index(column)
    values = table[column].to_pylist()
    values[index] = value
    field = table.schema.field(column)
    plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    changed = table.set_column(place, column, pa.array(values, plain))
    return replace(run, folder=None, tables={"decisions": changed})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("time", 11 * SECOND),
        ("trigger", "completion"),
        ("n_idle", 3),
        ("n_jobs", 1),
        ("counts", [0, 1]),
        ("counts", [1]),
        ("objective", 1.0),
        ("n_reclaimed", 7),
        ("n_jobs_preempted", 1),
        ("n_nodes_used", 9),
        ("samples_since_last", 5.0),
        ("rescale_cost_samples", 1.0),
    ],
)
def test_a_replay_that_goes_another_way_is_stopped_where_it_does(saved, column, value):
    wrong = _tampered(saved, column, 1, value)
    with pytest.raises(InputError, match="differs from the run") as caught:
        recorded_decisions(wrong, [3])
    assert "decision 1 at 1970-01-01T00:00:1" in str(caught.value)
    assert recorded_decisions(wrong, [0])  # what lies before is as it was


def test_a_run_of_counts_alone_is_not_enough_when_the_policy_placed_the_nodes():
    class FromTheEnd(Policy):
        name = "from the end"

        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array([1]), placement=Placement((np.array([2]),)))

    events = log(4, [(10, 0, False), (20, 3, True)], 60, idle_first=[0, 1, 2])
    run = replay_log(events, JobSet([job()]), FromTheEnd(), efficiency=False, bound=False)
    assert recorded_decisions(run, [0], events=events, jobs=JobSet([job()]), t_fwd_s=60)
    with pytest.raises(InputError, match="n_jobs_preempted is 1, recorded 0") as caught:
        recorded_decisions(run, [2], events=events, jobs=JobSet([job()]), t_fwd_s=60)
    assert "places nodes itself" in str(caught.value)


def test_counts_that_are_impossible_here_are_a_difference(saved):
    with pytest.raises(InputError, match="differs from the run") as caught:
        recorded_decisions(_tampered(_tampered(saved, "counts", 1, [9, 9]), "objective", 1, None), [3])
    assert "decision 1 at" in str(caught.value)
    assert "of 2 idle nodes" in str(caught.value)


def test_the_decision_in_force_at_a_time(saved):
    assert [decision_at(saved, t * SECOND) for t in (0, 9, 10, 19, 20, 30, 60)] == [0, 0, 1, 1, 2, 3, 3]
    for outside in (-1, 61 * SECOND):
        with pytest.raises(InputError, match="in force"):
            decision_at(saved, outside)
