"""Pictures, from saved results only."""

from bfreplay.report.figures_lab import draw_lab

__all__ = ["draw_lab"]
