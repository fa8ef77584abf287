"""Sweeps: many runs that differ in some options, each made once, in parallel, resumable."""

import lazy_loader

# the names stand in __init__.pyi; each is imported when first used, so that a worker that dies is soon replaced
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
