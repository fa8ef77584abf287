"""Interface of objectives, which pose the decision whose optimum the allocator finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.charge_rule import losses
from bfreplay.milp.problem import AllocationProblem, charge, problem_with_charges
from bfreplay.policies.state import PolicyState


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Result of a separable objective, in place of an array, where rescaling does not cost all of the value.

    Parameters
    ----------
    value : (J, K + 1) float64
        What each job on each number of nodes is worth per second.
    given_up : (J, K + 1) float64
        What it loses per second while it rescales from there: what it makes, but not what its nodes cost all the same.
    """

    value: NDArray[np.float64]
    given_up: NDArray[np.float64]


def problem_from(state: PolicyState, gain: NDArray[np.float64], given_up: NDArray[np.float64]) -> AllocationProblem:
    """Pose ``state`` as a decision.

    Parameters
    ----------
    state
        The J active jobs and the idle nodes.
    gain : (J, K + 1) float64
        What each job on each number of nodes is worth until the next decision.
    given_up : (J,) float64
        What it gives up per second while it rescales from its ``current`` nodes. If these are fewer than ``min_nodes``
        it gives up nothing: so a start from zero is free.
    """
    nodes_of_jobs = state.current, state.min_nodes, state.max_nodes
    costs_s = state.scale_up_cost_s, state.scale_down_cost_s
    charges = charge(*nodes_of_jobs, np.ascontiguousarray(gain), given_up, *costs_s, int(state.n_idle))
    return problem_with_charges(*nodes_of_jobs, gain, charges, state.n_idle)


def horizon_s(state: PolicyState, t_fwd_s: float) -> float:
    """Return the seconds over which a decision is valued: the longest restart, and the forward-looking time after it.

    So a restart that is longer than the forward-looking time does not keep jobs from ever starting.
    """
    return t_fwd_s if state.costs is None else t_fwd_s + state.costs.longest_s


def problem_with_costs(
    state: PolicyState, gain: NDArray[np.float64], given_up: NDArray[np.float64]
) -> AllocationProblem:
    """Pose ``state`` as a decision in which changes cost what ``state.costs`` says.

    Parameters
    ----------
    state
        The J active jobs and the idle nodes.
    gain : (J, K + 1) float64
        What each job on each number of nodes is worth over ``horizon_s``.
    given_up : (J, K + 1) float64
        What it gives up per second while it pauses there, or works off what it owes.
    """
    assert state.costs is not None
    job_rows = np.arange(state.n_jobs)
    throughput_now = state.throughput[job_rows, state.current]
    loss = losses(state.current, state.min_nodes, given_up, throughput_now, *state.costs[:-2])
    return AllocationProblem.by_count(state.current, state.min_nodes, state.max_nodes, gain, loss, state.n_idle)


class JointObjective(Protocol):
    """An objective over all jobs together, as a class: it poses the whole decision itself.

    Named as functions are, ``package.module:Class``; what the spec sets by name goes to the constructor.
    """

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """The decision for ``state`` that is expected to last ``t_fwd_s`` seconds."""
        ...


class Objective(Protocol):
    """Poses a state as one decision that any solver can answer."""

    @property
    def spec(self) -> str:
        """Text that makes it again: ``objective_of(spec)``."""
        ...

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """The decision for ``state`` that is expected to last ``t_fwd_s`` seconds.

        Raises
        ------
        InputError
            The function or class behind it raises, or what it says of a job is no number.
        """
        ...

    def describe(self) -> dict[str, object]:
        """``spec``, and every parameter with its value, JSON-ready, for the run's record."""
        ...
