"""Pictures, of saved results and of what a log says."""

from bfreplay.report.figures.formulation_lab import draw_lab
from bfreplay.report.figures.idleness import check_idleness_pictures, draw_idleness
from bfreplay.report.figures.run_comparison import draw_comparison
from bfreplay.report.figures.tuning import draw_tuning, tuning_figure

__all__ = [
    "check_idleness_pictures",
    "draw_comparison",
    "draw_idleness",
    "draw_lab",
    "draw_tuning",
    "tuning_figure",
]
