"""Objectives: what an allocation is worth, per second, to whom."""
