"""Estimates of the rates of two jobs on shared nodes, from a part of the measurements (Gavel, OSDI'20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.job_types import JOB_TYPES
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
        listed = dict.fromkeys(model for model, n_nodes, _ in colocation.alone if n_nodes == 1)
        if not listed:
            raise InputError(
                "rates of pairs are estimated relative to rates alone, and none was measured on one node",
                column="profiled",
                value=len(colocation.alone),
                expected="jobs with Gavel's throughputs (--curves)",
                fix="remove profiled: the rates of pairs are then known",
            )
        names = tuple(sorted(listed, key=lambda name: _POSITION.get(name, len(_POSITION))))
        rate = np.array(
            [
                [_relative(colocation, one, other, node_type) for node_type in node_types for other in names]
                for one in names
            ]
        )
        return cls(names, tuple(node_types), np.clip(rate, 0.0, 1.0))

    @property
    def by_type(self) -> NDArray[np.float64]:
        """The same by node type, (n, t, n)."""
        n = len(self.job_types)
        return self.rate.reshape(n, len(self.node_types), n)


def _relative(colocation: Colocation, one: str, other: str, node_type: str) -> float:
    alone = colocation.alone.get((one, 1, node_type), 0.0)
    return colocation.rates(one, other, 1, node_type)[0] / alone if alone > 0 else 0.0


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
        n = len(relative.job_types)
        r = checks.whole("references", n if n_references is None else n_references, 1, n)
        self.relative = relative
        self._profiled = profiled
        self._draw = Random(seed)
        self._start = np.random.RandomState(seed)
        self.references = tuple(sorted(self._draw.sample(range(n), r)))
        columns = [j * n + k for j in range(len(relative.node_types)) for k in self.references]
        self._known = relative.rate[np.ix_(self.references, columns)]
        offset = np.repeat(np.arange(len(relative.node_types)) * r, r) + np.tile(np.arange(r), len(relative.node_types))
        self._read = offset if reads_wrong_columns else np.array(columns)

    def match(self, job_type: int) -> int:
        """Profile a job of this type; return the type that it is matched to, both as positions in ``job_types``."""
        is_measured = np.array([self._draw.uniform(0, 1) <= self._profiled for _ in self._read])
        measured = np.where(is_measured, self.relative.rate[job_type, self._read], 0.0)
        rows = np.vstack([self._known, measured])
        known = np.vstack([np.ones_like(self._known), is_measured])
        row = np.where(is_measured, measured, np.clip(complete_matrix(rows, known, self._start)[-1], 0.0, 1.0))
        length = np.linalg.norm(row)
        if not length:
            return self._draw.choice(self.references)
        lengths = np.linalg.norm(self._known, axis=1)
        cosine = np.divide(self._known @ row, lengths * length, out=np.full(lengths.size, -np.inf), where=lengths > 0)
        return self.references[int(np.argsort(-cosine, kind="stable")[0])]


def complete_matrix(
    measured: NDArray[np.float64], is_measured: NDArray[np.float64], start: np.random.RandomState
) -> NDArray[np.float64]:
    """Complete a matrix by probabilistic matrix factorisation (NIPS'07), by alternating least squares.

    Parameters
    ----------
    measured : (a, b) float64
        Known entries; anything elsewhere.
    is_measured : (a, b) float64
        1 where it is known, else 0.
    start
        Draws the first factors.

    Returns
    -------
    (a, b) float64
        The product of the factors everywhere, also where entries are known.
    """
    a, b = measured.shape
    left: NDArray[np.float64] = start.randn(a, _RANK)
    right: NDArray[np.float64] = start.randn(b, _RANK)
    target = measured * is_measured
    before = left @ right.T
    for _ in range(_MOST_ITERATIONS):
        left = _fit(right, target, is_measured)
        right = _fit(left, target.T, is_measured.T)
        found: NDArray[np.float64] = left @ right.T
        if np.linalg.norm(found - before) / (a * b) < _CLOSE:
            break
        before = found
    return found


def _fit(
    other: NDArray[np.float64], target: NDArray[np.float64], is_measured: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit the factor of the rows of ``target`` to that of its columns, by regularised least squares."""
    outer = (other[:, :, None] * other[:, None, :]).reshape(-1, _RANK * _RANK)
    gram = (is_measured @ outer).reshape(-1, _RANK, _RANK) + _REGULARISATION * np.eye(_RANK)
    return np.asarray(np.linalg.solve(gram, (target @ other)[:, :, None])[:, :, 0], np.float64)
