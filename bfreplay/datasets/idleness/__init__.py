"""What a log says of idle nodes: how much, in idle intervals of what length, in bursts of what size."""

from bfreplay.datasets.idleness.characterise import characterise
from bfreplay.datasets.idleness.figures import Idleness

__all__ = ["Idleness", "characterise"]
