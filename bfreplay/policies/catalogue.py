"""Policies by the names that a user types."""

from __future__ import annotations

from bfreplay.errors import InputError
from bfreplay.milp.solver import Solver
from bfreplay.policies.bftrainer import BFTrainerPolicy
from bfreplay.policies.equal_share import EqualSharePolicy
from bfreplay.policies.policy import Policy

POLICIES = ("bftrainer", "equal-share")


def policy_of(name: str, *, t_fwd_s: float, solver: Solver) -> Policy:
    """Make the policy called ``name``; those that optimise take ``t_fwd_s`` and ``solver``.

    Raises
    ------
    InputError
        No such policy.
    """
    if name == "bftrainer":
        return BFTrainerPolicy(t_fwd_s, solver)
    if name == "equal-share":
        return EqualSharePolicy()
    raise InputError("unknown policy", column="policy", value=name, expected=" or ".join(POLICIES))
