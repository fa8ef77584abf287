"""Policies: what shall run now. State in, node counts out."""

from bfreplay.policies.bftrainer import BFTrainerPolicy
from bfreplay.policies.equal_share import EqualSharePolicy
from bfreplay.policies.forward_time import AutoForwardTime, ForwardTime
from bfreplay.policies.policy import ANY_TRIGGER, Decision, Placement, Policy, PolicyCapabilities, Round, Trigger
from bfreplay.policies.state import NO_DEADLINE_US, PolicyState

__all__ = [
    "ANY_TRIGGER",
    "NO_DEADLINE_US",
    "AutoForwardTime",
    "BFTrainerPolicy",
    "Decision",
    "EqualSharePolicy",
    "ForwardTime",
    "Placement",
    "Policy",
    "PolicyCapabilities",
    "PolicyState",
    "Round",
    "Trigger",
]
