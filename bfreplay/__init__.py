"""Replay batch-scheduler logs into an exact allocator of elastic training jobs.

>>> import bfreplay
>>> run = bfreplay.replay_log("sample", "sample", policy="bftrainer", t_fwd=120)
>>> run.summary.jobs["finished"] > 0
True
"""

from importlib import import_module, util
from typing import Any

import lazy_loader

__version__ = "0.1.0"

# the names stand in __init__.pyi; each is imported when first used, so that ``bfreplay --help`` stays quick
_found, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _found(name)
    except AttributeError as error:
        if util.find_spec(f"{__name__}.{name}"):  # bfreplay.milp, after ``import bfreplay`` alone
            return import_module(f"{__name__}.{name}")
        from bfreplay.checks import nearest

        hint = nearest(name, __all__, "dir(bfreplay) lists its names")
        raise AttributeError(f"bfreplay has no attribute {name!r}; {hint}") from error
