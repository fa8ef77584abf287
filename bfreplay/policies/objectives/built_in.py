"""The objectives that sum over jobs: what a job is worth per second at each count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.policies.objectives.objective import Rates
from bfreplay.policies.state import NO_DEADLINE_US, PolicyState

NO_RATE = 1e-100
"""In samples/s; a rate up to this is none. Ratios to it would leave the range of floating-point numbers."""


def first_node_rate(state: PolicyState) -> NDArray[np.float64]:
    """``(J,)`` samples/s on one node; where that is 0, per node of the smallest count that has a rate.

    0 for a job without any rate up to its ``max_nodes``.
    """
    throughput = state.throughput
    rate = throughput[:, 1].copy()
    for number in np.flatnonzero(rate <= NO_RATE).tolist():
        counts_with_rate = np.flatnonzero(throughput[number, : state.max_nodes[number] + 1] > NO_RATE)
        rate[number] = throughput[number, counts_with_rate[0]] / counts_with_rate[0] if counts_with_rate.size else 0.0
    return rate


def best_rate(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(J,)`` samples/s at the best count from ``min_nodes`` to ``max_nodes``, idle or not; 0 without any rate."""
    runs = (counts >= state.min_nodes[:, None]) & (counts <= state.max_nodes[:, None])
    best_rates: NDArray[np.float64] = np.where(runs & (state.throughput > NO_RATE), state.throughput, 0.0).max(axis=1)
    return best_rates


