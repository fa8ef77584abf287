"""One allocation decision as arrays: everything a solver needs and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.checks import refusal
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import charged_rate, scale_down_cost, scale_up_cost

_NODES = dict.fromkeys(("current", "min_nodes", "max_nodes"), np.int64)
_CONSTANT = dict.fromkeys(("gain", "scale_up_loss", "scale_down_loss"), np.float64)
_BY_COUNT = dict.fromkeys(("gain", "loss"), np.float64)


@dataclass(frozen=True, eq=False)
class AllocationProblem:
    """One decision: how many of ``capacity`` idle nodes each of J jobs gets.

    Maximise ``sum_j f_j(n_j)`` subject to ``sum_j n_j <= capacity`` and, for every job, ``n_j = 0`` or
    ``min_nodes_j <= n_j <= max_nodes_j``, with

    ``f_j(n) = gain_j(n) - scale_up_loss_j * [n > current_j] - scale_down_loss_j * [n < current_j]``

    (BFTrainer, arXiv:2106.12091, equations 1 to 16, over counts: nodes are interchangeable, so the node-level
    model and this one have the same optimum; docs/design/decision.md has the proof). ``by_count`` makes decisions
    whose losses depend on the new count. Readers that take both kinds read ``value``, or ``gain`` and ``loss``.

    Fields are arrays; lists are converted, but type checkers refuse them.

    Parameters
    ----------
    current : (J,) int64
        Nodes each job holds now; their sum is at most ``capacity``.
    min_nodes, max_nodes : (J,) int64
        Bounds of a running job, ``1 <= min_nodes <= max_nodes <= K``.
    gain : (J, K + 1) float64
        ``gain[j, n]`` is what job j on n nodes is worth until the next decision (forward-looking time x weight x
        objective rate). Columns above ``max_nodes[j]`` are not read. ``gain[:, 0]`` is usually 0.
    scale_up_loss, scale_down_loss : (J,) float64
        Objective given up when the job gains, or loses, at least one node; finite and not negative.
    capacity
        Idle nodes.
    change_limit
        Most nodes that one job may gain or lose in this decision; ``None`` for no limit. The published model has
        such a limit by accident (see ``published_change_limit``).
    """

    current: NDArray[np.int64]
    min_nodes: NDArray[np.int64]
    max_nodes: NDArray[np.int64]
    gain: NDArray[np.float64]
    scale_up_loss: NDArray[np.float64]
    scale_down_loss: NDArray[np.float64]
    capacity: int
    change_limit: int | None = None

    KINDS: ClassVar[dict[str, type[np.generic]]] = {**_NODES, **_CONSTANT}
    """Kind of the numbers in each array that poses the decision."""
    has_constant_losses: ClassVar[bool] = True
    """Whether a job loses the same at all counts above, and at all below, what it holds; else ``by_count`` made it."""

    @classmethod
    def by_count(
        cls,
        current: NDArray[np.int64],
        min_nodes: NDArray[np.int64],
        max_nodes: NDArray[np.int64],
        gain: NDArray[np.float64],
        loss: NDArray[np.float64],
        capacity: int,
        change_limit: int | None = None,
    ) -> AllocationProblem:
        """Return a decision with ``f_j(n) = gain_j(n) - loss_j(n)``; it has no ``scale_up_loss``, ``scale_down_loss``.

        ``loss (J, K + 1)`` float64, not negative, is what job j gives up by having n nodes, also by staying on
        ``current[j]``, such as the rest of a pause. ``inf`` forbids a count other than 0: a job that may have 1, 2, 4
        or 8 nodes loses ``inf`` at 3, and may stay on 7 that a reclaim left to it where it loses less there. Columns
        above ``max_nodes[j]`` are not read. The other arguments are those of the constructor.
        """
        return _ProblemByCount(current, min_nodes, max_nodes, gain, capacity, change_limit, loss=loss)

    def __post_init__(self) -> None:
        for array_name, exact_kind in self.KINDS.items():  # lists are taken as well
            if not isinstance(value := getattr(self, array_name), np.ndarray):
                object.__setattr__(self, array_name, np.asarray(value, None if exact_kind is np.int64 else exact_kind))

    def __repr__(self) -> str:
        n_held = int(self.current.sum())
        return f"<AllocationProblem: {self.n_jobs:,} jobs hold {n_held:,} of {self.capacity:,} idle nodes>"

    @property
    def n_jobs(self) -> int:
        """J."""
        return int(self.current.shape[0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that pose the decision, by name."""
        return {name: getattr(self, name) for name in self.KINDS}

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """``(J, K + 1)``: f_j(n), and ``-inf`` where job j may not have n nodes. Computed once."""
        return value_table(self)

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """``(J, K + 1)``: what job j gives up by having n nodes, ``inf`` where that forbids them. Computed once."""
        count, current = np.arange(self.gain.shape[1]), self.current[:, None]
        loss_below = np.where(count < current, self.scale_down_loss[:, None], 0.0)
        loss = np.where(count > current, self.scale_up_loss[:, None], loss_below)
        # nothing is computed from it: a change would go unseen
        loss.setflags(write=False)
        return loss

    @property
    def is_read(self) -> NDArray[np.bool_]:
        """``(J, K + 1)``: the counts up to ``max_nodes``, of which alone gains and losses are read."""
        return np.arange(self.gain.shape[1]) <= self.max_nodes[:, None]

    @property
    def largest_loss(self) -> float:
        """The largest finite loss that is read, whether or not an answer can have it."""
        return float(max(self.scale_up_loss.max(initial=0.0), self.scale_down_loss.max(initial=0.0)))

    def within_published_limit(self) -> AllocationProblem:
        """Return the same decision under the published model's limit as well; see ``published_change_limit``."""
        limit = published_change_limit(self.capacity)
        return replace(self, change_limit=limit if self.change_limit is None else min(limit, self.change_limit))

    def validate(self) -> None:
        """Raise ``InputError`` where shapes, bounds or numbers are off; solvers trust a validated problem."""
        for name, exact_kind in self.KINDS.items():
            kind, dtype = np.integer if exact_kind is np.int64 else np.floating, getattr(self, name).dtype
            if not np.issubdtype(dtype, kind):
                raise refusal(name, str(dtype), "has the wrong type", f"array of {kind.__name__}")
        if self.current.ndim != 1:
            raise InputError("current has the wrong shape", value=self.current.shape, expected="(J,)")
        for name, number in (("capacity", self.capacity), ("change_limit", self.change_limit)):
            optional = name == "change_limit"
            if not (optional and number is None) and not (isinstance(number, int | np.integer) and number >= 0):
                raise refusal(name, number, "is out of range", "a whole number >= 0")
        jobs, width = self.n_jobs, self.gain.shape[1] if self.gain.ndim == 2 else -1
        for name, array in self.arrays().items():
            if name not in _BY_COUNT and array.shape != (jobs,):
                raise InputError(f"{name} has the wrong shape", value=array.shape, expected=f"({jobs},)")
        for name, array in self.arrays().items():
            if name in _BY_COUNT and array.shape != (jobs, width):
                raise InputError(f"{name} has the wrong shape", value=array.shape, expected=f"({jobs}, K + 1)")
        checks = (
            ("current", self.current < 0, ">= 0"),
            ("min_nodes", self.min_nodes < 1, ">= 1"),
            ("max_nodes", self.max_nodes < self.min_nodes, ">= min_nodes"),
            ("max_nodes", self.max_nodes >= width, f"<= {width - 1}, the last column of gain"),
            *self._wrong_losses(),
        )
        for name, is_wrong, expected in checks:
            if is_wrong.any():
                index = np.argwhere(is_wrong)[0].tolist()
                place = f"of job {index[0]}" + "".join(f" at {count} nodes" for count in index[1:])
                value = getattr(self, name)[tuple(index)].item()
                raise InputError(f"{name} {place} is out of range", column=name, value=value, expected=expected)
        if not np.isfinite(self.gain[self.is_read]).all():
            raise InputError("gain holds a number that is not finite", column="gain", expected="finite numbers")
        if int(self.current.sum()) > self.capacity:
            raise InputError(
                "the jobs hold more nodes than there are",
                column="current",
                value=int(self.current.sum()),
                expected=f"<= capacity ({self.capacity})",
            )

    def _wrong_losses(self) -> Iterator[tuple[str, NDArray[np.bool_], str]]:
        """Yield the losses that are out of range: name, where, and what is expected."""
        for name, loss in (("scale_up_loss", self.scale_up_loss), ("scale_down_loss", self.scale_down_loss)):
            yield name, ~((loss >= 0) & np.isfinite(loss)), "a finite number >= 0"


