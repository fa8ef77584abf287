"""One decorator for hot loops: compiled by numba where it is installed, plain Python where not.

The source that runs is the same either way and numba is told neither to reorder nor to fuse
floating-point operations, so both give the same bits; only the time differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

try:
    import numba

    IS_COMPILED = not numba.config.DISABLE_JIT
except ImportError:  # platforms without llvmlite wheels, ppc64le login nodes for one
    numba = None
    IS_COMPILED = False


def compiled(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code on disk for the next process."""
    if numba is None:
        return function
    return numba.njit(cache=True, fastmath=False)(function)  # type: ignore[no-any-return]  # numba ships no types
