"""The process behind ``isolation.IsolatedBackend``: ``python -m bfreplay.milp.worker FD PARENT_PID BY_KERNEL SCRATCH``.

It inherits one end of a socket pair and speaks pickled tuples over it. First it is told ``(search path, back end,
memory limit)`` and says ``("ready",)`` or ``("failed", why)``; then each ``(model, options)`` gets ``("answer",
BackendAnswer)``, ``("refused", why)`` or ``("failed", why)``. ``None`` ends it, and so does the end of its parent.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Serve requests until the end; return the exit code."""
    descriptor, parent = int(arguments[0]), int(arguments[1])
    _die_with_parent(descriptor, parent, by_kernel=arguments[2] == "1", scratch=arguments[3])
    connection = Connection(descriptor)
    try:
        search, backend_name, memory_limit_bytes = connection.recv()
        sys.path[:] = [*search, *(entry for entry in sys.path if entry not in search)]
        try:
            backend = _backend(backend_name, memory_limit_bytes)
        except BaseException as error:  # whatever a stranger's module raises on import, the parent shall read it
            connection.send(("failed", f"{type(error).__name__}: {error}"))
            return 1
        from bfreplay.milp.backends import try_to_solve

        if backend.capabilities.crash_isolated:
            _ask_kernel(0)
        connection.send(("ready",))
        while (request := connection.recv()) is not None:
            connection.send(try_to_solve(backend, *request))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        shutil.rmtree(arguments[3], ignore_errors=True)
    return 0


def _backend(backend_name: str, memory_limit_bytes: int | None) -> Any:
    """Import and make the back end, then cap this process's memory."""
    from bfreplay.milp.backends import backend_of

    backend = backend_of(backend_name)
    why_not = backend.available()
    if why_not:
        raise RuntimeError(why_not)
    if memory_limit_bytes is not None:
        import resource

        hard_limit = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = memory_limit_bytes if hard_limit == resource.RLIM_INFINITY else min(memory_limit_bytes, hard_limit)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard_limit))
    return backend


def _die_with_parent(descriptor: int, parent: int, *, by_kernel: bool, scratch: str) -> None:
    """End this process with its parent, even while a solver hangs, and remove the folder of temporary files.

    A thread waits for the socket's other end to close and looks at the parent's id once a second (other children
    of the parent may keep the socket open). The kernel's own signal covers solvers that hold the interpreter lock,
    but fires when the *thread* that started us ends: only asked for when that was the main thread. Nor does it reach
    the processes of a solver that starts some: a back end that does (``crash_isolated``) is left to the thread.
    """
    if by_kernel:
        _ask_kernel(signal.SIGKILL)

    def watch() -> None:
        poll = select.poll()
        poll.register(descriptor, 0)  # hang-ups are always reported
        while os.getppid() == parent:
            if poll.poll(1000):
                break
        shutil.rmtree(scratch, ignore_errors=True)
        os.killpg(os.getpid(), signal.SIGKILL)  # it leads its group: solvers that it started go with it

    threading.Thread(target=watch, daemon=True).start()


def _ask_kernel(number: int) -> None:
    """Have Linux send this process a signal when its parent ends; 0 for none."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
