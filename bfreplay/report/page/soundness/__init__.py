"""Whether a run is whole: all that figures and sentences read is there, is what it should be, and adds up."""

from bfreplay.report.page.soundness.check import check_run
from bfreplay.report.page.soundness.sums import Sum

__all__ = ["Sum", "check_run"]
