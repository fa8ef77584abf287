"""Jobs that are declined: what the rule says, and what a replay makes of it."""

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import BFTrainerPolicy, Decision, Policy
from bfreplay.policies.catalogue import policy_of
from bfreplay.policies.deadlines.admission import DeadlinePlans, fewest_nodes
from bfreplay.policies.deadlines.plan import Levels
from bfreplay.policies.policy import Round
from bfreplay.replay import ReplaySettings
from bfreplay.workload import JobSet
from tests.policies.deadlines.promises import late_of_admitted
from tests.policies.small_states import state_of
from tests.replay.tiny import SECOND, job, log

LINEAR = [0.0, 1.0, 2.0, 3.0, 4.0]


def declined(state, **rules):
    return DeadlinePlans(fewest_nodes(10.0), **rules).plan_jobs(state, admits=True)[1]


def test_a_job_that_no_number_of_nodes_makes_fast_enough_is_declined():
    assert declined(state_of([LINEAR], 4, work=[401.0], due_s=[100])) == {
        0: "its deadline cannot be met with all idle nodes"
    }
    assert declined(state_of([LINEAR], 4, work=[400.0], due_s=[100])) == {}


def test_a_job_that_finds_too_few_nodes_free_is_declined_with_how_late_it_would_be():
    state = state_of([LINEAR, LINEAR], 4, work=[400.0, 200.0], due_s=[100, 100])
    assert declined(state) == {1: "it would be done 50 s too late beside the jobs that are there"}


def test_a_job_that_would_make_another_late_is_declined():
    state = state_of([LINEAR, LINEAR], 4, work=[400.0, 100.0], due_s=[100, 50])
    assert declined(state) == {1: "it would make 1 job late"}


def test_a_job_that_is_late_already_keeps_nobody_out():
    # the first is late by itself, and was admitted when nobody asked
    state = state_of([LINEAR, LINEAR], 4, work=[4000.0, 100.0], due_s=[100, 500])
    plans = DeadlinePlans(fewest_nodes(10.0))
    plans.plan_jobs(state.only(np.array([0])), admits=False)
    assert plans.plan_jobs(state, admits=True)[1] == {
        1: "it would be done 525 s too late beside the jobs that are there"
    }
    roomy = replace(state, deadline_us=state.deadline_us + np.array([0, 1000 * SECOND]))
    plans = DeadlinePlans(fewest_nodes(10.0))
    plans.plan_jobs(roomy.only(np.array([0])), admits=False)
    assert plans.plan_jobs(roomy, admits=True)[1] == {}


def test_plans_that_no_longer_fit_the_nodes_are_not_followed():
    plans, first = DeadlinePlans(fewest_nodes(10.0)), state_of([LINEAR], 4, work=[400.0], due_s=[100])
    plans.follow(first, plans.plan_jobs(first, admits=True)[0])
    later = state_of([LINEAR], 2, work=[360.0], due_s=[90], time_us=first.time_us + 10 * SECOND)
    assert [each.count for each in plans.plan_jobs(later, admits=True)[0]] == [2]


def test_a_job_without_a_deadline_is_never_declined_and_one_that_came_before_is_not_asked_again():
    state = state_of([LINEAR, LINEAR], 4, work=[1e6, 401.0], due_s=[None, 100])
    plans = DeadlinePlans(fewest_nodes(10.0))
    assert plans.plan_jobs(state, admits=True)[1].keys() == {1}
    assert plans.plan_jobs(state, admits=True)[1] == {}
    plans.forget()
    assert plans.plan_jobs(state, admits=True)[1].keys() == {1}


def test_jobs_that_come_together_are_tried_one_by_one():
    state = state_of([LINEAR] * 3, 4, work=[400.0, 401.0, 0.5], due_s=[100, 100, 200])
    assert declined(state).keys() == {1}


def test_a_reserve_leaves_time_for_rescaling():
    state = state_of([LINEAR], 4, work=[360.0], due_s=[100], scale_up_cost_s=[6.0], scale_down_cost_s=[1.0])
    assert declined(state) == {}
    assert declined(state, reserve=2.0).keys() == {0}


def test_what_a_job_owes_is_work_that_is_left():
    state = state_of([LINEAR], 4, work=[400.0], due_s=[100], owed=[1.0])
    assert declined(state).keys() == {0}


def test_work_without_end_and_none_at_all_can_be_planned():
    state = state_of([LINEAR] * 2, 4, work=[np.inf, 10.0], progress=[0.0, 10.0], due_s=[None, 100])
    endless, done = DeadlinePlans(fewest_nodes(10.0)).plan_jobs(state, admits=True)[0]
    assert 1e12 < endless.plan.finish_s < np.inf
    now_s = state.time_us / SECOND
    assert now_s < done.plan.end_s <= now_s + 10


def test_levels_are_the_counts_that_a_job_can_use_up_to_the_one_on_which_it_is_fastest():
    levels = Levels.of(np.array([0.0, 1.0, 1.8, 0.0, 3.0, 0.0, 0.0, 0.0, 2.9]), 2)
    assert levels.counts.tolist() == [2, 4]
    assert levels.rates.tolist() == [1.8, 3.0]


# in the replay


class DeclinesSecond(Policy):
    name = "declines second"

    def decide(self, state):
        counts = np.where(state.job == 1, 0, 1)
        rows = np.flatnonzero(state.job == 1).tolist()
        return Decision(counts, round=Round(declined=dict.fromkeys(rows, "no room")))


def jobs_with_deadlines():
    return JobSet(
        [replace(job(name, work=100), deadline_us=due_s * SECOND) for name, due_s in (("a", 15), ("b", 15), ("c", 5))],
        submit_is_relative=True,
    )


