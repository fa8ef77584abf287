"""The command ``bfreplay``, and ``python -m bfreplay``."""

from __future__ import annotations

import atexit
import gc
import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C while its modules are loaded acts as in a command."""
    try:
        from bfreplay.cli import main as command_line
    except KeyboardInterrupt:
        print("Aborted.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    atexit.register(gc.freeze)  # what is left goes with the process: to look through it for garbage takes 0.1 s
    command_line(prog_name="bfreplay")


if __name__ == "__main__":
    main()
