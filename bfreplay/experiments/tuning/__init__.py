"""Tuning of T_fwd and of the number of jobs at once on one part of a log, with validation on the other."""

from bfreplay.experiments.tuning.tuner import TOLERANCE, TRAIN, tune
from bfreplay.result_folders.tuning import CurvePoint, Recommended, Tuning

__all__ = ["TOLERANCE", "TRAIN", "CurvePoint", "Recommended", "Tuning", "tune"]
