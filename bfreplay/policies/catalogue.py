"""Policies by name. One line here (or an entry point elsewhere) makes a policy known everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, cast

from bfreplay.errors import InputError
from bfreplay.milp.solver import Solver
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.policy import Policy
from bfreplay.registry import Registry, made


class PolicyFactory(Protocol):
    """What a policy's class must offer to be named on the command line.

    A policy that optimises may take a keyword ``objective`` as well: an ``Objective``, its spec, or ``None``.
    """

    def from_options(self, *, t_fwd_s: float, solver: Solver) -> Policy:
        """Make one from what a user can set; a policy takes what it needs of it."""
        ...


POLICIES = Registry(
    kind="policy",
    group="bfreplay.policies",
    needs=("from_options", "decide", "describe", "close"),
    built_in={
        "bftrainer": "bfreplay.policies.bftrainer:BFTrainerPolicy",
        "equal-share": "bfreplay.policies.equal_share:EqualSharePolicy",
    },
)


def policy_of(name: str, *, t_fwd_s: float, solver: Solver, objective: Objective | str | None = None) -> Policy:
    """Make the policy called ``name``, or at ``package.module:Class``; those that optimise use the options.

    Raises
    ------
    InputError
        There is no such policy; the message lists those there are. Or it takes no ``objective``, and one is given.
    """
    factory = cast(PolicyFactory, POLICIES.load(name))
    chosen: dict[str, Any] = {} if objective is None else {"objective": objective}
    if objective is not None and not _takes(factory.from_options, "objective"):
        raise InputError(
            f"the policy {name!r} takes no objective",
            column="objective",
            value=objective if isinstance(objective, str) else objective.spec,
            expected="none with this policy: it decides by a rule of its own",
            fix="leave --objective out, or choose --policy bftrainer; a class of your own takes one when its "
            "from_options has a parameter 'objective'",
        )
    return made(lambda: factory.from_options(t_fwd_s=t_fwd_s, solver=solver, **chosen), f"the policy {name!r}")


def _takes(function: Callable[..., Any], keyword: str) -> bool:
    parameters = inspect.signature(function).parameters
    return keyword in parameters or any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
