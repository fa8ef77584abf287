"""Scalability curves: how fast a job runs on how many nodes; laws for them, and fits to measurements."""

from bfreplay.scalability.choice import Choice, LeftOut, Outlier, Tie, choose, fit_all, means_as_points, outliers
from bfreplay.scalability.fitting import FittedLaw, fit, fit_law, quick_usl
from bfreplay.scalability.law import (
    LAWS,
    Curve,
    Law,
    MeasuredLaw,
    Parameter,
    Scaling,
    find_law,
    laws_for,
    measured_counts,
    name_of,
)
from bfreplay.scalability.laws import (
    Amdahl,
    CommunicationStrong,
    CommunicationWeak,
    Gustafson,
    PowerLaw,
    UniversalScalability,
)
from bfreplay.scalability.measurements import Measurements
from bfreplay.scalability.tabulated import TabulatedCurve

__all__ = [
    "LAWS",
    "Amdahl",
    "Choice",
    "CommunicationStrong",
    "CommunicationWeak",
    "Curve",
    "FittedLaw",
    "Gustafson",
    "Law",
    "LeftOut",
    "MeasuredLaw",
    "Measurements",
    "Outlier",
    "Parameter",
    "PowerLaw",
    "Scaling",
    "TabulatedCurve",
    "Tie",
    "UniversalScalability",
    "choose",
    "find_law",
    "fit",
    "fit_all",
    "fit_law",
    "laws_for",
    "means_as_points",
    "measured_counts",
    "name_of",
    "outliers",
    "quick_usl",
]
