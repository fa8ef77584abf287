"""One decorator for hot loops: compiled by numba where it is installed, plain Python where not.

The source that runs is the same either way and numba is told neither to reorder nor to fuse
floating-point operations, so both give the same bits; only the time differs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def _numba() -> Any:
    """The numba module, or ``None`` on platforms without llvmlite wheels (ppc64le login nodes, for one)."""
    try:
        return importlib.import_module("numba")
    except ImportError:
        return None


_NUMBA = _numba()
IS_COMPILED = _NUMBA is not None and not _NUMBA.config.DISABLE_JIT


def compiled(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code on disk for the next process."""
    if _NUMBA is None:
        return function
    jitted: F
    try:
        jitted = _NUMBA.njit(cache=True, fastmath=False)(function)
    except RuntimeError:  # no folder is writable, neither beside the source nor in the home: compile in each process
        jitted = _NUMBA.njit(cache=False, fastmath=False)(function)
    return jitted
