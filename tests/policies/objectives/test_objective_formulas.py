"""Each objective on states that a person can check by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from bfreplay import load_jobs
from bfreplay.errors import InputError
from bfreplay.policies.bftrainer import problem_of
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.testing.objective import jobs_of_every_kind
from tests.policies.small_states import state_of

FAST_AND_SLOW = [[0.0, 100.0, 180.0, 240.0], [0.0, 10.0, 19.0, 27.0]]


def values(spec, state, t_fwd_s=1.0):
    """What ``spec`` says per second, from the decision it poses over one second."""
    return objective_of(spec).problem(state, t_fwd_s).gain / t_fwd_s


def test_own_poses_what_bftrainer_always_has_bit_for_bit():
    for state in jobs_of_every_kind():
        usual = problem_of(state, 120.0)
        for spec in ("own", "1*own"):
            posed = objective_of(spec).problem(state, 120.0)
            for name in ("gain", "scale_up_loss", "scale_down_loss", "current", "min_nodes", "max_nodes"):
                assert getattr(posed, name).tobytes() == getattr(usual, name).tobytes(), name
            assert posed.capacity == usual.capacity
        held = np.where(state.current >= state.min_nodes, state.current, 0)
        made = state.objective[np.arange(state.n_jobs), held]
        assert usual.gain.tobytes() == (120.0 * state.objective).tobytes()
        assert usual.scale_up_loss.tobytes() == (made * state.scale_up_cost_s).tobytes()


def test_throughput_is_samples_times_weight_whatever_the_jobs_own_objective():
    state = state_of(FAST_AND_SLOW, 3, weight=[1, 2], objective=np.ones((2, 4)))
    assert values("throughput", state).tolist() == [[0, 100, 180, 240], [0, 20, 38, 54]]


def test_speed_up_is_over_one_node_and_times_weight():
    state = state_of(FAST_AND_SLOW, 3, weight=[1, 2])
    assert values("speed-up", state) == pytest.approx(np.array([[0, 1, 1.8, 2.4], [0, 2, 3.8, 5.4]]))


def test_speed_up_without_a_rate_on_one_node_is_per_node_of_the_first_count_that_has_one():
    state = state_of([[0, 0, 0, 30, 36], [0, 0, 0, 0, 50]], 4, max_nodes=[4, 3], min_nodes=[3, 3])
    # 30 on 3 nodes: 10 a node. The other job has no rate that it may use
    assert values("speed-up", state) == pytest.approx(np.array([[0, 0, 0, 3, 3.6], [0, 0, 0, 0, 0]]))


def test_speed_up_is_the_published_objective_of_the_job_sets_for_scaling_efficiency(shared):
    folder = shared / "data" / "bftrainer"
    jobs = load_jobs(folder / "ImageNet-spdup-Jbnd-1001J.pkl", folder / "ImageNet-spdup-JNPs-1001J.pkl")
    rates = np.array([job.throughput.table(64) for job in jobs])
    published = np.array([job.objective_curve.table(64) for job in jobs])
    assert len(jobs) == 1001
    assert published.max() > 20
    assert np.abs(values("speed-up", state_of(rates, 100)) - published).max() < 1e-9


def test_priority_is_the_weight_at_the_jobs_best_count():
    state = state_of([[0, 100, 200, 160], [0, 1, 1.5, 2], [0, 0, 0, 0]], 3, weight=[1, 4, 9])
    assert values("priority", state) == pytest.approx(np.array([[0, 0.5, 1, 0.8], [0, 2, 3, 4], [0, 0, 0, 0]]))


def test_the_best_count_is_one_that_the_job_may_have():
    state = state_of([[0, 80, 20, 40, 99]], 3, min_nodes=[2], max_nodes=[3])
    assert values("priority", state)[0, [2, 3]] == pytest.approx([0.5, 1])


def test_proportional_fairness_is_the_logarithm_of_service_gained_per_second():
    # after 10 s more: job 0 is 100 s old and has 450 of 1000 samples, job 1 is new
    state = state_of([[0, 5, 10], [0, 5, 10]], 2, age_s=[90, 0], progress=[450, 0], weight=[1, 3])
    expected = [
        [0, log(0.501 / 0.451) / 10, log(0.551 / 0.451) / 10],
        [0, 3 * log(0.501 / 0.001) / 10, 3 * log(1.001 / 0.001) / 10],
    ]
    assert values("proportional-fairness", state, 10.0) == pytest.approx(np.array(expected))


def test_a_rescale_costs_proportional_fairness_what_the_job_gains_now():
    state = state_of([[0, 5, 10]], 2, current=[1], scale_up_cost_s=[4], age_s=[90], progress=[450])
    posed = objective_of("proportional-fairness").problem(state, 10.0)
    assert posed.scale_up_loss == pytest.approx([4 * log(0.501 / 0.451) / 10])


def test_proportional_fairness_stands_progress_below_zero():
    state = state_of([[0, 10]], 1, age_s=[90], progress=[-2])  # -0.002 of service: the tangent at 0 has slope 1000
    assert values("proportional-fairness", state, 10.0) == pytest.approx(
        np.array([[0, (log(0.099) - log(0.001) + 2) / 10]])
    )


def test_deadline_is_the_part_of_the_needed_rate_and_some_background():
    # 600 samples in 100 s: 6 samples/s are needed, which lie between two nodes and three
    state = state_of([[0, 2, 4, 8]], 3, work=[1000], progress=[400], due_s=[100], weight=[2])
    background = 0.1 * np.array([0, 0.25, 0.5, 1])
    assert values("deadline", state) == pytest.approx(2 * np.array([[0, 2 / 6, 4 / 6, 1]]) + 2 * background)
    assert values("deadline(background=0)", state) == pytest.approx(2 * np.array([[0, 2 / 6, 4 / 6, 1]]))


def test_a_margin_asks_for_more_than_the_needed_rate_and_never_for_more_than_the_best():
    state = state_of([[0, 2, 4, 8]], 3, work=[1000], progress=[400], due_s=[200])  # 3 samples/s are needed
    assert values("deadline(margin=2, background=0)", state) == pytest.approx(np.array([[0, 2 / 6, 4 / 6, 1]]))
    assert values("deadline(margin=9, background=0)", state) == pytest.approx(np.array([[0, 2 / 8, 4 / 8, 1]]))
    with pytest.raises(InputError, match="margin"):
        values("deadline(margin=0.9)", state)


@pytest.mark.parametrize(
    "changes",
    [
        {},  # no deadline
        {"due_s": [-1]},  # passed
        {"due_s": [0]},  # now
        {"due_s": [74], "work": [1000], "progress": [400]},  # 8.1 samples/s are needed, 8 is the best
        {"due_s": [100], "work": [np.inf]},  # it has no end
        {"due_s": [100], "work": [400], "progress": [400]},  # it is done
    ],
)
def test_a_deadline_that_is_not_there_or_cannot_be_met_leaves_background_work(changes):
    state = state_of([[0, 2, 4, 8]], 3, **changes)
    assert values("deadline", state) == pytest.approx(np.array([[0, 0.025, 0.05, 0.1]]))


def test_a_deadline_that_only_the_best_count_meets_is_worth_a_full_weight_there():
    state = state_of([[0, 2, 4, 8]], 3, due_s=[75], work=[1000], progress=[400])
    assert values("deadline(background=0)", state) == pytest.approx(np.array([[0, 0.25, 0.5, 1]]))


def test_deadlines_are_met_before_1970_too():
    state = state_of([[0, 2, 4, 8]], 3, time_us=-(10**15), due_s=[100], work=[1000], progress=[400])
    assert values("deadline(background=0)", state)[0, 3] == 1
    assert values("deadline(background=0)", state_of([[0, 2]], 1, time_us=-(10**15))).tolist() == [[0, 0]]


def test_cost_is_speed_up_less_the_price_of_nodes():
    state = state_of(FAST_AND_SLOW, 3, weight=[1, 2])
    assert values("cost", state) == pytest.approx(np.array([[0, 0.5, 0.8, 0.9], [0, 1.5, 2.8, 3.9]]))
    assert values("cost(price=1)", state)[0] == pytest.approx([0, 0, -0.2, -0.6])


def test_at_a_price_a_job_holds_what_adds_at_least_that_share_of_its_first_node():
    # the fourth node adds 45 samples/s: less than half of what the first one adds
    state = state_of([[0, 100, 180, 240, 285]], 4)
    held = {price: best_count(f"cost(price={price})", state) for price in (0, 0.44, 0.46, 0.59, 0.61, 0.81, 1.1)}
    assert held == {0: 4, 0.44: 4, 0.46: 3, 0.59: 3, 0.61: 2, 0.81: 1, 1.1: 0}


def best_count(spec, state):
    return int(np.argmax(objective_of(spec).problem(state, 60.0).value[0]))


def test_a_rescaling_job_gives_up_its_output_but_its_nodes_cost_the_same():
    state = state_of([[0, 100, 180, 240]], 3, current=[2], scale_up_cost_s=[10], scale_down_cost_s=[5])
    posed = objective_of("cost(price=0.8)").problem(state, 60.0)
    assert posed.gain[0, 2] == pytest.approx(60 * (1.8 - 1.6))
    assert posed.scale_up_loss == pytest.approx([10 * 1.8])
    assert posed.scale_down_loss == pytest.approx([5 * 1.8])


def test_energy_charges_waiting_nodes_less_than_busy_ones():
    # extra power in busy nodes' worth: 1/4 for each node, 3/4 for each that computes; 2 nodes compute 90 % of the time
    state = state_of([[0, 100, 180, 240]], 3, weight=[2])
    spec = "energy(price=0.4, idle_w=500, wait_w=750, busy_w=1500)"
    expected = [0, 2 - 0.4, 2 * 1.8 - 0.4 * (2 * 0.25 + 2 * 0.75 * 0.9), 2 * 2.4 - 0.4 * (3 * 0.25 + 3 * 0.75 * 0.8)]
    assert values(spec, state) == pytest.approx(np.array([expected]))


def test_energy_is_cost_where_waiting_draws_as_much_as_computing():
    state = state_of(FAST_AND_SLOW, 3, weight=[1, 2], current=[1, 2], scale_up_cost_s=[7, 7])
    energy = objective_of("energy(price=0.3, idle_w=0, wait_w=10, busy_w=10)").problem(state, 60.0)
    cost = objective_of("cost(price=0.3)").problem(state, 60.0)
    assert energy.gain == pytest.approx(cost.gain)
    assert energy.scale_up_loss == pytest.approx(cost.scale_up_loss)


def test_a_rescaling_job_saves_the_energy_between_busy_and_waiting():
    state = state_of([[0, 100, 180, 240]], 3, current=[2], scale_up_cost_s=[10])
    posed = objective_of("energy(price=0.4, idle_w=500, wait_w=750, busy_w=1500)").problem(state, 60.0)
    assert posed.scale_up_loss == pytest.approx([10 * (1.8 - 0.4 * 0.75 * 1.8)])


def test_what_costs_more_than_it_makes_is_given_up_for_nothing():
    state = state_of([[0, 100, 180, 240]], 3, current=[2], scale_up_cost_s=[10])
    posed = objective_of("energy(price=9, idle_w=0, wait_w=0, busy_w=10)").problem(state, 60.0)
    assert posed.scale_up_loss.tolist() == [0]


@pytest.mark.parametrize(
    "spec",
    [
        "deadline(background=-0.1)",
        "cost(price=-1)",
        "energy(price=-1)",
        "energy(idle_w=-1)",
        "energy(wait_w=599)",
        "energy(busy_w=999)",
        "energy(idle_w=5, wait_w=5, busy_w=5)",
    ],
)
def test_parameters_out_of_range_are_refused(spec):
    with pytest.raises(InputError, match=r"out of (range|order)"):
        values(spec, state_of(FAST_AND_SLOW, 3))


@pytest.mark.parametrize("slack", ["-0.1", "1.1"])
def test_a_slack_that_is_no_fraction_is_refused(slack):
    with pytest.raises(InputError, match="slack is out of range"):
        objective_of(f"max-min(slack={slack})")
