"""Policies by name. One line here (or an entry point elsewhere) makes a policy known everywhere."""

from __future__ import annotations

from typing import cast

from bfreplay.milp.solver import Solver
from bfreplay.policies.policy import Policy
from bfreplay.registry import Registry

POLICIES = Registry(
    kind="policy",
    group="bfreplay.policies",
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
    return cast(Policy, POLICIES.load(name).from_options(t_fwd_s=t_fwd_s, solver=solver))
