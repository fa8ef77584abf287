"""Keeps a native library's chatter off standard output."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_stdout() -> Iterator[None]:
    """Send file descriptor 1 to nowhere for a while, for the whole process.

    Python's own buffer is flushed before, and C's after, so that nothing said inside appears later.
    """
    sys.stdout.flush()
    c_library = ctypes.CDLL(None)
    c_library.fflush(None)
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        c_library.fflush(None)
        os.dup2(kept, 1)
        os.close(nowhere)
        os.close(kept)
