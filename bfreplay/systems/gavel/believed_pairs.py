"""Pair rates that a packed policy uses in a replay when it does not know them: estimates, and pairs that have run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.state import PolicyState
from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.pair_estimates import PairEstimator, RelativeRates
from bfreplay.systems.gavel.rounds.state import NOBODY, RoundState
from bfreplay.systems.gavel.shares.linear_policies import NOTICEABLE
from bfreplay.systems.gavel.shares.share_problem import PairRows, ShareProblem


@restorable
class BelievedPairs:
    """Known pair rates: the true ones of pairs that have run, estimates for the others.

    A job is profiled when it arrives. A pair that gets time on a node type where the two cannot share a node fails at
    once: nothing runs, and no time is lost.

    Parameters
    ----------
    options
        Options of the policy, with ``profiled``.
    state
        First state of a replay: its rates of pairs.
    type_names
        Node types in alphabetical order.

    Raises
    ------
    InputError
        As ``RelativeRates.of`` and ``PairEstimator``.
    """

    def __init__(self, options: GavelOptions, state: PolicyState, type_names: tuple[str, ...]) -> None:
        assert options.profiled is not None
        assert state.colocation is not None
        self._relative = RelativeRates.of(state.colocation, type_names)
        self._estimator = PairEstimator(
            self._relative,
            options.profiled,
            options.references,
            options.seed,
            reads_wrong_columns=options.quirks.profiles_wrong_columns,
        )
        self._position = {name: k for k, name in enumerate(self._relative.job_types)}
        self._taken_for: dict[int, int] = {}
        self._has_run: dict[tuple[int, int], NDArray[np.bool_]] = {}

    def profile(self, state: PolicyState, rows: NDArray[np.int64], job: NDArray[np.int64]) -> None:
        """Match new jobs (rows of the state, and their numbers in the rounds) to one reference job type each.

        A job whose model was not measured alone is not profiled.
        """
        for row, number in zip(rows.tolist(), job.tolist(), strict=True):
            model = int(state.model[row])
            name = state.model_names[model] if model >= 0 else None
            if name in self._position:
                self._taken_for[number] = self._estimator.match(self._position[name])

    def forget(self, job: NDArray[np.int64]) -> None:
        """Forget jobs that left."""
        gone = set(job.tolist())
        for number in gone:
            self._taken_for.pop(number, None)
        self._has_run = {pair: where for pair, where in self._has_run.items() if gone.isdisjoint(pair)}

    def rates(self, problem: ShareProblem) -> NDArray[np.float64]:
        """Return the believed rates of the pairs of ``problem``, which has the true ones: (p, n, 2).

        An estimate is the relative rate of the two references times the rate alone, which is known. The pairs
        of a job that was not profiled have their true rates.
        """
        taken_for = np.array([self._taken_for.get(number, -1) for number in problem.job.tolist()])[problem.pair]
        first, second = taken_for.T
        by_type = self._relative.by_type
        relative = np.stack([by_type[first, :, second], by_type[second, :, first]], axis=2)
        estimated = relative * problem.rate[problem.pair].transpose(0, 2, 1)
        is_unknown: NDArray[np.bool_] = np.asarray((taken_for < 0).any(axis=1))
        known = np.repeat(is_unknown[:, None], problem.n_types, axis=1)
        if self._has_run:
            member = np.searchsorted(problem.job, np.array(list(self._has_run)))
            row = PairRows(problem).of(member[:, 0], member[:, 1])
            known[row] |= np.array(list(self._has_run.values()))
        believed: NDArray[np.float64] = np.where(known[:, :, None], problem.pair_rate, estimated)
        return believed

    def learn(self, rounds: RoundState) -> bool:
        """Learn from pairs that run, and from pairs that got time where they cannot share a node.

        Returns
        -------
        bool
            True if a pair failed that was believed to run: its time is wasted until shares are recomputed.
        """
        entries = rounds.entries
        is_pair = entries.member[:, 1] != NOBODY
        running = np.flatnonzero(is_pair & (entries.task >= 0))
        for entry in running.tolist():
            self._note(entries.member[entry], int(rounds.last.node_type[entries.task[entry]]))
        failed = np.argwhere(is_pair[:, None] & (entries.share > NOTICEABLE) & ~entries.can_run)
        is_news = False
        for entry, node_type in failed.tolist():
            was_known = self._note(entries.member[entry], node_type)
            is_news |= not was_known and self._seems_to_share(entries.member[entry], node_type)
        return is_news

    def _note(self, member: NDArray[np.int64], node_type: int) -> bool:
        """Mark a pair on a node type as known; return whether it was known before."""
        key = int(member[0]), int(member[1])
        where = self._has_run.setdefault(key, np.zeros(len(self._relative.node_types), np.bool_))
        was_known = bool(where[node_type])
        where[node_type] = True
        return was_known

    def _seems_to_share(self, member: NDArray[np.int64], node_type: int) -> bool:
        """Return whether the two can share a node according to the estimates."""
        a, b = (self._taken_for.get(int(number)) for number in member)
        if a is None or b is None:
            return False
        by_type = self._relative.by_type
        return bool(by_type[a, node_type, b] > 0 and by_type[b, node_type, a] > 0)
