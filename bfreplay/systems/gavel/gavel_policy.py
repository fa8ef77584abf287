"""Gavel's policies in the replay: shares of time, recomputed when jobs arrive and leave, turned into rounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.solver import Solver
from bfreplay.policies.policy import Decision, Policy, PolicyCapabilities, Trigger
from bfreplay.policies.spec import keywords_from
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, PolicyState
from bfreplay.scalability.law import LARGEST_RATE
from bfreplay.systems.gavel.believed_pairs import BelievedPairs
from bfreplay.systems.gavel.options import GavelOptions, gangs, rates, step_samples
from bfreplay.systems.gavel.rounds.next_round import next_round, refill
from bfreplay.systems.gavel.rounds.received_time import credit, reset, reset_is_due
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, RoundState, first_state
from bfreplay.systems.gavel.rounds_in_replay import (
    US_PER_S,
    KnownJobs,
    PairRates,
    PlacedRound,
    busy_node_s,
    nodes_of_state,
    seconds_after,
)
from bfreplay.systems.gavel.shares.allox import require_single_nodes
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem
from bfreplay.workload import ElasticJob

_FARTHEST = 1e6
"""Largest ratio of a job's rates on two types."""


class GavelPolicy(Policy):
    """Runs jobs in rounds, each in proportion to its share of time on each node type (Gavel, OSDI'20).

    One of Gavel's policies recomputes shares when jobs arrived or left and, on idle nodes, when the number of nodes of
    a type changed. A job uses a fixed number of nodes of one type at once, whole steps a round, and holds its
    nodes until the round ends.

    Parameters
    ----------
    options
        Options of the policy.
    """

    capabilities = PolicyCapabilities(
        node_types=True,
        asks_solver=False,
        in_rounds=True,
        linear_programs=True,
        warm_up="gavel.fifo_perf",
        learns_with="profiled",
    )
    not_saved = ("options",)

    def __init__(self, options: GavelOptions | None = None) -> None:
        self.options = options or GavelOptions()
        # ends of rounds; with refill, also nodes that join or are reclaimed in mid-round
        self.wakes_on = Trigger.ROUND | Trigger.POOL if self.options.refill else Trigger.ROUND
        self.shares: SharePolicy = self.make_shares(self.options)
        if self.options.profiled is not None and not self.shares.uses_pairs:
            raise InputError(
                f"the policy {self.name!r} runs no pairs, so it has no pair rates to estimate",
                column="profiled",
                value=self.options.profiled,
                expected="a packed policy, such as gavel.max_min_fairness_packed",
                fix="choose one, or remove profiled",
            )
        self._last_us = LONG_AGO_US
        self._forget()

    @property
    def round_s(self) -> float:  # type: ignore[override]
        """Length of a round in seconds."""
        return self.options.round_s

    follows_gavel_alone: bool = True
    """Shares, rounds and jobs follow Gavel's rules, not those of another system that builds on them."""

    notes_batch_sizes: bool = True
    """Shares are recomputed when the batch size of a job changes."""

    @staticmethod
    @abstractmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return the policy that computes the shares."""

    @classmethod
    @keywords_from(GavelOptions, types="", prices=None)
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, **chosen: Any) -> GavelPolicy:
        """Return the policy with these ``GavelOptions``; the forward-looking time and the solver have no effect."""
        types = tuple(name for name in chosen.pop("types", "").split(";") if name)
        return cls(GavelOptions(types=types, prices=chosen.pop("prices", None) or {}, **chosen))

    def _forget(self) -> None:
        self.shares.forget()
        self._state: RoundState | None = None
        self._jobs = KnownJobs()
        self._until_us = LONG_AGO_US
        self._limits: dict[int, float] = {}
        self._n_rounds = self._n_recomputations = self._n_deadlines_dropped = 0
        self._busy_node_s = 0.0
        self._believed: BelievedPairs | None = None
        self.assignment: Assignment | None = None

    def with_known_curves(self) -> GavelPolicy | None:
        """Return the same policy with known rates of pairs; ``None`` if it knows them already."""
        if self.options.profiled is None:
            return None
        return type(self)(replace(self.options, profiled=None, references=None))

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        """Refuse jobs without end if the policy needs the remaining work, and jobs on several nodes for AlloX.

        Also jobs that hardly go on on one of their types.
        """
        _refuse_standstill(jobs)
        self._refuse_endless(np.array([job.work_samples for job in jobs]))
        if self.shares.takes_single_nodes:
            least, most = (np.array([getattr(job, name) for job in jobs]) for name in ("min_nodes", "max_nodes"))
            require_single_nodes([job.name for job in jobs], gangs(least, most, self.options.gang, most_nodes))
        if self.options.profiled is not None:
            self._check_estimates(jobs, most_nodes)

    def _check_estimates(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        for job in jobs:
            width = gangs(np.array([job.min_nodes]), np.array([job.max_nodes]), self.options.gang, most_nodes)
            if width[0] > 1:
                raise InputError(
                    f"pair rates are estimated for jobs on one node each, and job {job.name!r} needs {width[0]}",
                    column="profiled",
                    value=self.options.profiled,
                    expected="jobs that run on one node each",
                    fix="remove profiled or such jobs (multi_gpu=false), or give elastic jobs one node: gang=min",
                )

    def _refuse_endless(self, steps_left: NDArray[np.float64]) -> None:
        if self.shares.looks_at_work and np.isinf(steps_left).any():
            raise InputError(
                f"the policy {self.name!r} needs the remaining work of each job, and some jobs have no end",
                column="work_samples",
                value=math.inf,
                expected="jobs with an end",
                fix="remove --unlimited-work, or choose a policy such as gavel.max_min_fairness_perf",
            )

    # -- the beginning of a replay -------------------------------------------------------------------------

    def _begin(self, state: PolicyState) -> RoundState:
        """Set up everything that is constant from the first decision of a replay on."""
        if state.time_us < self._last_us:
            self._forget()
        self._last_us = state.time_us
        if self._state is None:
            nodes = nodes_of_state(state)
            listed = nodes.type_names
            self._type_names = tuple(sorted(listed))
            # the problem has types in alphabetical order, the log in the order listed
            self._listed = np.array([listed.index(name) for name in self._type_names])
            position = np.array([self._type_names.index(name) for name in listed], np.int16)
            self._node_type: NDArray[np.int16] = position[nodes.node_type]
            self._most_nodes = int(np.bincount(self._node_type).max())
            self._rules = self.options.rules(listed, self._type_names, self.shares)
            self._pair_rates = PairRates(self._type_names, is_wanted=self.shares.uses_pairs)
            self._n_nodes = np.zeros(len(listed), np.int64)
            self._price = self.options.price_per_hour(self._type_names)
            self._state = first_state(len(listed), self._rules)
            if self.options.profiled is not None and state.colocation is not None:
                self._believed = BelievedPairs(self.options, state, self._type_names)
        return self._state

    # -- a decision ------------------------------------------------------------------------------------------

    def decide(self, state: PolicyState) -> Decision:
        """Return the jobs and nodes of the round until the next one begins."""
        rounds = self._begin(state)
        in_mid_round = rounds.last.n_tasks > 0 and state.time_us < self._until_us
        return self._refill(state, rounds) if in_mid_round else self._next_round(state, rounds)

    def _next_round(self, state: PolicyState, rounds: RoundState) -> Decision:
        self._busy_node_s += busy_node_s(rounds)
        failed = self._rows_of_failed(state, credit(rounds))
        self._after_round(state, rounds)
        now_s = seconds_after(state.time_us, state.window_start_us)
        if state.time_us == self._until_us:
            now_s = rounds.round_end_s  # not rounded to microseconds: the order of equal priorities depends on it
        rows = np.flatnonzero(~failed)
        rounds.forget_places(self._has_lost_nodes(state, rounds))
        self._follow(state, rounds, rows)
        steps_left = self._steps_left(state)[rows]
        self._recompute_if_due(state, rounds, now_s, rows, steps_left)
        nodes = self._node_type, nodes_of_state(state).is_idle
        picked = self._pick_jobs(state, rounds, now_s, rows)
        assignment = next_round(rounds, self._rules, now_s, *nodes, steps_left, picked, self._adjust_tasks)
        if not assignment.n_tasks and self._rules.quirks.reset_at_zero_means_never and not state.jobs_to_come:
            rounds.last_reset_s = None
            self._recompute_if_due(state, rounds, now_s, rows, steps_left)
            assignment = next_round(rounds, self._rules, now_s, *nodes, steps_left, picked, self._adjust_tasks)
        if self._believed is not None and self._believed.learn(rounds):
            rounds.changed = True
        self._n_rounds += bool(assignment.n_tasks)
        self.assignment = assignment
        placed = PlacedRound(state, rounds, assignment, rows, self._step_samples(state))
        placed.begin(self._rules, slice(0, None), int(self.options.round_s * US_PER_S), self.options.restart_s)
        self._until_us = placed.until_us
        self._limits = placed.limits()
        return placed.decision(failed if failed.any() else None, self._until_us)

    # -- hooks for policies of other systems ----------------------------------------------------

    def _step_samples(self, state: PolicyState) -> NDArray[np.int64]:
        """Return the samples of a step of each job, (J,)."""
        return step_samples(state)

    def _rates(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the steps/s of each job on ``width (J,)`` nodes of each type, (J, T)."""
        return rates(state, width)

    def _steps_left(self, state: PolicyState) -> NDArray[np.float64]:
        """Return the remaining steps of each job, (J,)."""
        left: NDArray[np.float64] = (state.work - state.progress) / self._step_samples(state)
        return left

    def _after_round(self, state: PolicyState, rounds: RoundState) -> None:
        """Do nothing by default after a round has ended and its micro-tasks are credited."""

    def _pick_jobs(
        self, state: PolicyState, rounds: RoundState, now_s: float, rows: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Return the numbers of the jobs of the next round; ``None``, the default: those of highest priority."""
        return None

    def _adjust_tasks(self, assignment: Assignment) -> Assignment:
        """Return the micro-tasks that begin, unchanged by default."""
        return assignment

    def _refill(self, state: PolicyState, rounds: RoundState) -> Decision:
        """Continue a round after nodes joined or left: tasks that lost nodes end, waiting ones may start."""
        now_s = seconds_after(state.time_us, state.window_start_us)
        until_s = now_s + (self._until_us - state.time_us) / US_PER_S
        kept = self._goes_on(state, rounds)
        ended_s = np.minimum(rounds.last.finish_s, now_s)
        self._busy_node_s += busy_node_s(rounds, ended_s, ~kept)
        failed = self._rows_of_failed(state, credit(rounds, ended_s, ~kept))
        rows = np.flatnonzero(~failed)
        self._follow(state, rounds, rows)
        steps_left = self._steps_left(state)[rows]
        assignment = refill(
            rounds, self._rules, now_s, until_s, self._node_type, nodes_of_state(state).is_idle, steps_left, kept
        )
        if self._believed is not None and self._believed.learn(rounds):
            rounds.changed = True
        self.assignment = assignment
        n_kept = int(np.count_nonzero(kept))
        placed = PlacedRound(state, rounds, assignment, rows, self._step_samples(state))
        placed.go_on(slice(0, n_kept), np.array([self._limits.get(job, 0.0) for job in state.job.tolist()]))
        left_us = max(self._until_us - state.time_us, 0)
        placed.begin(self._rules, slice(n_kept, None), left_us, self.options.restart_s)
        self._limits = placed.limits()
        self._until_us = max(self._until_us, placed.until_us) if assignment.n_tasks else LONG_AGO_US
        return placed.decision(failed if failed.any() else None, self._until_us)

    def _goes_on(self, state: PolicyState, rounds: RoundState) -> NDArray[np.bool_]:
        """Return whether all members and all nodes of each micro-task are still present, (k,)."""
        last = rounds.last
        is_idle = nodes_of_state(state).is_idle
        is_present = np.isin(last.member, self._jobs.remaining_jobs(state.job)) | (last.member == NOBODY)
        has_nodes = np.array([bool(is_idle[last.nodes_of(task)].all()) for task in range(last.n_tasks)], np.bool_)
        # nodes may have left and rejoined while no node was idle and so no decision was taken
        lost = self._jobs.number[self._has_lost_nodes(state, rounds)]
        goes_on: NDArray[np.bool_] = (
            is_present.all(axis=1) & has_nodes & ~rounds.is_credited & ~np.isin(last.member, lost).any(axis=1)
        )
        return goes_on

    def _has_lost_nodes(self, state: PolicyState, rounds: RoundState) -> NDArray[np.bool_]:
        """Return the jobs of the mechanism that are still active and hold fewer nodes than they got, (m,)."""
        held = dict(zip(state.job.tolist(), state.current.tolist(), strict=True))
        gang = rounds.jobs.gang
        holds = np.array([held.get(job, n) for job, n in zip(self._jobs.job, gang.tolist(), strict=True)], np.int64)
        lost: NDArray[np.bool_] = (rounds.jobs.task >= 0) & (holds < gang)
        return lost

    def _rows_of_failed(self, state: PolicyState, number: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the rows of the jobs that are given up, (J,), from their numbers in the mechanism."""
        if not number.size:
            return np.zeros(state.n_jobs, np.bool_)
        gone = {job for job, known in zip(self._jobs.job, self._jobs.number.tolist(), strict=True) if known in number}
        return np.array([job in gone for job in state.job.tolist()], np.bool_)

    def _follow(self, state: PolicyState, rounds: RoundState, rows: NDArray[np.int64]) -> None:
        """Update the mechanism with the jobs (rows of the state) and nodes that joined or left."""
        left, came = self._jobs.follow(state.job[rows])
        if left.size:
            rounds.remove_jobs(left)
            if self._believed is not None:
                self._believed.forget(left)
        width = gangs(state.min_nodes, state.max_nodes, self.options.gang, self._most_nodes)
        first_new = rows.size - came.size
        of_type = self._rates(state, width)[:, self._listed]
        if state.batch_size is not None and rounds.set_rates(of_type[rows[:first_new]]) and self.notes_batch_sizes:
            rounds.changed = True
        if came.size:
            pair, pair_rate = self._pair_rates.of_new(state, width, rows, first_new)
            new = rows[first_new:]
            if self._believed is not None:
                self._believed.profile(state, new, came)
            rounds.add_jobs(self._rules, came, width[new], of_type[new], self._jobs.number[pair], pair_rate)
        n_nodes = np.bincount(self._node_type[nodes_of_state(state).is_idle], minlength=rounds.n_types)
        if not np.array_equal(n_nodes, self._n_nodes):
            self._n_nodes = n_nodes
            rounds.changed = True

    def _recompute_if_due(
        self,
        state: PolicyState,
        rounds: RoundState,
        now_s: float,
        rows: NDArray[np.int64],
        steps_left: NDArray[np.float64],
    ) -> None:
        if not (rows.size and reset_is_due(rounds, self._rules, now_s)):
            return
        self._refuse_endless(steps_left)
        problem = self._problem(state, rounds, rows, steps_left)
        shares = self.shares.shares(problem)
        reset(rounds, self._rules, now_s, problem, shares)
        self._n_recomputations += 1
        self._n_deadlines_dropped += shares.deadlines_dropped

    def _problem(
        self, state: PolicyState, rounds: RoundState, rows: NDArray[np.int64], steps_left: NDArray[np.float64]
    ) -> ShareProblem:
        entries = rounds.entries
        is_pair = entries.member[:, 1] != NOBODY
        alone, pairs = np.flatnonzero(~is_pair), np.flatnonzero(is_pair)
        pairs = pairs[np.lexsort((entries.member_row[pairs, 1], entries.member_row[pairs, 0]))]
        deadline_us = state.deadline_us[rows]
        to_deadline_s = np.where(deadline_us == NO_DEADLINE_US, np.inf, (deadline_us - state.time_us) / 1e6)
        problem = ShareProblem(
            job=rounds.jobs.number,
            type_names=self._type_names,
            n_nodes=self._n_nodes,
            gang=rounds.jobs.gang,
            rate=entries.rate[alone, :, 0],
            weight=state.weight[rows],
            steps_left=steps_left,
            age_s=(state.time_us - state.submit_us[rows]) / 1e6,
            to_deadline_s=to_deadline_s,
            price_per_hour=self._price,
            pair=entries.member_row[pairs],
            pair_rate=entries.rate[pairs],
        )
        return problem if self._believed is None else replace(problem, pair_rate=self._believed.rates(problem))

    # -- the record ------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        """Return counts of the rounds.

        Rounds, recomputations of shares, those without deadlines as they could not all be met, leases (how often a job
        kept its nodes, of how many times), and the node time of all micro-tasks: as planned where nodes left while the
        policy was not asked.
        """
        state = self._state
        return {
            "n_rounds": self._n_rounds,
            "n_recomputations": self._n_recomputations,
            "n_deadlines_dropped": self._n_deadlines_dropped,
            "lease_extensions": 0 if state is None else state.extensions,
            "lease_opportunities": 0 if state is None else state.opportunities,
            "busy_node_s": self._busy_node_s + (0.0 if state is None else busy_node_s(state)),
        }

    def describe(self) -> dict[str, object]:
        """Return every option."""
        return {"name": self.name, **self.options.to_json()}

    def close(self) -> None:
        """Forget the replay."""
        self._last_us = LONG_AGO_US
        self._forget()


def _refuse_standstill(jobs: Sequence[ElasticJob]) -> None:
    """Raise ``InputError`` for a job that hardly goes on on a type: as published, rounds may choose it for ever."""
    for job in jobs:
        curves = job.throughput_by_type or {"": job.throughput}
        rates = {node_type: float(curve.table(job.max_nodes).max()) for node_type, curve in curves.items()}
        least = max(max(rates.values()) / _FARTHEST, 1 / LARGEST_RATE)
        for node_type in (each for each, rate in rates.items() if 0 < rate < least):
            raise InputError(
                f"job {job.name!r} hardly goes on" + f" on the node type {node_type!r}" * (node_type != ""),
                column="throughput",
                value=rates[node_type],
                expected=f"{least:g} samples/s or more, or none",
                fix="correct the rate, or omit the type" if node_type else "correct the rate",
            )
