"""Objectives as a spec names them: a weighted sum of terms, or one that looks at all jobs together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies.objectives.objective import JointObjective, Rates, horizon_s, problem_from, problem_with_costs
from bfreplay.policies.spec import T_FWD_S, TermSpec, json_ready, write_spec
from bfreplay.policies.state import PolicyState
from bfreplay.registry import one_line
from bfreplay.scalability.law import LARGEST_RATE


@dataclass(frozen=True, slots=True)
class Term:
    """A rate function with its parameters.

    Parameters
    ----------
    part
        How the spec writes it.
    function
        Returns what each job on each number of nodes is worth per second, ``(J, K + 1)`` or ``Rates``, from the state
        and the counts 0, 1, ..., K, the columns of ``state.throughput``. Its values are finite where ``counts <=
        state.max_nodes``; others are not read. While a job rescales it gives up its value at the nodes that it holds,
        or nothing where that is negative; ``Rates`` says otherwise. Further parameters have defaults, which the spec
        sets by name; one called ``t_fwd_s`` gets the forward-looking time. A user's own function will do:
        ``package.module:function``.
    settings
        Every parameter with its value.
    wants_t_fwd
        It has a parameter ``t_fwd_s``.
    """

    part: TermSpec
    function: Callable[..., Any]
    settings: dict[str, Any]
    wants_t_fwd: bool

    @property
    def weight(self) -> float:
        """1 where none is written."""
        return 1.0 if self.part.weight is None else float(self.part.weight)

    def rates(self, state: PolicyState, counts: NDArray[np.int64], t_fwd_s: float) -> Rates:
        """Return the result of the function, checked. ``given_up`` may be the same array as ``value``.

        Raises
        ------
        InputError
            It raises, or returns something else than finite numbers for every job and count.
        """
        settings = {**self.settings, T_FWD_S: t_fwd_s} if self.wants_t_fwd else self.settings
        expectation = f"values per second for {state.n_jobs} jobs on 0 to {counts[-1]} nodes"
        with _blame(self.part, state, expectation):
            result = self.function(state, counts, **settings)
        if not isinstance(result, Rates):
            rate_table = self._check_table(result, state, counts)
            return Rates(rate_table, rate_table)
        return Rates(self._check_table(result.value, state, counts), self._check_table(result.given_up, state, counts))

    def _check_table(self, result: object, state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        wanted_shape = (state.n_jobs, counts.size)
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiu" or result.shape != wanted_shape:
            raise InputError(
                f"the objective {self.part.name!r} returned no table of numbers at {iso_utc(state.time_us)}",
                value=f"{result.dtype} array of shape {result.shape}"
                if isinstance(result, np.ndarray)
                else type(result).__name__,
                expected=f"a float64 array of shape {wanted_shape}: one row for each job, one column for each of 0 to "
                f"{counts[-1]} nodes",
                fix="is a return missing?" if result is None else None,
            )
        value_table: NDArray[np.float64] = result.astype(np.float64, copy=False)
        is_invalid = ~(np.abs(value_table) <= LARGEST_RATE) & (counts <= state.max_nodes[:, None])
        if is_invalid.any():
            row_of_job, node_count = np.argwhere(is_invalid)[0].tolist()
            raise InputError(
                f"the objective {self.part.name!r} returned a value that is no finite number, or too large to "
                f"calculate with, at {iso_utc(state.time_us)}",
                row=f"job number {int(state.job[row_of_job])}, from 0",
                column=f"{node_count} nodes",
                value=float(value_table[row_of_job, node_count]),
                expected=f"finite numbers up to {LARGEST_RATE:g} for 0 to {int(state.max_nodes[row_of_job])} nodes, "
                "its max_nodes",
            )
        return value_table


@contextmanager
def _blame(term_spec: TermSpec, state: PolicyState, expectation: str) -> Iterator[None]:
    """Let what a stranger's code raises inside name the objective and the time."""
    try:
        yield
    except BfreplayError:
        raise  # said on purpose, for a person to read
    except Exception as error:  # it may raise anything
        raise InputError(
            f"the objective {term_spec.name!r} failed at {iso_utc(state.time_us)}: {one_line(error)}",
            value=str(term_spec),
            expected=expectation,
        ) from error


