"""How many random examples a test tries."""

from hypothesis import settings


def examples(thorough: int) -> int:
    """As many as ``thorough`` in `make test-all`, and 30 % of them otherwise: the profiles are in conftest.py."""
    return max(1, thorough * settings.default.max_examples // 100)
