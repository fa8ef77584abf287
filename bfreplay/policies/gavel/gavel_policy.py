"""Gavel's policies in the replay: shares of time, recomputed when jobs come and go, turned into rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solver import Solver
from bfreplay.policies.gavel.clock import seconds_after, whole_us
from bfreplay.policies.gavel.gangs import gangs, rates
from bfreplay.policies.gavel.gavel_options import GavelOptions
from bfreplay.policies.gavel.known_jobs import KnownJobs
from bfreplay.policies.gavel.pair_rates import PairRates
from bfreplay.policies.gavel.rounds.assignment import NOBODY, Assignment
from bfreplay.policies.gavel.rounds.crediting import credit
from bfreplay.policies.gavel.rounds.next_round import next_round
from bfreplay.policies.gavel.rounds.resets import forget_last_reset, reset, reset_is_due
from bfreplay.policies.gavel.rounds.state import RoundState, add_jobs, first_state, note_change, remove_jobs
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import SharePolicy
from bfreplay.policies.policy import NO_DEADLINE_US, Decision, PolicyState, Trigger

_NO_NODES = np.zeros(0, np.int64)


class GavelPolicy(ABC):
    """Runs jobs in rounds, each in proportion to its share of time on each node type (Gavel, OSDI'20).

    Shares are computed by one of Gavel's policies whenever jobs came or went, and on idle nodes whenever the number of
    nodes of a type changed. A job uses a fixed number of nodes of one type at once, whole steps a round, and holds its
    nodes until the round ends.

    Parameters
    ----------
    options
        Everything that can be set.
    """

    name: str
    places_types = True

    def __init__(self, options: GavelOptions | None = None) -> None:
        self.options = options or GavelOptions()
        self.shares: SharePolicy = self.make_shares(self.options)
        self._last_us = -1
        self._forget()

    @staticmethod
    @abstractmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """The policy that computes the shares."""

    @classmethod
    def from_options(
        cls,
        *,
        t_fwd_s: float | str,
        solver: Solver,
        round_s: float = 360.0,
        least_reset_s: float = 0.0,
        restart_s: float = 0.0,
        gang: str = "max",
        seed: int = 0,
        global_queue: bool = False,
        published: bool = False,
        refill: bool = True,
        types: str = "",
        prices: Mapping[str, float] | None = None,
    ) -> GavelPolicy:
        """Neither the forward-looking time nor the solver matters; see ``GavelOptions`` for the others."""
        return cls(
            GavelOptions(
                round_s=round_s, least_reset_s=least_reset_s, restart_s=restart_s, gang=gang, seed=seed,
                global_queue=global_queue, published=published, refill=refill,
                types=tuple(name for name in types.split(";") if name), prices=prices or {},
            )
        )  # fmt: skip

    @property
    def wakes_on(self) -> Trigger:
        """The ends of rounds; and nodes that come or go, if they are to be used in mid-round."""
        return Trigger.ROUND | Trigger.POOL if self.options.refill else Trigger.ROUND

    def _forget(self) -> None:
        self.shares.forget()
        self._state: RoundState | None = None
        self._jobs = KnownJobs()
        self._until_us = -1
        self._n_rounds = self._n_recomputations = 0
        self.assignment: Assignment | None = None

    # -- the beginning of a replay -------------------------------------------------------------------------

    def _begin(self, state: PolicyState) -> RoundState:
        """Everything that the first decision of a replay settles."""
        if state.time_us < self._last_us:
            self._forget()
        self._last_us = state.time_us
        if self._state is None:
            assert state.nodes is not None
            listed = state.nodes.type_names
            self._type_names = tuple(sorted(listed))
            # the problem has types by the alphabet, the log has them as they were listed
            self._listed = np.array([listed.index(name) for name in self._type_names])
            position = np.array([self._type_names.index(name) for name in listed], np.int16)
            self._node_type: NDArray[np.int16] = position[state.nodes.node_type]
            self._rules = self.options.rules(listed, self._type_names, self.shares)
            self._pair_rates = PairRates(self._type_names)
            self._n_nodes = np.zeros(len(listed), np.int64)
            self._price = self.options.price_per_hour(self._type_names)
            self._state = first_state(len(listed), self._rules)
        return self._state

    # -- a decision ------------------------------------------------------------------------------------------

    def decide(self, state: PolicyState) -> Decision:
        """Who runs where until the next round begins."""
        rounds = self._begin(state)
        failed = self._failed(state, credit(rounds))
        now_s = seconds_after(state.time_us, state.window_start_us)
        if state.time_us == self._until_us:
            now_s = rounds.round_end_s  # not rounded to microseconds: the order of equal priorities hangs on it
        width = gangs(state, self.options.gang)
        self._follow(state, rounds, width, ~failed)
        problem_rows = np.flatnonzero(~failed)
        steps_left = (state.work - state.progress)[problem_rows]
        self._recompute_if_due(state, rounds, now_s, problem_rows, steps_left)
        assert state.nodes is not None
        is_idle = state.nodes.is_idle
        assignment = next_round(rounds, self._rules, now_s, self._node_type, is_idle, steps_left)
        if not assignment.n_tasks and self._rules.quirks.reset_at_zero_means_never and not state.jobs_to_come:
            forget_last_reset(rounds)
            self._recompute_if_due(state, rounds, now_s, problem_rows, steps_left)
            assignment = next_round(rounds, self._rules, now_s, self._node_type, is_idle, steps_left)
        self._n_rounds += bool(assignment.n_tasks)
        self.assignment = assignment
        return self._decision(state, rounds, assignment, problem_rows, failed)

    def _failed(self, state: PolicyState, number: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(J,) rows of the jobs that are given up; ``number`` as the mechanism counts."""
        if not number.size:
            return np.zeros(state.n_jobs, np.bool_)
        gone = {job for job, known in zip(self._jobs.job, self._jobs.number.tolist(), strict=True) if known in number}
        return np.array([job in gone for job in state.job.tolist()], np.bool_)

    def _follow(
        self, state: PolicyState, rounds: RoundState, width: NDArray[np.int64], stays: NDArray[np.bool_]
    ) -> None:
        """Tell the mechanism which jobs and nodes came and went."""
        rows = np.flatnonzero(stays)
        left, came = self._jobs.follow(state.job[rows])
        if left.size:
            remove_jobs(rounds, left)
        if came.size:
            first_new = rows.size - came.size
            of_type = rates(state, width)[:, self._listed]
            pair, pair_rate = self._pairs_of(state, width, rows, first_new)
            new = rows[first_new:]
            add_jobs(rounds, self._rules, came, width[new], of_type[new], self._jobs.number[pair], pair_rate)
        assert state.nodes is not None
        n_nodes = np.bincount(self._node_type[state.nodes.is_idle], minlength=rounds.n_types)
        if not np.array_equal(n_nodes, self._n_nodes):
            self._n_nodes = n_nodes
            note_change(rounds)

    def _pairs_of(
        self, state: PolicyState, width: NDArray[np.int64], rows: NDArray[np.int64], first_new: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if not self.shares.uses_pairs:
            return np.zeros((0, 2), np.int64), np.zeros((0, len(self._type_names), 2))
        return self._pair_rates.of_new(state, width, rows, first_new)

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
        problem = self._problem(state, rounds, rows, steps_left)
        reset(rounds, self._rules, now_s, problem, self.shares.shares(problem))
        self._n_recomputations += 1

    def _problem(
        self, state: PolicyState, rounds: RoundState, rows: NDArray[np.int64], steps_left: NDArray[np.float64]
    ) -> ShareProblem:
        entries = rounds.entries
        is_pair = entries.member[:, 1] != NOBODY
        alone, pairs = np.flatnonzero(~is_pair), np.flatnonzero(is_pair)
        pairs = pairs[np.lexsort((entries.member_row[pairs, 1], entries.member_row[pairs, 0]))]
        deadline_us = state.deadline_us[rows]
        to_deadline_s = np.where(deadline_us == NO_DEADLINE_US, np.inf, (deadline_us - state.time_us) / 1e6)
        return ShareProblem(
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

    def _decision(
        self,
        state: PolicyState,
        rounds: RoundState,
        assignment: Assignment,
        rows: NDArray[np.int64],
        failed: NDArray[np.bool_],
    ) -> Decision:
        """The assignment as the replay wants it."""
        n = state.n_jobs
        counts = np.zeros(n, np.int64)
        assigned = [_NO_NODES] * n
        partner = np.full(n, -1, np.int64)
        samples = np.full(n, np.inf)
        restart_s = np.zeros(n)
        ends_us = [0]
        not_before_us = np.zeros(n, np.int64)
        entry_of = {task: entry for entry, task in enumerate(rounds.entries.task.tolist()) if task >= 0}
        for task in range(assignment.n_tasks):
            entry = entry_of[task]
            nodes = assignment.nodes_of(task)
            members = [int(rows[row]) for row in rounds.entries.member_row[entry].tolist() if row >= 0]
            for side, row in enumerate(members):
                counts[row] = nodes.size
                assigned[row] = nodes
                rate = float(rounds.entries.rate[entry, assignment.node_type[task], side])
                steps = 0.0 if assignment.fails[task] else float(assignment.steps[task, side])
                samples[row] = steps
                lost_s = self._rules.restart_s if assignment.restarts[task, side] else 0.0
                restart_s[row] = lost_s
                # as the replay will work it out, to the microsecond
                goal = state.progress[row] + steps
                ends_us.append(int(whole_us((goal - state.progress[row] + rate * lost_s) / rate)))
            if len(members) == 2 and self._rules.quirks.pairs_end_together:
                not_before_us[members] = state.time_us + max(ends_us[-2:])
            if assignment.fails[task]:
                ends_us.append(int(whole_us(assignment.finish_s[task] - assignment.start_s[task])))
            if len(members) == 2:
                partner[members[0]], partner[members[1]] = members[1], members[0]
        self._until_us = state.time_us + max(max(ends_us), 1) if assignment.n_tasks else -1
        return Decision(
            counts,
            assigned=tuple(assigned),
            partner=partner if (partner >= 0).any() else None,
            samples=samples,
            restart_s=restart_s if restart_s.any() else None,
            not_before_us=not_before_us if not_before_us.any() else None,
            failed=failed if failed.any() else None,
            until_us=self._until_us if assignment.n_tasks else None,
        )

    # -- the record ------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        """Rounds, recomputations of shares, and leases: how often a job had the same nodes again, of how many times."""
        state = self._state
        return {
            "n_rounds": self._n_rounds,
            "n_recomputations": self._n_recomputations,
            "lease_extensions": 0 if state is None else state.extensions,
            "lease_opportunities": 0 if state is None else state.opportunities,
        }

    def describe(self) -> dict[str, object]:
        """Every option."""
        return {"name": self.name, **self.options.to_json()}

    def close(self) -> None:
        """Forget the replay."""
        self._last_us = -1
        self._forget()
