"""Pictures, of saved results and of what a log says."""

from bfreplay.report.figures.picture_files import (
    check_idleness_pictures,
    draw_comparison,
    draw_finish,
    draw_idleness,
    draw_lab,
    draw_rules,
    draw_tuning,
)

__all__ = [
    "check_idleness_pictures",
    "draw_comparison",
    "draw_finish",
    "draw_idleness",
    "draw_lab",
    "draw_rules",
    "draw_tuning",
]
