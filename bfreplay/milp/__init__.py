"""One decision: the problem, the exact solver, MILP formulations and the back ends that solve them."""

import lazy_loader

# the names stand in __init__.pyi; each is imported when first used, so that a solver's worker process starts quickly
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
