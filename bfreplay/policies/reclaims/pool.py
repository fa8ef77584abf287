"""The idle nodes of a decision: what counts are worth on them between reclaims, and which of them a job takes."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.charge_rule import DOWN, UP, losses
from bfreplay.policies.reclaims.memory import Stretches, count_hits, frequency
from bfreplay.policies.reclaims.node_sets import choose_nodes, runs_of, useful_share
from bfreplay.policies.state import ChangeCosts, PolicyState

_SHARED = 0.3
"""Share of the reclaims of the smaller of two sets of nodes that do not hit the other."""


class Pool:
    """The nodes of one decision: those that jobs keep, and those to choose from.

    ``rates (J, K + 1)`` is what sets of nodes are chosen by; ``moves (J, K + 1)`` says where a count is worth more on
    other nodes than on those that the job holds with some added.
    """

    rates: NDArray[np.float64]

    def __init__(self, state: PolicyState, reclaims: Stretches) -> None:
        assert state.nodes is not None
        n_jobs = state.n_jobs
        self.state, self.reclaims = state, reclaims
        self.held = [np.sort(state.nodes.held(j)).astype(np.int64) for j in range(n_jobs)]
        lost_nodes = np.zeros(n_jobs) if state.lost_nodes is None else state.lost_nodes
        self.stays = (state.current >= state.min_nodes) & (lost_nodes == 0)
        self._collect()
        nothing = np.zeros(0, np.int64)
        kept = [held if stays else nothing for held, stays in zip(self.held, self.stays, strict=True)]
        first, last, _ = reclaims
        idle = np.flatnonzero(state.nodes.is_idle)
        self.hits = [count_hits(first, last, np.searchsorted(idle, held)) for held in kept]
        costs = costs_of(state)
        self.every_s, self.allowed = costs.save_every_s, costs.allowed
        self.moves = np.zeros(state.throughput.shape, np.bool_)
        by_count = np.maximum(costs.seconds[:, UP], costs.seconds[:, DOWN])
        columns = np.minimum(np.arange(state.throughput.shape[1]), by_count.shape[1] - 1)
        self.restart_s = np.ascontiguousarray(by_count[:, columns])  # (J, K + 1)
        of_all = self._choose(np.arange(state.throughput.shape[1], dtype=np.float64), -1, int(state.max_nodes.max()))
        self.reclaims_per_s = of_all[1]

    def _collect(self) -> None:
        """Collect the nodes to choose from."""
        assert self.state.nodes is not None
        is_free = self.state.nodes.is_idle.copy()
        for held in (held for held, stays in zip(self.held, self.stays, strict=True) if stays):
            is_free[held] = False
        self.nodes = np.flatnonzero(is_free)
        self.places = np.searchsorted(np.flatnonzero(self.state.nodes.is_idle), self.nodes)
        self.is_left = np.ones(self.nodes.size, np.bool_)

    def _choose(
        self, rate: NDArray[np.float64], job_row: int, most: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which of ``nodes`` a job takes, and the frequency of reclaims by count; -1: a job as good as any."""
        of_one = max(job_row, 0)
        first, last, seconds = self.reclaims
        is_chosen = np.zeros(self.nodes.size, np.bool_)
        stays = job_row >= 0 and bool(self.stays[job_row])
        reclaims_per_s = choose_nodes(
            rate,
            int(self.state.min_nodes[job_row]) if job_row >= 0 else 1,
            most,
            job_row < 0,
            self.held[job_row].size if stays else 0,
            self.hits[job_row] if stays else np.zeros(first.size, np.bool_),
            runs_of(self.places, self.nodes, self.is_left),
            self.places,
            first,
            last,
            seconds,
            float(self.every_s[of_one]),
            self.restart_s[of_one],
            is_chosen,
        )
        return is_chosen, reclaims_per_s

    def worths(
        self, value_rate: NDArray[np.float64], given_up: NDArray[np.float64], t_fwd_s: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gains and losses of all counts, (J, K + 1) each."""
        state = self.state
        costs = costs_of(state)
        next_save_s = np.zeros(state.n_jobs)
        if state.next_save_us is not None:
            next_save_s = np.where(costs.save_every_s > 0, (state.next_save_us - state.time_us) / 1e6, 0.0)
        risks = _Risks(
            self.stays,
            np.zeros(state.n_jobs) if state.at_risk_samples is None else state.at_risk_samples,
            next_save_s,
            self.restart_s,
            np.array([frequency(int(hits.sum()), self.reclaims.seconds) for hits in self.hits]),
            self.reclaims_per_s,
        )
        throughput_now = state.throughput[np.arange(state.n_jobs), state.current]
        loss = losses(state.current, state.min_nodes, given_up, throughput_now, *costs[:-2])
        gain, self.moves = _gains(
            state.current, state.min_nodes, value_rate, given_up, throughput_now, costs, risks, t_fwd_s
        )
        return gain, loss

    def choose(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return the nodes of each job: what it keeps, and what it takes, most needed first."""
        state = self.state
        leaves = self.stays & ((counts == 0) | self.moves[np.arange(state.n_jobs), counts])
        if leaves.any():  # the others may take what these give up
            self.stays = self.stays & ~leaves
            self._collect()
        nodes = [held if stays else held[:0] for held, stays in zip(self.held, self.stays, strict=True)]
        needs = counts - np.array([kept.size for kept in nodes])
        for job_row in np.argsort(-needs, kind="stable").tolist():
            if needs[job_row] <= 0:
                break
            is_chosen, _ = self._choose(self.rates[job_row], job_row, int(counts[job_row]))
            n_kept = nodes[job_row].size
            n_more = self._largest_allowed(job_row, n_kept + int(is_chosen.sum())) - n_kept
            if n_more > 0:
                chosen = np.flatnonzero(is_chosen)[:n_more]
                nodes[job_row] = np.concatenate((nodes[job_row], self.nodes[chosen]))
                self.is_left[chosen] = False
        return tuple(nodes)

    def reclaims_of(self, job_row: int, count: int) -> float:
        """Return the reclaims a second of a job's nodes, chosen already."""
        own = frequency(int(self.hits[job_row].sum()), self.reclaims.seconds) * self.stays[job_row]
        n_added = count - int(self.state.current[job_row]) * self.stays[job_row]
        if n_added <= 0:
            return float(own) if count else 0.0
        return float(_of_both(own, self.reclaims_per_s[n_added]))

    def restarts_s(self, nodes: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64] | None:
        """Return what jobs pay that move and keep their count, (J,): nobody else charges them. ``None``: none does."""
        state = self.state
        restarts_s = np.zeros(state.n_jobs)
        lost_nodes = 0 if state.lost_nodes is None else state.lost_nodes
        for job_row in np.flatnonzero(~self.stays & (lost_nodes == 0) & (state.current > 0)):
            count = nodes[job_row].size
            if count == state.current[job_row] and not np.array_equal(np.sort(nodes[job_row]), self.held[job_row]):
                restarts_s[job_row] = self.restart_s[job_row, count]
        return restarts_s if restarts_s.any() else None

    def _largest_allowed(self, job_row: int, most: int) -> int:
        """Return the largest count of at most ``most`` that the job can use, or 0."""
        is_allowed = self.allowed[job_row, np.minimum(np.arange(most + 1), self.allowed.shape[1] - 1)]
        is_allowed[: self.state.min_nodes[job_row]] = False
        return int(np.flatnonzero(is_allowed).max(initial=0))


def costs_of(state: PolicyState) -> ChangeCosts:
    """Return the costs of changes, also where they are the constant ones."""
    if state.costs is not None:
        return state.costs
    n_jobs, zeros = state.n_jobs, np.zeros(state.n_jobs)
    seconds = np.zeros((n_jobs, 4, 1))
    seconds[:, UP, 0], seconds[:, DOWN, 0] = state.scale_up_cost_s, state.scale_down_cost_s
    return ChangeCosts(seconds, np.zeros(n_jobs, np.int64), zeros, zeros, np.ones((n_jobs, 1), np.bool_), zeros, 0.0)


@compiled
def _of_both(first: float, second: float) -> float:
    """Return the reclaims a second of two sets of nodes together."""
    return max(first, second) + _SHARED * min(first, second)


class _Risks(NamedTuple):
    """Frequencies of reclaims for J jobs, and what each has at risk."""

    stays: NDArray[np.bool_]  # (J,) neither hit nor without nodes
    at_risk: NDArray[np.float64]  # (J,) samples
    next_save_s: NDArray[np.float64]  # (J,) until its next checkpoint
    restart_s: NDArray[np.float64]  # (J, K + 1)
    own_per_s: NDArray[np.float64]  # (J,) reclaims of the nodes that it holds
    free_per_s: NDArray[np.float64]  # (K + 1,) of the best nodes to choose from


@compiled
def _gains(
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    value_rate: NDArray[np.float64],
    given_up: NDArray[np.float64],
    throughput_now: NDArray[np.float64],
    costs: ChangeCosts,
    risks: _Risks,
    t_fwd_s: float,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return what counts are worth over the forward-looking time, and on which a job would move, (J, K + 1) each.

    A job that changes makes ``T g(n) v(n)`` with the useful share ``g`` (``useful_share``) of its rate ``v``, and what
    the longest restart of all leaves of its own. One that stays also has what it would save at its next checkpoint, in
    ``tau`` seconds, if no reclaim comes before, with probability ``p = exp(-L tau)``: its work at risk ``w``, the work
    until then, and no restart; for that its useful share does not count until then. A job that keeps its count and
    moves pays the restart all the same, and the work that it has not saved.
    """
    gain = np.zeros(given_up.shape)
    moves = np.zeros(given_up.shape, np.bool_)
    for j in range(current.shape[0]):
        before = current[j]
        stays, own, every_s = risks.stays[j], risks.own_per_s[j], costs.save_every_s[j]
        rate_now = given_up[j, before] if before >= min_nodes[j] else 0.0
        per_sample = rate_now / throughput_now[j] if rate_now > 0.0 and throughput_now[j] > 0.0 else 0.0
        for n in range(1, given_up.shape[1]):
            per_s = risks.free_per_s[n]
            moves[j, n] = stays
            if stays and n > before:
                of_both = _of_both(own, risks.free_per_s[n - before])
                moves[j, n] = per_s < of_both
                per_s = min(per_s, of_both)
            share = useful_share(per_s, every_s, risks.restart_s[j, n])
            gain[j, n] = t_fwd_s * share * value_rate[j, n] + costs.longest_s * given_up[j, n]
            if stays and n == before:
                moved = gain[j, n] - risks.restart_s[j, n] * rate_now - costs.unsaved_samples[j] * per_sample
                share = useful_share(own, every_s, risks.restart_s[j, n])
                tau_s = risks.next_save_s[j]
                survives = exp(-own * tau_s)
                kept = rate_now * (tau_s + exp(-own * every_s) * (costs.longest_s - costs.pause_left_s[j]))
                stayed = t_fwd_s * share * value_rate[j, n] + survives * kept
                stayed -= (1.0 - survives) * (risks.at_risk[j] * per_sample + share * rate_now / own)
                moves[j, n] = moved > stayed and costs.allowed[j, min(n, costs.allowed.shape[1] - 1)]
                # the loss of a count that stays is the rest of its pause, which both know already
                gain[j, n] = (moved if moves[j, n] else stayed) + costs.pause_left_s[j] * rate_now
    return gain, moves
