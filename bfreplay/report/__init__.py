"""Pictures, of saved results and of what a log says."""

from bfreplay.report.figures_idleness import check_idleness_pictures, draw_idleness
from bfreplay.report.figures_lab import draw_lab

__all__ = ["check_idleness_pictures", "draw_idleness", "draw_lab"]