@dataclass(frozen=True, eq=False, repr=False)
class _ProblemByCount(AllocationProblem):
    """A decision whose losses depend on the new count; see ``AllocationProblem.by_count``."""

    scale_up_loss: NDArray[np.float64] = field(init=False)
    scale_down_loss: NDArray[np.float64] = field(init=False)
    loss: NDArray[np.float64] = field(kw_only=True)

    KINDS: ClassVar[dict[str, type[np.generic]]] = {**_NODES, **_BY_COUNT}
    has_constant_losses = False

    def __getattr__(self, name: str) -> Any:
        reason = ": its losses depend on the count; read value, or gain and loss" if name in _CONSTANT else ""
        raise AttributeError(f"this AllocationProblem has no {name}{reason}", name=name, obj=self)

    @property
    def largest_loss(self) -> float:
        loss = self.loss[self.is_read]
        return float(loss[np.isfinite(loss)].max(initial=0.0))

    def _wrong_losses(self) -> Iterator[tuple[str, NDArray[np.bool_], str]]:
        yield "loss", self.is_read & ~(self.loss >= 0), "a number >= 0, or inf for a count that is forbidden"
        is_zero = np.arange(self.gain.shape[1]) == 0
        yield "loss", is_zero & np.isinf(self.loss), "a finite number: 0 nodes cannot be forbidden"


