"""Gavel's policies in the replay: shares of time, recomputed when jobs arrive and leave, turned into rounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.policies.policy import Decision, PolicyCapabilities, PolicyOptions, PolicyWithOptions, Trigger
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, PolicyState
from bfreplay.systems.gavel.job_checks import (
    refuse_endless,
    refuse_standstill,
    require_single_nodes,
    require_single_nodes_for_estimates,
)
from bfreplay.systems.gavel.options import GavelOptions, gangs
from bfreplay.systems.gavel.pair_estimates import BelievedPairs
from bfreplay.systems.gavel.rounds.next_round import credit, next_round, refill, reset, reset_is_due
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, RoundState, first_state
from bfreplay.systems.gavel.rounds_in_replay import (
    US_PER_S,
    KnownJobs,
    PairRates,
    PlacedRound,
    busy_node_s,
    nodes_of_state,
)
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem
from bfreplay.workload import ElasticJob


class GavelPolicy(PolicyWithOptions):
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
        chooses_nodes=True,
        linear_programs=True,
        fixed_nodes=True,
        warm_up="gavel.fifo_perf",
        learns_with="profiled",
    )
    options_type: ClassVar[type[PolicyOptions]] = GavelOptions
    options: GavelOptions

    def __init__(self, options: GavelOptions | None = None) -> None:
        super().__init__(options)
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
        self.forget()

    @property
    def round_s(self) -> float:  # type: ignore[override]
        """Length of a round in seconds."""
        return self.options.round_s

    follows_gavel_alone: bool = True
    """Shares, rounds and jobs follow Gavel's rules, not those of another system that builds on them."""

    notes_batch_sizes: bool = True
    """Shares are recomputed when the batch size of a job changes."""

    has_shares: bool = True
    """Jobs have shares of time, which are recomputed."""

    @staticmethod
    @abstractmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return the policy that computes the shares."""

    def forget(self) -> None:
        """Forget the jobs and rounds of a replay."""
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
        refuse_standstill(jobs)
        if self.shares.looks_at_work:
            refuse_endless(self.name, np.array([job.work_samples for job in jobs]))
        if self.shares.takes_single_nodes:
            require_single_nodes([job.name for job in jobs], self._gangs_of(jobs, most_nodes))
        if self.options.profiled is not None:
            require_single_nodes_for_estimates(jobs, self._gangs_of(jobs, most_nodes), self.options.profiled)

    def _gangs_of(self, jobs: Sequence[ElasticJob], most_nodes: int) -> NDArray[np.int64]:
        min_nodes, max_nodes = (np.array([getattr(job, name) for job in jobs]) for name in ("min_nodes", "max_nodes"))
        return gangs(min_nodes, max_nodes, self.options.gang, most_nodes)

    # -- the beginning of a replay -------------------------------------------------------------------------

    def _begin(self, state: PolicyState) -> RoundState:
        """Set up everything that is constant from the first decision of a replay on."""
        self.note_time(state)
        if self._state is None:
            nodes = nodes_of_state(state)
            types_in_log = nodes.type_names
            self._type_names = tuple(sorted(types_in_log))
            # the problem has types in alphabetical order, the log in the order listed
            self._listed = np.array([types_in_log.index(name) for name in self._type_names])
            position_of_type = np.array([self._type_names.index(name) for name in types_in_log], np.int16)
            self._node_type: NDArray[np.int16] = position_of_type[nodes.node_type]
            self._most_nodes = int(np.bincount(self._node_type).max())
            self._rules = self.options.rules(types_in_log, self._type_names, self.shares)
            self._pair_rates = PairRates(self._type_names, is_wanted=self.shares.uses_pairs)
            self._n_nodes = np.zeros(len(types_in_log), np.int64)
            self._price = self.options.price_per_hour(self._type_names)
            self._state = first_state(len(types_in_log), self._rules)
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
        is_given_up = self._jobs.rows_of(state, credit(rounds))
        self._after_round(state, rounds)
        now_s = (state.time_us - state.window_start_us) / US_PER_S
        if state.time_us == self._until_us:
            now_s = rounds.round_end_s  # not rounded to microseconds: the order of equal priorities depends on it
        job_rows = np.flatnonzero(~is_given_up)
        rounds.forget_places(self._jobs.lost_nodes(state, rounds))
        self._follow(state, rounds, job_rows)
        steps_left = self._steps_left(state)[job_rows]
        self._recompute_if_due(state, rounds, now_s, job_rows, steps_left)
        nodes = self._node_type, nodes_of_state(state).is_idle
        next_jobs = self._pick_jobs(state, rounds, now_s, job_rows)
        assignment = next_round(rounds, self._rules, now_s, *nodes, steps_left, next_jobs, self._adjust_tasks)
        if not assignment.n_tasks and self._rules.quirks.reset_at_zero_means_never and not state.jobs_to_come:
            rounds.last_reset_s = None
            self._recompute_if_due(state, rounds, now_s, job_rows, steps_left)
            assignment = next_round(rounds, self._rules, now_s, *nodes, steps_left, next_jobs, self._adjust_tasks)
        self._n_rounds += bool(assignment.n_tasks)
        placement = self._place(state, rounds, assignment, job_rows)
        placement.begin(self._rules, slice(0, None), int(self.options.round_s * US_PER_S), self.options.restart_s)
        self._until_us = placement.until_us
        self._limits = placement.limits()
        return placement.decision(is_given_up if is_given_up.any() else None, self._until_us)

    def _place(
        self, state: PolicyState, rounds: RoundState, assignment: Assignment, job_rows: NDArray[np.int64]
    ) -> PlacedRound:
        """Return the decision to build from an assignment; what it shows of the rates of pairs is learnt."""
        if self._believed is not None and self._believed.learn(rounds):
            rounds.changed = True
        self.assignment = assignment
        return PlacedRound(state, rounds, assignment, job_rows, self._step_samples(state))

    # -- hooks for policies of other systems ----------------------------------------------------

    def _step_samples(self, state: PolicyState) -> NDArray[np.int64]:
        """Return the samples of a step of each job, (J,): of a step at its first batch size, 1 without batch sizes."""
        return np.ones(state.n_jobs, np.int64) if state.first_batch_size is None else state.first_batch_size

    def _rates(self, state: PolicyState, gang_sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the steps/s of each job on ``gang_sizes (J,)`` nodes of each type, (J, T)."""
        by_type = state.throughput[:, None, :] if state.throughput_by_type is None else state.throughput_by_type
        rates: NDArray[np.float64] = (
            by_type[np.arange(state.n_jobs), :, gang_sizes] / self._step_samples(state)[:, None]
        )
        return rates

    def _steps_left(self, state: PolicyState) -> NDArray[np.float64]:
        """Return the remaining steps of each job, (J,)."""
        return (state.work - state.progress) / self._step_samples(state)

    def _after_round(self, state: PolicyState, rounds: RoundState) -> None:
        """Do nothing by default after a round has ended and its micro-tasks are credited."""

    def _pick_jobs(
        self, state: PolicyState, rounds: RoundState, now_s: float, job_rows: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Return the numbers of the jobs of the next round; ``None``, the default: those of highest priority."""
        return None

    def _adjust_tasks(self, assignment: Assignment) -> Assignment:
        """Return the micro-tasks that begin, unchanged by default."""
        return assignment

    def _refill(self, state: PolicyState, rounds: RoundState) -> Decision:
        """Continue a round after nodes joined or left: tasks that lost nodes end, waiting ones may start."""
        now_s = (state.time_us - state.window_start_us) / US_PER_S
        until_s = now_s + (self._until_us - state.time_us) / US_PER_S
        continues = self._jobs.continuing_tasks(state, rounds)
        end_s = np.minimum(rounds.last.finish_s, now_s)
        self._busy_node_s += busy_node_s(rounds, end_s, ~continues)
        is_given_up = self._jobs.rows_of(state, credit(rounds, end_s, ~continues))
        job_rows = np.flatnonzero(~is_given_up)
        self._follow(state, rounds, job_rows)
        steps_left = self._steps_left(state)[job_rows]
        assignment = refill(
            rounds, self._rules, now_s, until_s, self._node_type, nodes_of_state(state).is_idle, steps_left, continues
        )
        n_going_on = int(np.count_nonzero(continues))
        placement = self._place(state, rounds, assignment, job_rows)
        placement.add_running(
            slice(0, n_going_on), np.array([self._limits.get(job, 0.0) for job in state.job.tolist()])
        )
        remaining_us = max(self._until_us - state.time_us, 0)
        placement.begin(self._rules, slice(n_going_on, None), remaining_us, self.options.restart_s)
        self._limits = placement.limits()
        self._until_us = max(self._until_us, placement.until_us) if assignment.n_tasks else LONG_AGO_US
        return placement.decision(is_given_up if is_given_up.any() else None, self._until_us)

    def _follow(self, state: PolicyState, rounds: RoundState, job_rows: NDArray[np.int64]) -> None:
        """Update the mechanism with the jobs (rows of the state) and nodes that joined or left."""
        leaving_jobs, new_jobs = self._jobs.follow(state.job[job_rows])
        if leaving_jobs.size:
            rounds.remove_jobs(leaving_jobs)
            if self._believed is not None:
                self._believed.forget(leaving_jobs)
        gang_sizes = gangs(state.min_nodes, state.max_nodes, self.options.gang, self._most_nodes)
        first_new = job_rows.size - new_jobs.size
        by_type = self._rates(state, gang_sizes)[:, self._listed]
        if state.batch_size is not None and rounds.set_rates(by_type[job_rows[:first_new]]) and self.notes_batch_sizes:
            rounds.changed = True
        if new_jobs.size:
            pair, pair_rate = self._pair_rates.of_new(state, gang_sizes, job_rows, first_new)
            new_rows = job_rows[first_new:]
            if self._believed is not None:
                self._believed.profile(state, new_rows, new_jobs)
            rounds.add_jobs(
                self._rules, new_jobs, gang_sizes[new_rows], by_type[new_rows], self._jobs.number[pair], pair_rate
            )
        n_nodes = np.bincount(self._node_type[nodes_of_state(state).is_idle], minlength=rounds.n_types)
        if not np.array_equal(n_nodes, self._n_nodes):
            self._n_nodes = n_nodes
            rounds.changed = True

    def _recompute_if_due(
        self,
        state: PolicyState,
        rounds: RoundState,
        now_s: float,
        job_rows: NDArray[np.int64],
        steps_left: NDArray[np.float64],
    ) -> None:
        if not (self.has_shares and job_rows.size and reset_is_due(rounds, self._rules, now_s)):
            return
        if self.shares.looks_at_work:
            refuse_endless(self.name, steps_left)
        problem = self._problem(state, rounds, job_rows, steps_left)
        shares = self.shares.shares(problem)
        reset(rounds, self._rules, now_s, problem, shares)
        self._n_recomputations += 1
        self._n_deadlines_dropped += shares.deadlines_dropped

    def _problem(
        self, state: PolicyState, rounds: RoundState, job_rows: NDArray[np.int64], steps_left: NDArray[np.float64]
    ) -> ShareProblem:
        entries = rounds.entries
        is_pair = entries.member[:, 1] != NOBODY
        alone, pairs = np.flatnonzero(~is_pair), np.flatnonzero(is_pair)
        pairs = pairs[np.lexsort((entries.member_row[pairs, 1], entries.member_row[pairs, 0]))]
        deadline_us = state.deadline_us[job_rows]
        to_deadline_s = np.where(deadline_us == NO_DEADLINE_US, np.inf, (deadline_us - state.time_us) / 1e6)
        problem = ShareProblem(
            job=rounds.jobs.number,
            type_names=self._type_names,
            n_nodes=self._n_nodes,
            gang=rounds.jobs.gang,
            rate=entries.rate[alone, :, 0],
            weight=state.weight[job_rows],
            steps_left=steps_left,
            age_s=(state.time_us - state.submit_us[job_rows]) / 1e6,
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
