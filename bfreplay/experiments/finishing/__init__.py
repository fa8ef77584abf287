"""When all jobs are done, from many starts in a log and on dedicated nodes."""

from bfreplay.experiments.finishing.finisher import N_STARTS, finish
from bfreplay.result_folders.finish import Finish

__all__ = ["N_STARTS", "Finish", "finish"]
