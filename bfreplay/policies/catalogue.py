"""Policies by name. One line here (or an entry point elsewhere) makes a policy known everywhere."""

from __future__ import annotations

from typing import Protocol, cast

from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.solver import Solver
from bfreplay.policies.policy import Policy
from bfreplay.registry import Registry, one_line


class PolicyFactory(Protocol):
    """What a policy's class must offer to be named on the command line."""

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


def policy_of(name: str, *, t_fwd_s: float, solver: Solver) -> Policy:
    """Make the policy called ``name``, or at ``package.module:Class``; those that optimise use the options.

    Raises
    ------
    InputError
        There is no such policy; the message lists those there are.
    """
    factory = cast(PolicyFactory, POLICIES.load(name))
    try:
        return factory.from_options(t_fwd_s=t_fwd_s, solver=solver)
    except BfreplayError:
        raise
    except Exception as error:  # a stranger's code may raise anything
        raise InputError(f"the policy {name!r} cannot be made: {one_line(error)}") from error