class Charges(NamedTuple):
    """Losses of J jobs that rescale, and the table of their values with them; as in an ``AllocationProblem``."""

    scale_up_loss: NDArray[np.float64]  # (J,)
    scale_down_loss: NDArray[np.float64]  # (J,)
    value: NDArray[np.float64]  # (J, K + 1)


def problem_with_charges(
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    gain: NDArray[np.float64],
    charges: Charges,
    capacity: int,
) -> AllocationProblem:
    """Return the decision whose value table is there; a replay makes many, and the constructor takes longer."""
    problem = AllocationProblem.__new__(AllocationProblem)
    scale_up_loss, scale_down_loss, value = charges
    vars(problem).update(
        current=current,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        gain=gain,
        scale_up_loss=scale_up_loss,
        scale_down_loss=scale_down_loss,
        capacity=capacity,
        value=value,
    )
    return problem


@compiled
def charge(
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    gain: NDArray[np.float64],
    rate_now: NDArray[np.float64],
    up_s: NDArray[np.float64],
    down_s: NDArray[np.float64],
    capacity: int,
) -> Charges:
    """Return the charges by ``milp.charge_rule``, with the value table; arguments as in an ``AllocationProblem``.

    ``rate_now (J,)`` is what each job gives up per second while it rescales, if it holds ``min_nodes``; ``up_s`` and
    ``down_s (J,)`` are the seconds that gaining and losing nodes takes.
    """
    up_cost = np.empty(current.shape[0], np.float64)
    down_cost = np.empty(current.shape[0], np.float64)
    most_held = 0
    for job_index in range(current.shape[0]):
        rate_charged = charged_rate(rate_now[job_index], current[job_index], min_nodes[job_index])
        up_cost[job_index] = scale_up_cost(rate_charged, up_s[job_index])
        down_cost[job_index] = scale_down_cost(rate_charged, down_s[job_index])
        most_held = max(most_held, current[job_index])
    return Charges(
        up_cost,
        down_cost,
        _value_table(current, min_nodes, max_nodes, gain, up_cost, down_cost, capacity, capacity + most_held),
    )


def published_change_limit(capacity: int) -> int:
    """Most nodes one job can gain or lose under the published no-migration rows.

    They use the constant M = n_idle + 1 where 2 n_idle is needed, which caps every change at
    ``floor((n_idle + 1) / 2)`` (measured on 1,208 decisions of the published program).
    """
    return (capacity + 1) // 2


def value_table(problem: AllocationProblem) -> NDArray[np.float64]:
    """``(J, K + 1)``: f_j(n), ``-inf`` at the counts that bounds, capacity or change limit forbid."""
    any_change = problem.capacity + int(problem.current.max(initial=0))
    limit = any_change if problem.change_limit is None else problem.change_limit
    if not problem.has_constant_losses:
        current, count = problem.current[:, None], np.arange(problem.gain.shape[1])
        most = np.minimum(problem.max_nodes, problem.capacity)[:, None]
        is_allowed = (problem.min_nodes[:, None] <= count) & (count <= most) | (count == 0)
        is_allowed &= np.abs(count - current) <= limit
        value = np.full(problem.gain.shape, -np.inf)
        np.subtract(problem.gain, problem.loss, out=value, where=is_allowed)  # -inf where the loss is inf
        return value
    # one kind of array only: each other one would compile the loop anew
    arrays = (np.ascontiguousarray(getattr(problem, name), kind) for name, kind in problem.KINDS.items())
    arguments: tuple[Any, ...] = (*arrays, int(problem.capacity), int(limit))
    return _value_table(*arguments)


@compiled
def _value_table(
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    gain: NDArray[np.float64],
    scale_up_loss: NDArray[np.float64],
    scale_down_loss: NDArray[np.float64],
    capacity: int,
    change_limit: int,
) -> NDArray[np.float64]:
    """Fill the table in one pass: at a thousand jobs with a thousand counts each, several passes cost milliseconds."""
    value = np.empty(gain.shape, np.float64)
    n_jobs, width = gain.shape
    for job_index in range(n_jobs):
        n_held, up_loss, down_loss = current[job_index], scale_up_loss[job_index], scale_down_loss[job_index]
        lowest = max(min_nodes[job_index], n_held - change_limit)
        highest = min(max_nodes[job_index], capacity, n_held + change_limit)
        for count in range(width):  # the same steps at every count: the compiler takes several counts at once
            loss = up_loss if count > n_held else (down_loss if count < n_held else 0.0)
            value[job_index, count] = gain[job_index, count] - loss if lowest <= count <= highest else -np.inf
        if n_held - change_limit <= 0:
            value[job_index, 0] = gain[job_index, 0] - (down_loss if n_held > 0 else 0.0)
    return value
