"""Policies: what shall run now. State in, node counts out."""

from bfreplay.policies.bftrainer import BFTrainerPolicy
from bfreplay.policies.equal_share import EqualSharePolicy
from bfreplay.policies.policy import ANY_TRIGGER, NO_DEADLINE_US, Decision, Policy, PolicyState, Trigger

__all__ = [
    "ANY_TRIGGER",
    "NO_DEADLINE_US",
    "BFTrainerPolicy",
    "Decision",
    "EqualSharePolicy",
    "Policy",
    "PolicyState",
    "Trigger",
]
