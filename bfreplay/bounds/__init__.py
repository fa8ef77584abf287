"""How much anyone could have had: upper bounds on the samples of a replay, by those who know the future."""

from bfreplay.bounds.upper_bound import Effort, Kind, UpperBound, reason_without_bound, upper_bound

__all__ = ["Effort", "Kind", "UpperBound", "reason_without_bound", "upper_bound"]
