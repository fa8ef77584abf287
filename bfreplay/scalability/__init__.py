"""Scalability curves: how fast a job runs on how many nodes."""

from bfreplay.scalability.curve import Curve
from bfreplay.scalability.tabulated import TabulatedCurve

__all__ = ["Curve", "TabulatedCurve"]
