"""Policies whose parameters are a dataclass of declared options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from bfreplay.documents import Json
from bfreplay.milp.solution import Solver
from bfreplay.options import check_options
from bfreplay.policies.policy import Policy
from bfreplay.policies.state import LONG_AGO_US, PolicyState


@dataclass(frozen=True)
class PolicyOptions:
    """Base of the options of a policy: frozen dataclasses with fields made by ``option``.

    Raises
    ------
    InputError
        A value out of range.
    """

    def __post_init__(self) -> None:
        check_options(self, keep_equal=True)

    def to_json(self) -> dict[str, Json]:
        """Return every option, for the run record."""
        return asdict(self)


class PolicyWithOptions(Policy):
    """Base of policies with such options, each of which is a parameter of the policy; solver and T_fwd have no effect.

    Parameters
    ----------
    options
        Options of the policy, of its ``options_type``.
    """

    options_type: ClassVar[type[PolicyOptions]]
    not_saved = ("options",)

    def __init__(self, options: PolicyOptions | None = None) -> None:
        self.options = options or self.options_type()
        self._last_us = LONG_AGO_US

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, **options: Any) -> Self:
        """Return the policy with these options."""
        return cls(cls.options_type(**options))

    def note_time(self, state: PolicyState) -> None:
        """Forget the last replay if the clock has gone back: another one has begun."""
        if state.time_us < self._last_us:
            self.forget()
        self._last_us = state.time_us

    def forget(self) -> None:
        """Forget a replay: by default there is nothing to forget."""

    def close(self) -> None:
        """Forget the replay."""
        self._last_us = LONG_AGO_US
        self.forget()

    def describe(self) -> dict[str, object]:
        """Return every option."""
        return {"name": self.name, **self.options.to_json()}
