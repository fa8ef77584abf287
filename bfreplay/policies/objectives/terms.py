"""One term of a separable objective: a function with its parameters, and the check of what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies.objectives.objective import Rates
from bfreplay.policies.objectives.parameters import T_FWD_S
from bfreplay.policies.objectives.spec import TermSpec
from bfreplay.policies.policy import PolicyState
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
        A ``RateFunction``.
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
        """What the function says, checked. ``given_up`` may be the same array as ``value``.

        Raises
        ------
        InputError
            It raises, or returns something else than finite numbers for every job and count.
        """
        set_here = {T_FWD_S: t_fwd_s} if self.wants_t_fwd else {}
        try:
            said = self.function(state, counts, **self.settings, **set_here)
        except BfreplayError:
            raise  # said on purpose, for a person to read
        except Exception as error:  # a stranger's code may raise anything
            raise InputError(
                f"the objective {self.part.name!r} failed at {iso_utc(state.time_us)}: {one_line(error)}",
                value=str(self.part),
                expected=f"values per second for {state.n_jobs} jobs on 0 to {counts[-1]} nodes",
            ) from error
        if not isinstance(said, Rates):
            value = self._checked(said, state, counts)
            return Rates(value, value)
        return Rates(self._checked(said.value, state, counts), self._checked(said.given_up, state, counts))

    def _checked(self, said: object, state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        shape = (state.n_jobs, counts.size)
        if not isinstance(said, np.ndarray) or said.dtype.kind not in "fiu" or said.shape != shape:
            raise InputError(
                f"the objective {self.part.name!r} returned no table of numbers at {iso_utc(state.time_us)}",
                value=f"{said.dtype} array of shape {said.shape}"
                if isinstance(said, np.ndarray)
                else type(said).__name__,
                expected=f"a float64 array of shape {shape}: one row for each job, one column for each of 0 to "
                f"{counts[-1]} nodes",
                fix="is a return missing?" if said is None else None,
            )
        table: NDArray[np.float64] = said.astype(np.float64, copy=False)
        wrong = ~(np.abs(table) <= LARGEST_RATE) & (counts <= state.max_nodes[:, None])
        if wrong.any():
            row, count = np.argwhere(wrong)[0].tolist()
            raise InputError(
                f"the objective {self.part.name!r} returned a value that is no finite number, or too large to "
                f"calculate with, at {iso_utc(state.time_us)}",
                row=f"job number {int(state.job[row])}, from 0",
                column=f"{count} nodes",
                value=float(table[row, count]),
                expected=f"finite numbers up to {LARGEST_RATE:g} for 0 to {int(state.max_nodes[row])} nodes, its "
                "max_nodes",
            )
        return table