def in_units_of(rates: NDArray[np.float64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """``rates (J, K + 1)`` by ``unit (J,)``; 0 where the unit is no rate."""
    return rates / np.where(unit > NO_RATE, unit, np.inf)[:, None]


FLOOR = 1e-3
"""Added to shares in ``log_service``. ``log`` alone is infinite for a job that has got nothing: all that any other job
could gain would count for nothing beside it. With this it asks for at most log(1001), 6.9 times what a job gains by
doing e times better; shares of one per cent and above are hardly changed."""


def service(
    state: PolicyState, samples: NDArray[np.float64], best: NDArray[np.float64], t_fwd_s: float
) -> NDArray[np.float64]:
    """``(J, K + 1)``: ``(progress + samples) / (best x age)`` at the end of the forward-looking time.

    ``samples (J, K + 1)`` is what the decision brings, ``best (J,)`` the job's best rate in samples/s, and its age then
    is ``now + t_fwd_s - admitted``. 1 is what nodes of its own, at its best count and from its admission on, would
    have given. 0 for a job without any rate.
    """
    age_s = (state.time_us - state.admitted_us) * 1e-6 + t_fwd_s
    dedicated = best * age_s
    return (state.progress[:, None] + samples) / np.where(best > 0.0, dedicated, np.inf)[:, None]


def log_service(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """``log(share + FLOOR)``, continued below 0 by its tangent: increasing and concave everywhere.

    Shares below 0 exist: what a young job loses by rescaling can be more than it has made.
    """
    above = np.maximum(share, 0.0)
    below = np.minimum(share, 0.0)
    return np.log(above + FLOOR) + below / FLOOR


def own(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x O(n)``, in the curve's own unit: BFTrainer's objective (arXiv:2106.12091, section III).

    ``O`` is the job's objective curve (the published ``Os``), the throughput for a job without one. Use it when the
    users' curves say what they want, and say it in one unit: the values of different jobs are added.
    """
    return state.objective


def throughput(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x P(n)``, samples/s (BFTrainer's "throughput").

    Use it when a sample is a sample, whoever trains on it: jobs of one model. Among different models those that are
    fast by nature take the nodes.
    """
    return state.weight[:, None] * state.throughput


def speed_up(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x P(n) / P(1)``, in nodes' worth (BFTrainer's "scaling efficiency", the published ``spdup`` job sets).

    Where ``P(1)`` is 0: over ``P(m) / m`` at the smallest count ``m`` that has a rate. A job without any rate is worth
    nothing. Use it for jobs of different models: nodes go to those that make the most of another one.
    """
    return state.weight[:, None] * in_units_of(state.throughput, first_node_rate(state))


def priority(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x P(n) / max P``, the weight times the share of the job's own best rate from ``min`` to ``max_nodes``.

    A job at its best is worth its weight, however fast its model is. Use it when weights are priorities and are to
    decide.
    """
    return state.weight[:, None] * in_units_of(state.throughput, best_rate(state, counts))


def proportional_fairness(state: PolicyState, counts: NDArray[np.int64], *, t_fwd_s: float) -> NDArray[np.float64]:
    """``weight x (log s(n) - log s(0)) / t_fwd``, per second, with ``s`` the service since admission.

    ``s(n) = (progress + t_fwd P(n)) / (best rate x (now + t_fwd - admitted))`` is what the job will have got as a share
    of what dedicated nodes at its best count would have given it; ``log s`` is ``log(s + 0.001)``, so that a job which
    has got nothing can ask for much, but not for everything. The sum of logarithms is alpha-fairness at alpha = 1
    (Kelly, Maulloo, Tan 1998; Mo, Walrand 2000): a decision is changed only if the jobs that gain gain more, in per
    cent, than the others lose. Use it to share fairly without giving up much throughput.
    """
    share = service(state, t_fwd_s * state.throughput, best_rate(state, counts), t_fwd_s)
    job_values = log_service(share)
    return state.weight[:, None] * (job_values - job_values[:, :1]) / t_fwd_s


def deadline(
    state: PolicyState, counts: NDArray[np.int64], *, margin: float = 1.0, background: float = 0.1
) -> NDArray[np.float64]:
    """``weight x (min(1, P(n) / R) + background x P(n) / max P)``, no unit.

    ``R`` = ``margin`` x samples left / seconds left to the deadline, at most ``max P``; with a margin of 1 it is the
    rate that the job needs from now on. Up to it a job is worth a full weight; beyond it, only as ``background`` work.
    So is a job without a deadline or without an end, and one that is late: its deadline has passed, or not even
    ``max P`` would meet it. Use it when jobs have due times. Nodes that will be reclaimed are allowed for by the margin
    alone.
    """
    checks.number("margin", margin, least=1.0)
    checks.number("background", background, least=0.0)
    best_rates = best_rate(state, counts)
    remaining_samples = state.work - state.progress
    # as floats: a time before 1970 and no deadline are further apart than int64 reaches
    remaining_seconds = (state.deadline_us.astype(np.float64) - state.time_us) * 1e-6
    has_one = (state.deadline_us != NO_DEADLINE_US) & (remaining_seconds > 0.0) & (remaining_samples > 0.0)
    least_rate = np.where(has_one, remaining_samples, np.inf) / np.where(has_one, remaining_seconds, 1.0)
    is_attainable = least_rate <= best_rates
    target_rate = np.minimum(margin * np.where(is_attainable, least_rate, 0.0), best_rates)
    urgency = np.minimum(in_units_of(state.throughput, target_rate), 1.0)
    return state.weight[:, None] * (urgency + background * in_units_of(state.throughput, best_rates))


def cost(state: PolicyState, counts: NDArray[np.int64], *, price: float = 0.5) -> Rates:
    """``weight x P(n) / P(1) - price x n``, in nodes' worth.

    ``price`` is what a node costs, in what a job makes of its first one: a job of weight 1 holds a node only while it
    adds at least that share of what the first added, and idle nodes stay idle rather than be used badly. A rescaling
    job gives up what it makes; its nodes cost the same. Use it when node-hours are billed, or wanted by others.
    """
    checks.number("price", price, least=0.0)
    output = speed_up(state, counts)
    return Rates(value=output - price * counts, given_up=output)


def energy(
    state: PolicyState,
    counts: NDArray[np.int64],
    *,
    price: float = 0.5,
    idle_w: float = 600.0,
    wait_w: float = 1000.0,
    busy_w: float = 2000.0,
) -> Rates:
    """``weight x S(n) - price x n x ((wait - idle) + (busy - wait) x S(n) / n) / (busy - idle)``, in nodes' worth.

    ``S(n) = P(n) / P(1)``, and ``S(n) / n`` is the efficiency: the share of its time that a node computes. A node draws
    ``busy_w`` then, ``wait_w`` while it waits for the others or rescales, and ``idle_w`` without a job, which is not
    charged. ``price`` is what the extra energy of one busy node costs, in what a job makes of its first one. The
    defaults are round figures for a node with six GPUs of 300 W, such as Summit's, not measured ones: set your own. A
    rescaling job gives up what it makes, less the energy between ``busy_w`` and ``wait_w`` that it saves. Use it when
    power is what is short: jobs that scale badly keep few nodes, as with ``cost``, but pay less for waiting ones.
    """
    checks.number("price", price, least=0.0)
    if not 0.0 <= idle_w <= wait_w <= busy_w or not idle_w < busy_w:
        raise InputError(
            "the powers of a node are out of order",
            column="idle_w, wait_w, busy_w",
            value=(idle_w, wait_w, busy_w),
            expected="0 <= idle_w <= wait_w <= busy_w, and idle_w < busy_w",
        )
    speed_up = in_units_of(state.throughput, first_node_rate(state))
    waiting, computing = (wait_w - idle_w) / (busy_w - idle_w), (busy_w - wait_w) / (busy_w - idle_w)
    given_up = state.weight[:, None] * speed_up - (price * computing) * speed_up
    return Rates(value=given_up - (price * waiting) * counts, given_up=given_up)
