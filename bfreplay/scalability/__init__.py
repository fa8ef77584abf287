"""Scalability curves: how fast a job runs on how many nodes; laws for them, and fits to measurements."""

from bfreplay.scalability.amdahl import Amdahl
from bfreplay.scalability.catalogue import LAWS, law_named, laws_for, name_of
from bfreplay.scalability.choice import Choice, LeftOut, Tie, choose, fit_all, means_as_points
from bfreplay.scalability.communication import CommunicationStrong, CommunicationWeak
from bfreplay.scalability.curve import Curve, measured_counts
from bfreplay.scalability.fitting import FittedLaw, fit, fit_law
from bfreplay.scalability.gustafson import Gustafson
from bfreplay.scalability.law import Law, MeasuredLaw, Parameter, Scaling
from bfreplay.scalability.measurements import Measurements
from bfreplay.scalability.outliers import Outlier, outliers
from bfreplay.scalability.power import PowerLaw
from bfreplay.scalability.quick_fit import quick_usl
from bfreplay.scalability.tabulated import TabulatedCurve
from bfreplay.scalability.universal import UniversalScalability

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
    "fit",
    "fit_all",
    "fit_law",
    "law_named",
    "laws_for",
    "means_as_points",
    "measured_counts",
    "name_of",
    "outliers",
    "quick_usl",
]
