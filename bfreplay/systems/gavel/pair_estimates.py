"""Estimates of the rates of two jobs on shared nodes, from a part of the measurements (Gavel, OSDI'20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.policies.state import PolicyState
from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.job_types import JOB_TYPES
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.rounds.state import NOBODY, RoundState
from bfreplay.systems.gavel.shares.linear_policies import NOTICEABLE
from bfreplay.systems.gavel.shares.share_problem import PairRows, ShareProblem
from bfreplay.workload import Colocation

_RANK, _REGULARISATION = 10, 0.01
_CLOSE, _MOST_ITERATIONS = 1e-3, 100
"""The factorisation ends when an iteration changes entries by less than this: norm of the change per entry."""

_POSITION = {job_type.name: k for k, job_type in enumerate(JOB_TYPES)}


@restorable
@dataclass(frozen=True, slots=True, eq=False)
class RelativeRates:
    """Rates of job types on one shared node, each relative to the rate alone.

    Parameters
    ----------
    job_types
        n names: Gavel's in its order, then others as they were listed.
    node_types
        t names in alphabetical order.
    rate : (n, t * n) float64
        Row k, column ``j * n + l``: of job type k beside l on node type j, 0 to 1; 0 where they cannot share a node.
    """

    job_types: tuple[str, ...]
    node_types: tuple[str, ...]
    rate: NDArray[np.float64]

    @classmethod
    def of(cls, colocation: Colocation, node_types: Sequence[str]) -> RelativeRates:
        """Relative rates of all job types with a rate alone on one node.

        Raises
        ------
        InputError
            No rates alone.
        """
        model_names = dict.fromkeys(model for model, n_nodes, _ in colocation.alone if n_nodes == 1)
        if not model_names:
            raise InputError(
                "rates of pairs are estimated relative to rates alone, and none was measured on one node",
                column="profiled",
                value=len(colocation.alone),
                expected="jobs with Gavel's throughputs (--curves)",
                fix="remove profiled: the rates of pairs are then known",
            )
        names = tuple(sorted(model_names, key=lambda name: _POSITION.get(name, len(_POSITION))))
        rate = np.array(
            [
                [_relative(colocation, first, second, node_type) for node_type in node_types for second in names]
                for first in names
            ]
        )
        return cls(names, tuple(node_types), np.clip(rate, 0.0, 1.0))

    @property
    def by_type(self) -> NDArray[np.float64]:
        """The same by node type, (n, t, n)."""
        n_types = len(self.job_types)
        return self.rate.reshape(n_types, len(self.node_types), n_types)


def _relative(colocation: Colocation, first: str, second: str, node_type: str) -> float:
    own_rate = colocation.alone.get((first, 1, node_type), 0.0)
    return colocation.rates(first, second, 1, node_type)[0] / own_rate if own_rate > 0 else 0.0


@restorable
class PairEstimator:
    """Matcher of jobs to a few reference job types, by a profile of some relative rates of each job.

    The references are measured beside one another in full. A job is measured beside each of them on each node type
    with some probability; the rest of its row is filled in by matrix factorisation. It is matched to the reference
    whose row has the least cosine distance from its own.

    Parameters
    ----------
    relative
        The true relative rates, from which measurements are drawn.
    profiled
        Probability of a measurement, 0 to 1.
    n_references
        Number of job types that are references; ``None``: all.
    seed
        Seed of references and measurements (Python's generator) and of the start of the factorisation (numpy's older
        one): both streams are those of the published program.
    reads_wrong_columns
        Repeat a defect of the published program: measurement ``k`` of a row is read from column ``k`` of all job types
        instead of from that of its reference (``Quirks``). No difference where all job types are references.

    Raises
    ------
    InputError
        Fewer job types than references.
    """

    def __init__(
        self,
        relative: RelativeRates,
        profiled: float,
        n_references: int | None = None,
        seed: int = 0,
        *,
        reads_wrong_columns: bool = False,
    ) -> None:
        n_types = len(relative.job_types)
        n_rows = checks.whole("references", n_types if n_references is None else n_references, 1, n_types)
        self.relative = relative
        self._profiled = profiled
        self._draw = Random(seed)
        self._start = np.random.RandomState(seed)
        self.references = tuple(sorted(self._draw.sample(range(n_types), n_rows)))
        columns = np.add.outer(n_types * np.arange(len(relative.node_types)), self.references).ravel()
        self._known = relative.rate[np.ix_(np.array(self.references), columns)]
        self._read = np.arange(columns.size) if reads_wrong_columns else columns

    def match(self, job_type: int) -> int:
        """Profile a job of this type; return the type that it is matched to, both as positions in ``job_types``."""
        in_sample = np.array([self._draw.uniform(0, 1) <= self._profiled for _ in self._read])
        sample = np.where(in_sample, self.relative.rate[job_type, self._read], 0.0)
        job_rows = np.vstack([self._known, sample])
        is_given = np.vstack([np.ones_like(self._known), in_sample])
        job_row = np.where(in_sample, sample, np.clip(complete_matrix(job_rows, is_given, self._start)[-1], 0.0, 1.0))
        length = np.linalg.norm(job_row)
        if not length:
            return self._draw.choice(self.references)
        lengths = np.linalg.norm(self._known, axis=1)
        cosine = np.divide(
            self._known @ job_row, lengths * length, out=np.full(lengths.size, -np.inf), where=lengths > 0
        )
        return self.references[int(np.argsort(-cosine, kind="stable")[0])]


def complete_matrix(
    entries: NDArray[np.float64], is_known: NDArray[np.float64], start: np.random.RandomState
) -> NDArray[np.float64]:
    """Complete a matrix by probabilistic matrix factorisation (NIPS'07), by alternating least squares.

    Parameters
    ----------
    entries : (a, b) float64
        Known entries; anything elsewhere.
    is_known : (a, b) float64
        1 where it is known, else 0.
    start
        Draws the first factors.

    Returns
    -------
    (a, b) float64
        The product of the factors everywhere, also where entries are known.
    """
    n_rows, n_columns = entries.shape
    row_factor: NDArray[np.float64] = start.randn(n_rows, _RANK)
    column_factor: NDArray[np.float64] = start.randn(n_columns, _RANK)
    target = entries * is_known
    previous_product = row_factor @ column_factor.T
    for _ in range(_MOST_ITERATIONS):
        row_factor = _fit(column_factor, target, is_known)
        column_factor = _fit(row_factor, target.T, is_known.T)
        product: NDArray[np.float64] = row_factor @ column_factor.T
        if np.linalg.norm(product - previous_product) / (n_rows * n_columns) < _CLOSE:
            break
        previous_product = product
    return product


def _fit(
    column_factor: NDArray[np.float64], target: NDArray[np.float64], is_known: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit the factor of the rows of ``target`` to that of its columns, by regularised least squares."""
    outer = (column_factor[:, :, None] * column_factor[:, None, :]).reshape(-1, _RANK * _RANK)
    gram_matrix = (is_known @ outer).reshape(-1, _RANK, _RANK) + _REGULARISATION * np.eye(_RANK)
    return np.asarray(np.linalg.solve(gram_matrix, (target @ column_factor)[:, :, None])[:, :, 0], np.float64)


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
            reads_wrong_columns=options.quirks_of_rounds.profiles_wrong_columns,
        )
        self._position = {name: index for index, name in enumerate(self._relative.job_types)}
        self._taken_for: dict[int, int] = {}
        self._has_run: dict[tuple[int, int], NDArray[np.bool_]] = {}

    def profile(self, state: PolicyState, job_rows: NDArray[np.int64], job: NDArray[np.int64]) -> None:
        """Match new jobs (rows of the state, and their numbers in the rounds) to one reference job type each.

        A job whose model was not measured alone is not profiled.
        """
        for job_row, number in zip(job_rows.tolist(), job.tolist(), strict=True):
            model = int(state.model[job_row])
            name = state.model_names[model] if model >= 0 else None
            if name in self._position:
                self._taken_for[number] = self._estimator.match(self._position[name])

    def forget(self, job: NDArray[np.int64]) -> None:
        """Forget jobs that left."""
        leaving = set(job.tolist())
        for number in leaving:
            self._taken_for.pop(number, None)
        self._has_run = {pair: node_types for pair, node_types in self._has_run.items() if leaving.isdisjoint(pair)}

    def rates(self, problem: ShareProblem) -> NDArray[np.float64]:
        """Return the believed rates of the pairs of ``problem``, which has the true ones: (p, n, 2).

        An estimate is the relative rate of the two references times the rate alone, which is known. The pairs
        of a job that was not profiled have their true rates.
        """
        reference_type = np.array([self._taken_for.get(number, -1) for number in problem.job.tolist()])[problem.pair]
        first, second = reference_type.T
        by_type = self._relative.by_type
        relative = np.stack([by_type[first, :, second], by_type[second, :, first]], axis=2)
        estimates = relative * problem.rate[problem.pair].transpose(0, 2, 1)
        is_unknown: NDArray[np.bool_] = np.asarray((reference_type < 0).any(axis=1))
        use_true_rate = np.repeat(is_unknown[:, None], problem.n_types, axis=1)
        if self._has_run:
            member = np.searchsorted(problem.job, np.array(list(self._has_run)))
            job_row = PairRows(problem).of(member[:, 0], member[:, 1])
            use_true_rate[job_row] |= np.array(list(self._has_run.values()))
        return np.where(use_true_rate[:, :, None], problem.pair_rate, estimates)

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
        failures = np.argwhere(is_pair[:, None] & (entries.share > NOTICEABLE) & ~entries.can_run)
        is_news = False
        for entry, node_type in failures.tolist():
            was_certain = self._note(entries.member[entry], node_type)
            is_news |= not was_certain and self._seems_to_share(entries.member[entry], node_type)
        return is_news

    def _note(self, member: NDArray[np.int64], node_type: int) -> bool:
        """Mark a pair on a node type as known; return whether it was known before."""
        key = int(member[0]), int(member[1])
        is_certain = self._has_run.setdefault(key, np.zeros(len(self._relative.node_types), np.bool_))
        was_certain = bool(is_certain[node_type])
        is_certain[node_type] = True
        return was_certain

    def _seems_to_share(self, member: NDArray[np.int64], node_type: int) -> bool:
        """Return whether the two can share a node according to the estimates."""
        first_type, second_type = (self._taken_for.get(int(number)) for number in member)
        if first_type is None or second_type is None:
            return False
        by_type = self._relative.by_type
        return bool(by_type[first_type, node_type, second_type] > 0 and by_type[second_type, node_type, first_type] > 0)
