"""Policies: what shall run now. State in, node counts out."""

import lazy_loader

# the names stand in __init__.pyi; each is imported when first used: options of commands need no numpy
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
