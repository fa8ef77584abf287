"""Statistics of the idle nodes of a log: amount, idle intervals, bursts."""

from bfreplay.datasets.idleness.characterise import characterise, describe
from bfreplay.datasets.idleness.figures import Idleness

__all__ = ["Idleness", "characterise", "describe"]
