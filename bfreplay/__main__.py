"""The command ``bfreplay``, and ``python -m bfreplay``."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C while its modules are loaded acts as in a command."""
    try:
        from bfreplay.cli import main as command_line
    except KeyboardInterrupt:
        print("Aborted.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    command_line(prog_name="bfreplay")


if __name__ == "__main__":
    main()
