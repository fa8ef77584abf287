"""Which T_fwd and how many jobs at once: tuned on one part of a log, validated on the other."""

from bfreplay.experiments.tuning.tuner import TOLERANCE, TRAIN, tune
from bfreplay.result_folders.tuning import CurvePoint, Recommended, Tuning

__all__ = ["TOLERANCE", "TRAIN", "CurvePoint", "Recommended", "Tuning", "tune"]
