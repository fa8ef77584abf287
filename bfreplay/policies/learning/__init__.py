"""Scalability curves that are unknown at submission: learnt while the jobs run."""

from bfreplay.policies.learning.belief import Share
from bfreplay.policies.learning.learning_policy import LearningPolicy, learning_from_record

__all__ = ["LearningPolicy", "Share", "learning_from_record"]
