"""Expected duration of a decision: a fixed time, or one that is learnt from the events as they come.

It is learnt by shadow replays: what would have come of the events so far with other forward-looking times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay._compiled import compiled
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import charged_rate, preemption_cost, rescale_cost
from bfreplay.milp.exact.solver import PROOF_TOLERANCE, optimal_counts
from bfreplay.policies.state import LONG_AGO_US, JobTables, PolicyState


@compiled
def _current_rate(jobs: JobTables, counts: NDArray[np.int64], j: int) -> float:
    """Return the rate of job ``j`` now, which it gives up while it rescales; 0 below its minimum."""
    return charged_rate(jobs.rate[j, counts[j]], counts[j], jobs.min_nodes[j])


@compiled
def reclaim(
    counts: NDArray[np.int64], held_now: NDArray[np.int64], losses: NDArray[np.int64], n_idle: int, jobs: JobTables
) -> float:
    """Take nodes from a shadow's ``counts (J,)``; returns what the jobs that lose some are charged.

    Which nodes a shadow's jobs would have held is not known, only what the real ones held and lost (``held_now``,
    ``losses``, both (J,)). Nodes that the shadow left free and the real jobs took are the first to go. Of the rest, a
    job loses the share of its nodes that the real one lost, rounded up, in order of admission. What does not fit into
    ``n_idle`` after that goes from the largest.
    """
    cost = 0.0
    total = counts.sum()
    n_to_lose = losses.sum() - max(0, held_now.sum() - total)
    for j in range(counts.shape[0]):
        if n_to_lose > 0 and losses[j] > 0 and counts[j] > 0:
            n_lost = min(counts[j], n_to_lose, -(-losses[j] * counts[j] // held_now[j]))
            cost += preemption_cost(_current_rate(jobs, counts, j), jobs.scale_down_cost_s[j])
            counts[j] -= n_lost
            total -= n_lost
            n_to_lose -= n_lost
    while total > n_idle:
        largest = 0
        for j in range(1, counts.shape[0]):
            if counts[j] > counts[largest]:
                largest = j
        n_lost = min(counts[largest], total - n_idle)
        cost += preemption_cost(_current_rate(jobs, counts, largest), jobs.scale_down_cost_s[largest])
        counts[largest] -= n_lost
        total -= n_lost
    return cost


@compiled
def decide(
    counts: NDArray[np.int64], t_fwd_s: float, n_idle: int, jobs: JobTables, value: NDArray[np.float64]
) -> tuple[float, float]:
    """Decide as BFTrainer does (arXiv:2106.12091, section III) and write ``counts (J,)``; ``value (J, K + 1)`` is room.

    Returns (what rescaling is charged, what the jobs make per second from now on). Where the numbers are too large
    to decide on, all stays as it is.
    """
    rate, min_nodes, max_nodes, scale_up_cost_s, scale_down_cost_s = jobs
    n_jobs, width = rate.shape
    for j in range(n_jobs):
        n_held = counts[j]
        rate_now = _current_rate(jobs, counts, j)
        most_nodes = min(max_nodes[j], n_idle, width - 1)
        value[j].fill(-np.inf)
        loss = rescale_cost(rate_now, n_held, 0, scale_up_cost_s[j], scale_down_cost_s[j])
        value[j, 0] = t_fwd_s * rate[j, 0] - loss
        for n in range(min_nodes[j], most_nodes + 1):
            loss = rescale_cost(rate_now, n_held, n, scale_up_cost_s[j], scale_down_cost_s[j])
            value[j, n] = t_fwd_s * rate[j, n] - loss
    new_counts, _, _, stage = optimal_counts(value, n_idle, PROOF_TOLERANCE)
    cost = 0.0
    rate_after = 0.0
    for j in range(n_jobs):
        if stage >= 0:
            rate_now = _current_rate(jobs, counts, j)
            cost += rescale_cost(rate_now, counts[j], new_counts[j], scale_up_cost_s[j], scale_down_cost_s[j])
            counts[j] = new_counts[j]
        rate_after += _current_rate(jobs, counts, j)
    return cost, rate_after


@compiled
def step(
    counts: NDArray[np.int64],
    candidates_s: NDArray[np.float64],
    held_now: NDArray[np.int64],
    losses: NDArray[np.int64],
    n_idle: int,
    jobs: JobTables,
    charges: NDArray[np.float64],
    rates: NDArray[np.float64],
) -> None:
    """One instant of all E shadows: nodes go, each decides with its own forward-looking time.

    Writes ``counts (E, J)``, ``charges (E,)`` and ``rates (E,)``: what each is charged now, and makes per second after.
    """
    value = np.empty(jobs.rate.shape)
    for e in range(counts.shape[0]):
        preemption_charge = reclaim(counts[e], held_now, losses, n_idle, jobs)
        rescale_charge, rates[e] = decide(counts[e], candidates_s[e], n_idle, jobs, value)
        charges[e] = preemption_charge + rescale_charge


_LARGEST = 1e280
"""Values above this are not decided on: sums of them would overflow."""


class Shadows:
    """Replays beside the real one, one for each candidate, over counts of nodes and only as far as it has come.

    Each follows the real pool and the real jobs, and decides with its own forward-looking time. It is worth what its
    jobs make by their objective curves, less what rescaling and preemption are charged (at once, as in the published
    accounting).

    Parameters
    ----------
    candidates_s : (E,) float64
        Forward-looking times, seconds.
    """

    def __init__(self, candidates_s: NDArray[np.float64]) -> None:
        self._candidates_s = candidates_s
        self._job: NDArray[np.int64] = np.zeros(0, np.int64)
        self._held: NDArray[np.int64] = np.zeros(0, np.int64)  # by the real jobs, since the last decision
        self._counts: NDArray[np.int64] = np.zeros((candidates_s.size, 0), np.int64)
        self._made = np.zeros(candidates_s.size)  # per second, since the last decision
        self._charged = np.zeros(candidates_s.size)
        self._time_us = 0

    def follow(self, state: PolicyState) -> NDArray[np.float64]:
        """Go on to ``state``; returns what each shadow has gained since the one before, (E,)."""
        if not self._job.size:
            self._begin(state)
        duration_s = (state.time_us - self._time_us) * 1e-6
        self._renumber(state.job)
        losses = np.maximum(self._held - state.current, 0)
        if self._held.any() and not state.current.any():
            duration_s = 0.0  # the pool was empty, and nobody was asked: since when is not known
        self._time_us = state.time_us
        gain = self._made * duration_s
        largest = float(np.abs(state.objective).max(initial=0.0)) * state.n_jobs * float(self._candidates_s[-1])
        if not largest < _LARGEST:
            return np.zeros_like(gain)
        # copied, and so all of one kind: each other one (strided, read-only) would compile the loop anew
        jobs = JobTables._make(table.copy() for table in state.tables)
        step(self._counts, self._candidates_s, self._held, losses, state.n_idle, jobs, self._charged, self._made)
        return gain - self._charged

    def note_decision(self, counts: NDArray[np.int64]) -> None:
        """The real jobs hold ``counts`` (J,) from now on."""
        self._held = np.array(counts, dtype=np.int64)

    def rest(self) -> None:
        """Stop here; the next time all begin with what the real jobs hold then."""
        self._job = np.zeros(0, np.int64)

    def _begin(self, state: PolicyState) -> None:
        self._job, self._held, self._time_us = state.job.copy(), state.current.copy(), state.time_us
        self._counts = np.tile(state.current, (self._candidates_s.size, 1))

    def _renumber(self, job_numbers: NDArray[np.int64]) -> None:
        """Keep the counts of the jobs that go on; those that are new hold nothing yet."""
        if np.array_equal(job_numbers, self._job):
            return
        counts = np.zeros((self._candidates_s.size, job_numbers.size), np.int64)
        counts_held = np.zeros(job_numbers.size, np.int64)
        _, new_rows, old_rows = np.intersect1d(job_numbers, self._job, assume_unique=True, return_indices=True)
        counts[:, new_rows] = self._counts[:, old_rows]
        counts_held[new_rows] = self._held[old_rows]
        self._job, self._counts, self._held = job_numbers.copy(), counts, counts_held


class ForwardTime(Protocol):
    """Expected duration of each decision, perhaps learnt from earlier ones.

    The same states and decisions give the same times. When the clock goes back another replay has begun: what was
    learnt is forgotten.
    """

    def seconds(self, state: PolicyState) -> float:
        """Forward-looking time of the decision on ``state``: seconds, finite and > 0."""
        ...

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Note that the jobs of ``state``, the argument of ``seconds``, hold ``counts`` (J,) from now on."""
        ...

    def describe(self) -> dict[str, object]:
        """``name``, and every parameter with its value, JSON-ready, for the run's record."""
        ...

    def close(self) -> None:
        """Forget what was learnt; harmless when called twice."""
        ...


