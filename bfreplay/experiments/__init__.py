"""Experiments: many decisions or replays, compared.

Sweeps, tuning and regret are imported from their own packages: ``bfreplay.experiments.sweep`` and so on; or from
``bfreplay`` itself.
"""

import lazy_loader

# the names stand in __init__.pyi; each is imported when first used: a worker of a sweep needs none of them
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
