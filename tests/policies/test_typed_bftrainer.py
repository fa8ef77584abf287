"""BFTrainer's policy on nodes of several types: what it decides, where it puts it, what it is charged."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.milp import solver_of
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.milp.typed.problem import NO_TYPE, TypedSolution
from bfreplay.milp.typed.solver import TypedExactSolver
from bfreplay.policies import BFTrainerPolicy, Decision, Placement, Policy, PolicyState
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.typed import place_jobs, typed_problem
from bfreplay.replay import ReplaySettings
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.throughputs import read_throughputs
from tests.examples import examples
from tests.policies.small_states import state_of
from tests.replay.placed import intervals, of_job, run, typed_job, typed_log
from tests.replay.tiny import job, logs

V100_AND_P100 = "v100 v100 p100 p100"


class Nodes:
    """The nodes of a state: their types, who holds which (in the order of gaining), and which are busy."""

    def __init__(self, types: str, held: dict[int, list[int]] | None = None, busy: tuple[int, ...] = ()) -> None:
        listed = types.split()
        self.type_names = tuple(dict.fromkeys(listed))
        self.node_type = np.array([self.type_names.index(name) for name in listed], np.int16)
        self.is_idle = np.array([node not in busy for node in range(len(listed))])
        self._held = held or {}

    def held(self, j: int) -> np.ndarray:
        return np.array(self._held.get(j, []), np.int32)


def typed_state(by_type: list[list[list[float]]], nodes: Nodes, **changes: object) -> PolicyState:
    """Jobs with the rates ``by_type[j][t][n]``, on the nodes that they hold."""
    table = np.array(by_type, dtype=float)
    held = [nodes.held(j) for j in range(len(table))]
    here = [int(nodes.node_type[each[0]]) if each.size else 0 for each in held]
    weight = np.array(changes.get("weight", [1.0] * len(table)))
    fields = {"objective": weight[:, None] * table[:, 0], "current": [each.size for each in held], **changes}
    state = state_of(table[np.arange(len(table)), here].tolist(), int(nodes.is_idle.sum()), **fields)
    return replace(state, throughput_by_type=table, nodes=nodes)


# job 0 makes 10 and 8 samples/s a node, job 1 3 and 1
FAST_AND_SLOW = [[[0, 10, 20], [0, 8, 16]], [[0, 3, 6], [0, 1, 2]]]


def decided(decision: Decision) -> list[list[int]]:
    assert decision.placement is not None
    return [nodes.tolist() for nodes in decision.placement.assigned]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("own", [[0, 1], [2, 3]]),  # 20 + 2 samples/s against 14 + 6
        ("throughput", [[0, 1], [2, 3]]),
        ("speed-up", [[2, 3], [0, 1]]),  # 2 + 2/3 against 1.4 + 2, in what each makes of its first v100
        ("throughput + 9*speed-up", [[2, 3], [0, 1]]),
    ],
)
def test_each_objective_puts_jobs_where_it_is_worth_most(objective, expected):
    rates = [[[0, 10, 20], [0, 7, 14]], [[0, 3, 6], [0, 1, 2]]]
    decision = BFTrainerPolicy(100, objective=objective).decide(typed_state(rates, Nodes(V100_AND_P100)))
    assert decided(decision) == expected
    assert decision.solution is not None
    assert (decision.solution.quality, decision.solution.solver) == (Quality.PROVEN, "exact")
    assert decision.t_fwd_s == 100


def test_the_gain_is_the_rate_over_the_forward_looking_time():
    state = typed_state(FAST_AND_SLOW, Nodes(V100_AND_P100), weight=[1.0, 2.0])
    own = typed_problem(state, objective_of("own"), 60.0)
    assert own.gain[1].tolist() == [[0, 360, 720], [0, 120, 240]]
    assert own.capacity.tolist() == [2, 2]
    unit = typed_problem(state, objective_of("speed-up"), 60.0)
    assert unit.gain[0].tolist() == [[0, 60, 120], [0, 48, 96]]  # in units of the first v100 node
    assert unit.gain[1].tolist() == [[0, 120, 240], [0, 40, 80]]
    terms = typed_problem(state, objective_of("throughput + 3*speed-up"), 1.0)
    assert terms.gain[0, 0, 2] == pytest.approx(20 / 20 + 3 * 2 / 4)
    assert terms.gain[1, 1, 1] == pytest.approx(2 / 20 + 3 * (2 / 3) / 4)


def test_a_job_gives_up_what_it_makes_on_the_type_where_it_is():
    nodes = Nodes(V100_AND_P100, {0: [3, 2]})
    state = typed_state(FAST_AND_SLOW, nodes, scale_up_cost_s=[5.0, 5.0], scale_down_cost_s=[2.0, 2.0])
    problem = typed_problem(state, objective_of("own"), 60.0)
    assert problem.current_type.tolist() == [1, NO_TYPE]
    assert problem.scale_up_loss.tolist() == [80, 0]
    assert problem.scale_down_loss.tolist() == [32, 0]


def test_a_job_below_its_minimum_gives_up_nothing():
    state = typed_state(
        FAST_AND_SLOW,
        Nodes(V100_AND_P100, {0: [3]}),
        min_nodes=[2, 1],
        scale_up_cost_s=[5.0, 5.0],
        scale_down_cost_s=[2.0, 2.0],
    )
    problem = typed_problem(state, objective_of("own"), 60.0)
    assert problem.scale_up_loss.tolist() == [0, 0]
    assert problem.scale_down_loss.tolist() == [0, 0]


@pytest.mark.parametrize("objective", ["max-min", "deadline", "cost", "energy", "priority", "throughput + cost"])
def test_an_objective_that_tells_no_types_apart_is_refused(objective):
    policy = BFTrainerPolicy(60, objective=objective)
    with pytest.raises(InputError, match="which node type") as refused:
        policy.decide(typed_state(FAST_AND_SLOW, Nodes(V100_AND_P100)))
    assert "own, throughput, speed-up" in str(refused.value)


def test_an_objective_curve_of_ones_own_is_refused_but_not_by_other_objectives():
    state = typed_state(FAST_AND_SLOW, Nodes(V100_AND_P100), objective=[[0, 10, 20], [0, 3, 7]])
    with pytest.raises(InputError, match="objective curve of its own") as refused:
        BFTrainerPolicy(60).decide(state)
    assert "job number 1" in str(refused.value)
    assert BFTrainerPolicy(60, objective="throughput").decide(state).counts.tolist() == [2, 2]


@pytest.mark.parametrize("solver", [solver_of("cbc", isolated=False), ExactSolver(published_limit=True)])
def test_solvers_of_one_type_are_refused(solver):
    with pytest.raises(InputError, match="decides on nodes of one type"):
        BFTrainerPolicy(60, solver).decide(typed_state(FAST_AND_SLOW, Nodes(V100_AND_P100)))


def test_a_forward_looking_time_that_is_learnt_is_refused():
    with pytest.raises(InputError, match="learnt on nodes of one type"):
        BFTrainerPolicy("auto").decide(typed_state(FAST_AND_SLOW, Nodes(V100_AND_P100)))


def test_where_the_solver_has_no_answer_every_job_keeps_what_it_has(monkeypatch):
    failed = Solution(
        None, np.nan, np.inf, ProcessStatus.OK, SolverStatus.ERROR, Quality.NONE, "exact", message="too large"
    )
    monkeypatch.setattr(TypedExactSolver, "solve", lambda self, problem: TypedSolution(None, failed))
    decision = BFTrainerPolicy(60).decide(typed_state(FAST_AND_SLOW, Nodes(V100_AND_P100, {1: [3, 0]})))
    assert decided(decision) == [[], [3, 0]]
    assert decision.solution is failed


def test_a_job_that_stays_on_its_type_keeps_its_nodes_and_gives_back_the_last_gained():
    nodes = Nodes("a a a a a b b b", {0: [4, 1, 3], 1: [6], 2: [0]}, busy=(5,))
    found = place_jobs(nodes, np.array([0, 0, 1, NO_TYPE]), np.array([2, 2, 1, 0]))
    assert [each.tolist() for each in found] == [[4, 1], [0, 2], [6], []]


@st.composite
def changing_counts(draw: st.DrawFn):
    return draw(logs()), draw(st.lists(st.integers(0, 4), min_size=40, max_size=40))


class Counting(Policy):
    """Gives counts of a script, placed by the replay or by the rule of several types."""

    name = "counting"

    def __init__(self, wanted: list[int], is_placed: bool) -> None:
        self.wanted, self.is_placed, self.k = wanted, is_placed, 0

    def decide(self, state: PolicyState) -> Decision:
        counts, left = np.zeros(state.n_jobs, np.int64), state.n_idle
        for j in range(state.n_jobs):
            counts[j] = min(left, self.wanted[self.k % len(self.wanted)])
            left -= counts[j]
            self.k += 1
        if not self.is_placed:
            return Decision(counts)
        assert state.nodes is not None
        return Decision(counts, placement=Placement(place_jobs(state.nodes, np.where(counts > 0, 0, NO_TYPE), counts)))


@settings(max_examples=examples(40))
@given(drawn=changing_counts())
def test_on_one_type_nodes_are_placed_as_the_replay_places_counts(drawn):
    events, wanted = drawn
    jobs = [job(f"job{k}", work=2_000.0 + 700 * k) for k in range(4)]
    one, other = (run(events, jobs, Counting(wanted, is_placed)) for is_placed in (False, True))
    for table in ("nodes", "allocations", "jobs"):
        assert one.table(table).equals(other.table(table))


@pytest.mark.parametrize(("n_p100", "n_v100"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_a_move_is_charged_what_the_decision_reckoned_with_whether_counts_rise_fall_or_stay(n_p100, n_v100):
    # on p100, 4 samples/s a node, until v100 nodes (10 each) come at 10 s; up 3 s and down 2 s of the rate before
    n_nodes = n_p100 + n_v100
    came = range(n_p100, n_nodes)
    events = typed_log(
        "p100 " * n_p100 + "v100 " * n_v100, 40.0, [(10.0, node, True) for node in came], busy_first=came
    )
    result = run(events, [typed_job(up_s=3.0, down_s=2.0)], BFTrainerPolicy(60))
    assert intervals(result) == [("job", "p100", n_p100, 0.0, 10.0), ("job", "v100", n_v100, 10.0, 40.0)]
    charged = 4.0 * n_p100 * 5
    decisions = result.table("decisions").to_pydict()
    assert decisions["rescale_cost_samples"] == [0.0, charged]
    assert decisions["objective"] == [60 * 4.0 * n_p100, 60 * 10.0 * n_v100 - charged]
    assert of_job(result)["done_samples"] == pytest.approx(4 * n_p100 * 10 + 10 * n_v100 * 30 - charged)


def test_a_move_that_does_not_pay_within_the_forward_looking_time_is_not_made():
    events = typed_log("p100 v100", 40.0, [(10.0, 1, True)], busy_first=[1])
    result = run(events, [typed_job(up_s=3.0, down_s=2.0)], BFTrainerPolicy(3))  # 3 x (10 - 4) = 18 < 20
    assert intervals(result) == [("job", "p100", 1, 0.0, 40.0)]


def test_a_reclaimed_type_sends_its_job_to_the_other():
    events = typed_log("v100 v100 p100", 30.0, [(10.0, 0, False), (10.0, 1, False)])
    result = run(events, [typed_job(up_s=3.0, down_s=2.0)], BFTrainerPolicy(60))
    assert intervals(result) == [("job", "p100", 1, 10.0, 30.0), ("job", "v100", 2, 0.0, 10.0)]


def test_a_run_says_of_every_decision_how_good_it_is_and_is_the_same_each_time():
    jobs = [typed_job(f"job{k}", work=300.0 + 50 * k, submit_s=2.0 * k) for k in range(6)]
    one, other = (
        run(fixed_cluster("v100=2,p100=3"), jobs, BFTrainerPolicy(60), until_done=True, max_parallel=100) for _ in "ab"
    )
    decisions = one.table("decisions").to_pydict()
    asked = [row for row, status in enumerate(decisions["process_status"]) if status == "ok"]
    assert len(asked) > 6
    assert {decisions["quality"][row] for row in asked} == {"proven"}
    assert {decisions["solver"][row] for row in asked} == {"exact"}
    assert all(decisions["gap"][row] < 1e-12 for row in asked)
    for table in ("decisions", "nodes", "allocations", "jobs"):
        assert one.table(table).equals(other.table(table))
    assert one.summary["scheduling"]["n_completed"] == 6


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("objective", ["own", "speed-up"])
def test_gavels_workload_runs_to_its_end_with_every_decision_proven(shared, elastic, objective):
    table = read_throughputs(shared / "data" / "gavel" / "simulation_throughputs.json.gz")
    jobs = generated_jobs(table, 25, seed=1, multi_gpu=True, elastic=elastic, jobs_per_hour=4.0)
    result = replay_log(
        fixed_cluster("v100=8,p100=8,k80=8"),
        jobs,
        BFTrainerPolicy(360, objective=objective),
        ReplaySettings(max_parallel=100, until_done=True),
        efficiency=False,
        bound=False,
    )
    decisions = result.table("decisions").to_pydict()
    assert set(decisions["quality"]) == {"proven"}
    assert result.summary["scheduling"]["n_completed"] == 25
    assert set(result.table("allocations").to_pydict()["node_type"]) <= {"v100", "p100", "k80"}


@pytest.mark.parametrize(
    ("policy", "places"),
    [
        (BFTrainerPolicy(60), True),
        (BFTrainerPolicy(60, objective="throughput + speed-up"), True),
        (BFTrainerPolicy(60, objective="cost"), False),
        (BFTrainerPolicy("auto"), False),
        (BFTrainerPolicy(60, solver_of("cbc", isolated=False)), False),
    ],
)
def test_a_policy_says_whether_it_decides_on_several_types(policy, places):
    assert BFTrainerPolicy.capabilities.node_types
    with nullcontext() if places else pytest.raises(InputError, match="type"):
        policy.check_types(("v100", "p100"))


def test_two_jobs_that_shared_nodes_do_not_keep_the_same_ones():
    found = place_jobs(Nodes("a a a a", {0: [1, 2], 1: [1, 2]}), np.array([0, 0]), np.array([2, 2]))
    assert [each.tolist() for each in found] == [[1, 2], [0, 3]]
