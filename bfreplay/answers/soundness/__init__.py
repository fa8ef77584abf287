"""Whether a run is whole: all that figures and sentences read is there, is what it should be, and adds up."""

from bfreplay.answers.soundness.check import check_run
from bfreplay.answers.soundness.sums import Sum

__all__ = ["Sum", "check_run"]
