"""Policies that look beyond the present decision: into the true future, or into what the past says of it."""

from bfreplay.policies.look_ahead.foresight import ForesightPolicy
from bfreplay.policies.look_ahead.look_ahead_policy import LookAheadPolicy

__all__ = ["ForesightPolicy", "LookAheadPolicy"]