def is_number(value: object) -> bool:
    """Return whether it is a number of Python or numpy, and not a truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def positive_seconds(t_fwd_s: float | str, expected: str, fix: str) -> float:
    """Return a forward-looking time as a float; ``InputError`` with ``expected`` unless it is a positive number."""
    seconds = float(t_fwd_s) if is_number(t_fwd_s) else math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(
            "the forward-looking time is not a positive number",
            column="t_fwd_s",
            value=t_fwd_s,
            expected=expected,
            fix=fix,
        )
    return seconds


class FixedForwardTime:
    """The same time for every decision.

    Parameters
    ----------
    t_fwd_s
        Seconds, > 0. Small values make rescaling dear.

    Raises
    ------
    InputError
        It is no positive number.
    """

    def __init__(self, t_fwd_s: float) -> None:
        self.t_fwd_s = positive_seconds(
            t_fwd_s,
            "seconds > 0, or 'auto'",
            "120 s is a good start; the best value depends on how often nodes are reclaimed, and 'auto' learns it from "
            "the events as they come",
        )

    def seconds(self, state: PolicyState) -> float:
        """Return the fixed time."""
        return self.t_fwd_s

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Do nothing: there is nothing to learn."""

    def describe(self) -> dict[str, object]:
        """Its name and the seconds."""
        return {"name": "fixed", "t_fwd_s": self.t_fwd_s}

    def close(self) -> None:
        """Do nothing: there is nothing to forget."""


