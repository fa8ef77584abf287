"""Where the files of a log come from: the network, or a folder into which somebody put them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bfreplay.datasets.public_logs.entries import LogFile, PublicLog
from bfreplay.errors import BfreplayError
from bfreplay.wording import count


class DownloadError(BfreplayError):
    """A public log could not be downloaded; the message names the addresses and says how to go on by hand."""


class NotSuppliedError(Exception):
    """One file could not be had.

    Parameters
    ----------
    file
        Which.
    reasons
        One line for each attempt.
    """

    def __init__(self, file: LogFile, reasons: Sequence[str]) -> None:
        super().__init__(file.name)
        self.file = file
        self.reasons = tuple(reasons)


class Supply(Protocol):
    """A place that files come from."""

    def bring(self, file: LogFile, path: Path) -> None:
        """Write ``file`` to ``path``, checked and in the form that its name promises.

        Raises
        ------
        NotSuppliedError
            It cannot be had here. ``path`` may have been written to.
        """

    def error(self, failures: Sequence[tuple[PublicLog, NotSuppliedError]], asked: int) -> BfreplayError:
        """Tell of all that could not be had, of ``asked`` logs, at once."""


def headline(failures: Sequence[tuple[PublicLog, NotSuppliedError]], asked: int) -> str:
    """``"1 of 2 public logs could not be fetched, ..."`` and, indented, which files and why."""
    if asked == 1:
        lines = ["the public log could not be fetched"]
    elif len(failures) == asked:
        lines = [f"none of the {count(asked, 'public log')} could be fetched"]
    else:
        lines = [f"{len(failures)} of {count(asked, 'public log')} could not be fetched, the others are there"]
    for log, missing in failures:
        lines.append(f"  {log.name}: {missing.file.name} ({count(missing.file.bytes, 'byte')})")
        lines += [f"    {reason}" for reason in missing.reasons]
    return "\n".join(lines)
