"""Replay batch-scheduler logs into an exact allocator of elastic training jobs.

>>> import bfreplay
>>> run = bfreplay.replay_log("sample", "sample", policy="bftrainer", t_fwd=120)
>>> run.summary.jobs["finished"] > 0
True
"""

import lazy_loader

__version__ = "0.1.0"

# the names stand in __init__.pyi; each is imported when first used, so that ``bfreplay --help`` stays quick
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
