"""Policies whose parameters are a dataclass of declared options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from bfreplay.documents import Json
from bfreplay.milp.solver import Solver
from bfreplay.options import check_options
from bfreplay.policies.policy import Policy


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

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, **options: Any) -> Self:
        """Return the policy with these options."""
        return cls(cls.options_type(**options))

    def describe(self) -> dict[str, object]:
        """Return every option."""
        return {"name": self.name, **self.options.to_json()}
