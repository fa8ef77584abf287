"""Policies that look beyond the present decision: into the true future, or into what the past says of it."""

from bfreplay.policies.look_ahead.policies import ForesightPolicy, LookAheadPolicy

__all__ = ["ForesightPolicy", "LookAheadPolicy"]
