"""BFTrainer's decision as a problem, and equal share as published."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import BFTrainerPolicy, Decision, EqualSharePolicy, Policy, PolicyCapabilities, PolicyState
from bfreplay.policies.bftrainer import problem_of
from bfreplay.policies.catalogue import POLICIES, capabilities_of, policy_of
from bfreplay.policies.look_ahead import LookAheadPolicy
from bfreplay.policies.objectives.catalogue import objective_of
from tests.policies.small_states import state_of
from tests.replay.tiny import job, log


def _state(n_idle: int, current: list[int], min_nodes: list[int], max_nodes: list[int]) -> PolicyState:
    n_jobs, width = len(current), max(max_nodes) + 1
    rates = np.tile(10.0 * np.arange(width), (n_jobs, 1))
    return state_of(
        rates,
        n_idle,
        current=current,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        objective=2.0 * rates,
        scale_up_cost_s=[3.0] * n_jobs,
        scale_down_cost_s=[2.0] * n_jobs,
    )


def test_gain_is_the_objective_over_the_forward_looking_time_and_losses_are_the_rate_given_up():
    problem = problem_of(_state(9, [2, 0], [1, 1], [4, 4]), t_fwd_s=60.0)
    assert problem.gain[0].tolist() == [0.0, 1200.0, 2400.0, 3600.0, 4800.0]
    assert problem.scale_up_loss.tolist() == [40.0 * 3, 0.0]
    assert problem.scale_down_loss.tolist() == [40.0 * 2, 0.0]
    assert problem.capacity == 9


def test_a_job_below_its_minimum_gives_up_nothing_when_it_rescales():
    problem = problem_of(_state(9, [2], [3], [4]), t_fwd_s=60.0)
    assert problem.scale_up_loss.tolist() == [0.0]
    assert problem.scale_down_loss.tolist() == [0.0]


def test_the_problem_does_not_alias_the_replays_arrays():
    state = _state(9, [2, 0], [1, 1], [4, 4])
    problem = problem_of(state, 60.0)
    assert not np.shares_memory(problem.gain, state.objective)


@pytest.mark.parametrize("t_fwd_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_forward_looking_time_that_is_not_positive_is_refused(t_fwd_s):
    with pytest.raises(InputError, match="forward-looking time"):
        BFTrainerPolicy(t_fwd_s)


@pytest.mark.parametrize(
    ("n_idle", "min_nodes", "max_nodes", "counts"),
    [
        (9, [1, 1, 1], [4, 4, 4], [3, 3, 3]),  # equal shares
        (10, [1, 1, 1], [4, 4, 4], [4, 3, 3]),  # the left-over goes to the first
        (20, [1, 1, 1], [4, 4, 4], [4, 4, 4]),  # capped at max_nodes
        # shares 3, 0 (3 does not exceed min 3), 3 leave 3: the first takes 1, the second would get 2 < 3, the third 1
        (9, [1, 3, 1], [4, 4, 4], [4, 0, 4]),
        (2, [1, 1, 1], [4, 4, 4], [2, 0, 0]),  # share 0: all is left-over
        (4, [1, 5, 1], [2, 8, 8], [2, 0, 2]),  # the second would stay below its minimum and is skipped
    ],
)
def test_equal_share_as_published(n_idle, min_nodes, max_nodes, counts):
    assert EqualSharePolicy().decide(_state(n_idle, [0] * 3, min_nodes, max_nodes)).counts.tolist() == counts


def test_the_share_must_exceed_the_minimum_so_one_node_each_is_no_share():
    # share 1 does not exceed min 1: nobody gets a share; first come first served then gives 4 to the first
    assert EqualSharePolicy().decide(_state(5, [0] * 4, [1] * 4, [4] * 4)).counts.tolist() == [4, 1, 0, 0]


def test_equal_share_never_beats_the_exact_optimum_of_one_decision():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n_jobs = int(rng.integers(1, 6))
        min_nodes = rng.integers(1, 4, n_jobs).tolist()
        state = _state(int(rng.integers(1, 20)), [0] * n_jobs, min_nodes, [6] * n_jobs)
        problem = problem_of(state, 60.0)
        shared = EqualSharePolicy().decide(state).counts
        assert problem.value[np.arange(n_jobs), shared].sum() <= ExactSolver().solve(problem).objective + 1e-9


def test_policies_have_names():
    for name in POLICIES.names():
        assert policy_of(name, t_fwd_s=60.0, solver=ExactSolver()).name == name
    with pytest.raises(InputError, match="unknown policy"):
        policy_of("nonsense", t_fwd_s=60.0, solver=ExactSolver())


class Stranger:
    """Could decide, and does not inherit from ``Policy``."""

    name = "stranger"

    def decide(self, state):
        """Never called."""


def test_a_class_that_does_not_inherit_from_policy_is_told_which_line_to_write():
    for ask in (capabilities_of, lambda spec: policy_of(spec, t_fwd_s=60.0, solver=ExactSolver())):
        with pytest.raises(InputError, match=r"Stranger is no policy\n(.*\n)*.*class Mine\(bfreplay.Policy\):"):
            ask(f"{__name__}:Stranger")


class Least(Policy):
    """All that a policy needs."""

    name = "least"

    def decide(self, state):
        return Decision(np.where(np.arange(state.n_jobs) == 0, state.min_nodes, 0))


def test_a_name_and_a_decision_are_all_that_a_policy_needs():
    made = policy_of(f"{__name__}:Least", t_fwd_s=60.0, solver=ExactSolver())
    run = replay_log(log(2, [], 100, idle_first=(0,)), [job()], made)
    assert run.record["config"]["policy"] == {"name": "least"}
    assert run.summary["policy"] is None
    assert run.summary["ledger"]["samples"] == pytest.approx(1000)


def test_every_policy_declares_its_needs_before_it_is_made():
    asks_solver = {"bftrainer": True, "look-ahead": True, "foresight": True, "equal-share": False}
    for name in POLICIES.names():
        declared, system = capabilities_of(name), name.partition(".")[0] if "." in name else None
        assert declared.in_rounds == (system not in (None, "products"))
        assert declared.restarts_jobs == declared.decides_again == (system == "products")
        chooses_nodes = system in ("gavel", "shockwave") or name in ("reclaim-aware", "products.horovod")
        assert declared.chooses_nodes == chooses_nodes
        assert declared.linear_programs == (system in ("gavel", "shockwave") or name == "elasticflow.chronus")
        assert declared.asks_solver == asks_solver.get(name, declared.asks_solver and system is None)
        assert declared.node_types == (name == "bftrainer" or system == "gavel")
        if declared.warm_up is not None:
            assert policy_of(declared.warm_up, t_fwd_s=60.0, solver=ExactSolver()).name in POLICIES.names()
    assert capabilities_of("foresight(events=3)").warm_up == capabilities_of("look-ahead").warm_up
    assert capabilities_of(f"{__name__}:Least") == PolicyCapabilities()


def test_bftrainers_policy_maximises_the_objective_it_is_given():
    # throughput: 8 + 9 against 8 x 2; priority: 8 x 1/2 + 9/10 against 8
    state = state_of([[0, 1, 2], [0, 9, 10]], 2, weight=[8, 1], objective=[[0, 1, 20], [0, 9, 10]])
    for objective, counts in (("own", [2, 0]), ("throughput", [1, 1]), ("priority", [2, 0]), ("max-min", [1, 1])):
        assert BFTrainerPolicy(60.0, objective=objective).decide(state).counts.tolist() == counts, objective
    assert BFTrainerPolicy(60.0).decide(state).counts.tolist() == [2, 0]


def test_an_objective_comes_as_text_or_as_itself_and_the_record_makes_it_again():
    for given in ("cost(price=0.25)", objective_of("cost(price=0.25)")):
        policy = policy_of("bftrainer", t_fwd_s=60.0, solver=ExactSolver(), objective=given)
        recorded = policy.describe()["objective"]
        assert recorded == {
            "spec": "cost(price=0.25)",
            "terms": [{"name": "cost", "weight": 1.0, "parameters": {"price": 0.25}}],
        }
        assert objective_of(recorded["spec"]).describe() == recorded
    default = policy_of("bftrainer", t_fwd_s=60.0, solver=ExactSolver()).describe()["objective"]
    assert default["spec"] == "own"
    assert default["terms"] == objective_of("1*own").describe()["terms"]


@pytest.mark.parametrize("objective", [3, None, ExactSolver()])
def test_what_is_no_objective_is_refused(objective):
    with pytest.raises(InputError, match="no objective"):
        BFTrainerPolicy(60.0, objective=objective)


def test_a_policy_that_takes_no_objective_refuses_one():
    for objective in ("throughput", objective_of("throughput")):
        with pytest.raises(InputError, match=r"'equal-share' takes no objective\n(.*\n)*.*value: +'throughput'"):
            policy_of("equal-share", t_fwd_s=60.0, solver=ExactSolver(), objective=objective)


class TakesOne(EqualSharePolicy):
    def __init__(self, objective):
        self.objective = objective

    @classmethod
    def from_options(cls, *, t_fwd_s, solver, objective="mine"):
        return cls(objective)


class TakesWhatever(TakesOne):
    @classmethod
    def from_options(cls, **options):
        return cls(options.get("objective", "nothing"))


@pytest.mark.parametrize(("policy", "without"), [("TakesOne", "mine"), ("TakesWhatever", "nothing")])
def test_a_strangers_policy_gets_an_objective_only_where_one_is_given(policy, without):
    options = {"t_fwd_s": 60.0, "solver": ExactSolver()}
    assert policy_of(f"{__name__}:{policy}", **options).objective == without
    assert policy_of(f"{__name__}:{policy}", **options, objective="cost").objective == "cost"


def test_parameters_stand_in_brackets_and_the_others_keep_their_defaults():
    made = policy_of("look-ahead(events=3, memory=40)", t_fwd_s=60.0, solver=ExactSolver())
    assert made.describe() == LookAheadPolicy(3, 20, 40, 60.0).describe()
    seen = policy_of(" foresight( events = 2 ) ", t_fwd_s=30.0, solver=ExactSolver()).describe()
    assert (seen["events"], seen["t_fwd_s"]) == (2, 30.0)
    assert policy_of("foresight", t_fwd_s=30.0, solver=ExactSolver()).describe()["events"] == 10


class Patient(EqualSharePolicy):
    """Has parameters of its own, and asks to see the log."""

    name = "patient"

    def __init__(self, nodes, mood):
        self.nodes, self.mood, self.seen = nodes, mood, None

    @classmethod
    def from_options(cls, *, t_fwd_s, solver, nodes: int, mood: str = "calm"):
        return cls(nodes, mood)

    def foresee(self, events):
        self.seen = len(events.nodes)

    def describe(self):
        return {"name": self.name, "nodes": self.nodes, "mood": self.mood}


def test_a_strangers_policy_gets_its_own_parameters_and_the_run_tells_them():
    policy = policy_of(f"{__name__}:Patient(nodes=3, mood=wild)", t_fwd_s=60.0, solver=ExactSolver())
    run = replay_log(log(5, [], 100, idle_first=(0,)), [job()], policy, efficiency=False, bound=False)
    assert run.record["config"]["policy"] == {"name": "patient", "nodes": 3, "mood": "wild"}
    assert policy.seen == 5


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("foresight(event=3)", r"'foresight' has no parameter 'event'\n(.*\n)*.*expected: one of events\n.*'events'"),
        ("look-ahead(future=3)", r"no parameter 'future'\n(.*\n)*.*one of events, futures, memory\n.*'futures'"),
        ("foresight(events=ten)", r"'events' of the policy 'foresight' is no number"),
        ("foresight(events='3')", r"'events' of the policy 'foresight' is no number"),
        ("bftrainer(admission=1e9)", "admission is neither true nor false"),
        ("gavel.fifo(published='true')", "published is neither true nor false"),
        ("foresight(events=2.5)", r"events is no whole number"),
        ("foresight(events=-1)", r"events is below 0"),
        ("foresight(t_fwd_s=3)", r"no parameter 't_fwd_s'\n(.*\n)*.*--t-fwd"),
        ("foresight(solver=cbc)", r"no parameter 'solver'"),
        ("bftrainer(objective=cost)", r"no parameter 'objective'"),
        ("equal-share(x=1)", r"no parameter 'x'\n(.*\n)*.*expected: equal-share, without brackets"),
        (f"{__name__}:Patient", r"needs 'nodes'\n(.*\n)*.*Patient\(nodes=VALUE\)"),
        ("2*foresight", "there is one policy, without a weight"),
        ("foresight + bftrainer", "there is one policy, without a weight"),
        ("foresight(events=3", r"the policy cannot be read: a '\)' is missing at the end"),
        ("foresight(3)", r"the policy cannot be read: a parameter is missing in the brackets"),
        ("foresigth(events=3)", r"unknown policy 'foresigth'\n(.*\n)*.*did you mean 'foresight'"),
        ("", "the policy cannot be read: a name is missing"),
        (7, "a policy is named by a text"),
    ],
)
def test_a_policy_that_cannot_be_read_or_made_says_what_is_wrong(spec, told):
    with pytest.raises(InputError, match=told) as caught:
        policy_of(spec, t_fwd_s=60.0, solver=ExactSolver())
    assert "the objective" not in str(caught.value)


class HalfOf(EqualSharePolicy):
    """Its parameters are those of ``__init__``."""

    name = "half-of"

    def __init__(self, share=0.5, *, mood="calm"):
        self.share, self.mood = share, mood


def test_an_unknown_policy_is_told_the_families_not_all_their_members():
    with pytest.raises(InputError, match=r"unknown policy 'bftriner'\n.*foresight, gavel\.NAME, shockwave\.NAME"):
        policy_of("bftriner", t_fwd_s=60.0, solver=ExactSolver())
    with pytest.raises(InputError, match=r"one of gavel\.max_min_fairness, gavel\.(.*\n)*.*did you mean 'gavel"):
        policy_of("gavel.max_min", t_fwd_s=60.0, solver=ExactSolver())


def test_parameters_of_init_are_those_of_a_policy_without_from_options():
    policy = policy_of(f"{__name__}:HalfOf(share=2)", t_fwd_s=60.0, solver=ExactSolver())
    assert (policy.share, policy.mood) == (2, "calm")
    with pytest.raises(InputError, match=r"no parameter 'frac'\n(.*\n)*.*one of share, mood"):
        policy_of(f"{__name__}:HalfOf(frac=2)", t_fwd_s=60.0, solver=ExactSolver())


class NoName(Policy):
    def decide(self, state):
        return Decision(state.current)


class Boom(Policy):
    name = "boom"

    def decide(self, state):
        state.current[0] = 1


def test_a_policy_without_a_name_or_that_fails_costs_one_message():
    for policy, message in (
        (NoName(), "test_policies:NoName has no name"),
        (Boom(), r"'boom' failed in decide\(\) at \S+ \(1 jobs, 1 idle nodes\): ValueError: .*test_policies.py, line"),
    ):
        with pytest.raises(InputError, match=message):
            replay_log(log(5, [], 100, idle_first=(0,)), [job()], policy, efficiency=False, bound=False)


class _Capped(EqualSharePolicy):
    name = "capped"

    def __init__(self, share: float, most: int = 3, *, solver: object = None) -> None:
        self._shares = [share, most, solver]


def test_the_record_of_a_policy_has_what_it_was_made_with():
    policy = _Capped(0.25, solver=ExactSolver())
    assert policy.describe() == {"share": 0.25, "most": 3, "name": "capped"}
    assert repr(policy) == "<_Capped: share 0.25, most 3>"
    assert _Capped(float("inf"), solver="highs").describe() == {"most": 3, "name": "capped"}
    for twin in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert twin.describe() == policy.describe()
    run = replay_log(log(2, [], 3600, idle_first=[0]), [job()], _Capped(0.75), efficiency=False, bound=False)
    assert run.record["config"]["policy"]["share"] == 0.75
    with pytest.raises(TypeError, match="shar"):
        _Capped(shar=1)