AUTO = "auto"
"""Its name, and what stands for it in options."""

CANDIDATES_S = (7.5, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""From below the time that a rescale takes to where longer makes hardly a difference; their mean is the default."""

MEMORY = 200
"""Decisions."""

SHARPNESS = 600.0
"""A shadow that gains 0.5 % less weighs e^-3 as much."""

_JOBS_PER_TURN = 16
"""With more jobs than this the shadows rest every other turn, with more than twice as many two turns of three, ..."""

_TURN = 32
"""Decisions."""

_SETTLING = 4
"""Decisions after a rest that do not count: until then all shadows have what the real jobs had."""

_FIRST = 20
"""Decisions made before anything is concluded."""


class AutoForwardTime:
    """The geometric mean of candidates, each weighted by what its shadow has gained over the last decisions.

    What a shadow (``Shadows``) gained counts the less the longer ago, by a factor ``1 - 1/memory`` at each decision:
    decisions and not hours, so that nothing depends on how fast the log runs. With the discounted gain ``g_i`` of
    candidate i its weight is ``exp(sharpness * (g_i / max g - 1))``: the exponentially weighted average forecaster of
    Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games", 2006, sections 2.1 and 2.11. The first 20 decisions are
    made with ``start_s``, and all as long as no shadow has gained anything.

    It knows what the policy has seen and decided, and nothing of the future. Candidates are judged by the jobs' own
    objective curves, as far as the policy knows them, whatever it maximises. Nine shadows of many jobs would cost more
    than the replay itself, so beyond 16 jobs they follow part of the time only.

    Parameters
    ----------
    start_s
        Before anything is known, seconds.
    candidates_s
        Forward-looking times to choose from, seconds, ascending.
    memory
        Decisions that count; >= 1.
    sharpness
        Of the weights, > 0; large values take the best candidate alone.

    Raises
    ------
    InputError
        A time or ``sharpness`` is not positive, there is no candidate, or they are not ascending.
    """

    def __init__(
        self,
        start_s: float = defaults.T_FWD_S,
        candidates_s: Sequence[float] = CANDIDATES_S,
        memory: int = MEMORY,
        sharpness: float = SHARPNESS,
    ) -> None:
        candidates = np.array([FixedForwardTime(seconds).t_fwd_s for seconds in candidates_s])
        if not candidates.size or (np.diff(candidates) <= 0).any():
            raise InputError(
                "the forward-looking times to choose from are not in order",
                column="candidates_s",
                value=list(candidates_s),
                expected="one or more, ascending, none twice",
            )
        self.start_s = FixedForwardTime(start_s).t_fwd_s
        self.memory = checks.whole("memory", memory, 1)
        self.sharpness = checks.number("sharpness", sharpness, above=0)
        self._candidates_s = candidates
        self._log_s = np.log(candidates)
        self._forget()

    def _forget(self) -> None:
        self._shadows = Shadows(self._candidates_s)
        self._gained = np.zeros(self._candidates_s.size)
        self._n_seen = 0
        self._last_us = LONG_AGO_US

    def seconds(self, state: PolicyState) -> float:
        """The weighted mean, after learning from what happened since the last decision."""
        if state.time_us < self._last_us:
            self._forget()
        self._last_us = state.time_us
        self._learn(state)
        best_gain = float(self._gained.max())
        if self._n_seen <= _FIRST or not best_gain > 0.0:
            return self.start_s
        weight = np.exp(self.sharpness * (self._gained / best_gain - 1.0))
        return math.exp(float(weight @ self._log_s) / float(weight.sum()))

    def _learn(self, state: PolicyState) -> None:
        n_turns = -(-state.n_jobs // _JOBS_PER_TURN)
        turn, position = divmod(self._n_seen, _TURN)
        self._n_seen += 1
        if turn % n_turns:
            self._shadows.rest()
            return
        gain = self._shadows.follow(state)
        if n_turns == 1 or turn == 0 or position >= _SETTLING:
            self._gained *= 1.0 - 1.0 / self.memory
            self._gained += gain

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Note the counts, from which the next decision tells the nodes that were reclaimed in between."""
        self._shadows.note_decision(counts)

    def describe(self) -> dict[str, object]:
        """Name and parameters."""
        return {
            "name": AUTO,
            "start_s": self.start_s,
            "candidates_s": self._candidates_s.tolist(),
            "memory_decisions": self.memory,
            "sharpness": self.sharpness,
        }

    def close(self) -> None:
        """Forget what was learnt."""
        self._forget()


def forward_time_of(t_fwd_s: float | str | ForwardTime) -> ForwardTime:
    """Return ``t_fwd_s`` as a ``ForwardTime``: a number of seconds, the word 'auto', or such an object.

    Raises
    ------
    InputError
        It is none of these, or the number is not positive.
    """
    if isinstance(t_fwd_s, str):
        if t_fwd_s != AUTO:
            raise InputError(
                "this is no forward-looking time",
                column="t_fwd_s",
                value=t_fwd_s,
                expected=f"seconds > 0, or {AUTO!r}",
                fix=f"give a number, such as 120, or {AUTO!r} to let it be learnt from the events as they come",
            )
        return AutoForwardTime()
    if isinstance(t_fwd_s, int | float | np.number) or not hasattr(t_fwd_s, "seconds"):
        return FixedForwardTime(cast(float, t_fwd_s))
    return t_fwd_s
