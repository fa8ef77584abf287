"""Which T_fwd and how many jobs at once: tuned on one part of a log, validated on the other."""

from bfreplay.experiments.tuning.result import CurvePoint, Recommended, Tuning
from bfreplay.experiments.tuning.tuner import TOLERANCE, TRAIN, tune

__all__ = ["TOLERANCE", "TRAIN", "CurvePoint", "Recommended", "Tuning", "tune"]