class SeparableObjective:
    """``gain_j(n) = t_fwd_s x V_j(n)``, with ``V`` the function of the only term, or a weighted sum of several.

    In a sum every term is divided by its largest absolute value over the decision's jobs and their counts up to
    ``max_nodes``, so that weights are relative importances whatever the terms' units; a term that is 0 everywhere adds
    nothing. One term alone keeps its unit.

    While it rescales, a job gives up what it makes now: its value at the nodes that it holds (what ``Rates.given_up``
    says), never less than 0, and nothing if it holds fewer than ``min_nodes``.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.spec = write_spec(tuple(term.part for term in terms))

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """Gains over ``t_fwd_s`` seconds, and what rescaling gives up."""
        rates = self.rates(state, t_fwd_s)
        if state.costs is not None:
            return problem_with_costs(state, horizon_s(state, t_fwd_s) * rates.value, np.maximum(rates.given_up, 0.0))
        given_up = np.maximum(rates.given_up[np.arange(state.n_jobs), state.current], 0.0)
        return problem_from(state, t_fwd_s * rates.value, given_up)

    def rates(self, state: PolicyState, t_fwd_s: float) -> Rates:
        """``V (J, K + 1)``, and what of it a rescaling job gives up."""
        counts = np.arange(state.throughput.shape[1])
        if len(self.terms) == 1:
            only_rates = self.terms[0].rates(state, counts, t_fwd_s)
            weight = self.terms[0].weight
            return only_rates if weight == 1.0 else Rates(weight * only_rates.value, weight * only_rates.given_up)
        total_value, given_up = np.zeros((2, state.n_jobs, counts.size))
        is_read = counts <= state.max_nodes[:, None]
        for term in self.terms:
            rates = term.rates(state, counts, t_fwd_s)
            largest = float(np.abs(rates.value).max(where=is_read, initial=0.0))
            if largest > 0.0:
                factor = term.weight / largest
                total_value += factor * rates.value
                given_up += factor * rates.given_up
        return Rates(total_value, given_up)

    def describe(self) -> dict[str, object]:
        """Spec, and every term with its weight and all its parameters."""
        return {
            "spec": self.spec,
            "terms": [
                {"name": term.part.name, "weight": term.weight, "parameters": json_ready(term.settings)}
                for term in self.terms
            ],
        }


class WholeObjective:
    """A joint objective with its spec, and the check of what it poses."""

    def __init__(self, term_spec: TermSpec, joint: JointObjective, settings: dict[str, Any]) -> None:
        self.spec = str(term_spec)
        self._part = term_spec
        self._name = term_spec.name
        self._joint = joint
        self._settings = settings

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """The decision as the class poses it."""
        expectation = f"an AllocationProblem of {state.n_jobs} jobs"
        with _blame(self._part, state, expectation):
            decision: object = self._joint.problem(state, t_fwd_s)
        if not isinstance(decision, AllocationProblem) or decision.n_jobs != state.n_jobs:
            is_one = isinstance(decision, AllocationProblem)
            raise InputError(
                f"the objective {self._name!r} posed another decision at {iso_utc(state.time_us)}",
                value=f"{decision.n_jobs} jobs" if isinstance(decision, AllocationProblem) else type(decision).__name__,
                expected=expectation,
                fix=None if is_one else "is a return missing?",
            )
        try:
            decision.validate()
        except InputError as error:
            raise InputError(
                f"the objective {self._name!r} posed no sound decision at {iso_utc(state.time_us)}: {error.problem}",
                column=error.column,
                value=error.value,
                expected=error.expected,
            ) from error
        return decision

    def describe(self) -> dict[str, object]:
        """Spec, and its only term with all its parameters."""
        return {
            "spec": self.spec,
            "terms": [{"name": self._name, "weight": 1.0, "parameters": json_ready(self._settings)}],
        }
