"""Objectives over all jobs together, made from a class that poses the decision."""

from __future__ import annotations

from typing import Any

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies.objectives.objective import JointObjective
from bfreplay.policies.objectives.parameters import json_ready
from bfreplay.policies.objectives.spec import TermSpec
from bfreplay.policies.policy import PolicyState
from bfreplay.registry import one_line


class WholeObjective:
    """A joint objective with its spec, and the check of what it poses."""

    def __init__(self, part: TermSpec, joint: JointObjective, settings: dict[str, Any]) -> None:
        self.spec = str(part)
        self._name = part.name
        self._joint = joint
        self._settings = settings

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """The decision as the class poses it."""
        try:
            posed: object = self._joint.problem(state, t_fwd_s)
        except BfreplayError:
            raise  # said on purpose, for a person to read
        except Exception as error:  # a stranger's code may raise anything
            raise InputError(
                f"the objective {self._name!r} failed at {iso_utc(state.time_us)}: {one_line(error)}",
                value=self.spec,
                expected=f"an AllocationProblem of {state.n_jobs} jobs",
            ) from error
        if not isinstance(posed, AllocationProblem) or posed.n_jobs != state.n_jobs:
            is_one = isinstance(posed, AllocationProblem)
            raise InputError(
                f"the objective {self._name!r} posed another decision at {iso_utc(state.time_us)}",
                value=f"{posed.n_jobs} jobs" if isinstance(posed, AllocationProblem) else type(posed).__name__,
                expected=f"an AllocationProblem of {state.n_jobs} jobs",
                fix=None if is_one else "is a return missing?",
            )
        try:
            posed.validate()
        except InputError as error:
            raise InputError(
                f"the objective {self._name!r} posed no sound decision at {iso_utc(state.time_us)}: {error.problem}",
                column=error.column,
                value=error.value,
                expected=error.expected,
            ) from error
        return posed

    def describe(self) -> dict[str, object]:
        """Spec, and its only term with all its parameters."""
        return {
            "spec": self.spec,
            "terms": [{"name": self._name, "weight": 1.0, "parameters": json_ready(self._settings)}],
        }