def test_a_declined_job_leaves_at_once_and_the_run_says_why():
    run = replay_log(log(4, [], 100, idle_first=range(4)), jobs_with_deadlines(), DeclinesSecond())
    row = run.jobs.set_index("job").loc["b"]
    assert (row["status"], row["n_starts"], row["ended"].timestamp()) == ("declined", 0, 0.0)
    assert run.summary["declined"] == {"b": "no room"}
    assert run.summary["deadlines"] == {"met": 1, "missed": 1, "declined": 1, "open": 0, "void": 0}
    assert run.summary["jobs"]["declined"] == 1


def test_where_a_job_was_declined_no_time_is_named_at_which_all_were_done():
    run = replay_log(log(4, [], 100, idle_first=range(4)), jobs_with_deadlines(), DeclinesSecond())
    assert run.summary["last_finish_us"] is None
    assert run.summary["bound"]["earliest_finish_us"] is None
    assert any(
        text == "1 of 3 jobs were declined by the policy: U and the upper bound still count their work."
        for text in run.warnings
    )


class DeclinesAJobThatHoldsNodes(Policy):
    name = "declines a holder"

    def decide(self, state):
        return Decision(np.ones(state.n_jobs, np.int64), round=Round(declined={0: "why not"}))


def test_a_job_that_holds_nodes_cannot_be_declined():
    with pytest.raises(BfreplayError, match="declined jobs that hold nodes"):
        replay_log(log(4, [], 100, idle_first=range(4)), jobs_with_deadlines(), DeclinesAJobThatHoldsNodes())


def test_bftrainer_with_admission_declines_and_decides_on_the_rest_as_without_it():
    state = state_of([LINEAR, LINEAR, LINEAR], 4, work=[401.0, 50.0, 50.0], due_s=[100, 100, None])
    policy = BFTrainerPolicy(60.0, admission=True)
    decision = policy.decide(state)
    some_jobs = state.only(np.array([1, 2]))
    assert not some_jobs.current.flags.writeable  # as in a replay: another flag would compile the loops anew
    rest = BFTrainerPolicy(60.0).decide(some_jobs)
    assert decision.counts.tolist() == [0, *rest.counts.tolist()]
    assert decision.round.declined.keys() == {0}
    assert policy.describe()["admission"] is True
    assert "admission" not in BFTrainerPolicy(60.0).describe()


def test_admission_is_a_parameter_of_bftrainer_and_looks_at_nodes_of_one_type():
    policy = policy_of("bftrainer(admission=true)", t_fwd_s=60.0, solver=ExactSolver())
    with pytest.raises(InputError, match="admission plans on nodes of one type"):
        policy.check_types(["v100", "k80"])


@pytest.mark.parametrize("name", ["elasticflow.elasticflow", "bftrainer(admission=true)"])
def test_a_job_is_admitted_by_the_nodes_that_are_idle_when_it_comes(name):
    # 4 nodes idle at first, 1 from 10 s on: the first needs 2 of them until then, the second comes too late
    jobs = JobSet(
        [
            replace(job("early", work=190), deadline_us=10 * SECOND),
            replace(job("late", work=190, submit_s=12), deadline_us=22 * SECOND),
        ],
        submit_is_relative=True,
    )
    events = log(4, [(11, node, False) for node in (1, 2, 3)], 60, idle_first=range(4))
    policy = policy_of(name, t_fwd_s=60.0, solver=ExactSolver())
    run = replay_log(events, jobs, policy, ReplaySettings(max_parallel=5))
    assert run.jobs.set_index("job")["status"].to_dict() == {"early": "finished", "late": "declined"}
    assert run.summary["declined"] == {"late": "its deadline cannot be met with all idle nodes"}


@pytest.mark.parametrize("name", ["elasticflow.edf", "elasticflow.elastic"])
def test_without_admission_the_job_that_is_due_first_runs_first_though_another_is_late_by_that(name):
    # both need all 4 nodes; the second comes at 10 s
    jobs = JobSet(
        [
            replace(job("long", work=4000), deadline_us=100 * SECOND),
            replace(job("urgent", work=800, submit_s=10), deadline_us=30 * SECOND),
        ],
        submit_is_relative=True,
    )
    policy = policy_of(name, t_fwd_s=60.0, solver=ExactSolver())
    run = replay_log(log(4, [], 300, idle_first=range(4)), jobs, policy, ReplaySettings(max_parallel=5))
    assert run.jobs.set_index("job")["deadline_met"].to_dict() == {"long": False, "urgent": True}


@pytest.mark.often("elasticflow.edf_admission-0")
@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.thorough) for k in range(40, 1000, 40))])
@pytest.mark.parametrize("policy", ["elasticflow.elasticflow", "elasticflow.edf_admission"])
def test_no_admitted_job_is_late_where_rescaling_is_free_and_the_cluster_stays(policy, first):
    late = {seed: late_of_admitted(policy, seed)[0] for seed in range(first, first + 40)}
    assert {seed: jobs for seed, jobs in late.items() if jobs} == {}


@pytest.mark.slow
def test_a_reserve_makes_fewer_admitted_jobs_late():
    late = []
    for reserve in (0.0, 5.0):
        cases = [late_of_admitted("elasticflow.elasticflow", seed, cost_s=20.0, reserve=reserve) for seed in range(30)]
        late.append(sum(len(jobs) for jobs, _ in cases) / sum(number for _, number in cases))
    assert late[0] > 0
    assert late[1] < late[0] / 2
