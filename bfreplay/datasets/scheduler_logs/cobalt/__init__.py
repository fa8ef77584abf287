"""Cobalt, and the job tables that the Argonne Leadership Computing Facility (ALCF) publishes."""

from bfreplay.datasets.scheduler_logs.cobalt.reader import CobaltReader

__all__ = ["CobaltReader"]
