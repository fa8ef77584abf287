"""Scalability curves: how fast a job runs on how many nodes; laws for them, and fits to measurements."""

from bfreplay.scalability.choice import fit_all
from bfreplay.scalability.fitting import fit
from bfreplay.scalability.law import Curve, Law, MeasuredLaw, Scaling, find_law, measured_counts, name_of
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
    "Amdahl",
    "CommunicationStrong",
    "CommunicationWeak",
    "Curve",
    "Gustafson",
    "Law",
    "MeasuredLaw",
    "Measurements",
    "PowerLaw",
    "Scaling",
    "TabulatedCurve",
    "UniversalScalability",
    "find_law",
    "fit",
    "fit_all",
    "measured_counts",
    "name_of",
]
