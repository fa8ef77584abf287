"""Upper bounds on the samples of a replay, valid for any policy, even one that knows the future."""

from bfreplay.bounds.upper_bound import Effort, Kind, UpperBound, reason_without_bound, upper_bound

__all__ = ["Effort", "Kind", "UpperBound", "reason_without_bound", "upper_bound"]
