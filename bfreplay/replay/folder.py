"""A run folder appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.replay.result import RECORD_FILE


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder that becomes ``target`` when the block ends well, and vanishes when it does not.

    Raises
    ------
    OutputExistsError
        ``target`` is there already and ``overwrite`` is off, or it is something else than a run folder.
    """
    check_target(target, overwrite=overwrite)
    if not target.parent.is_dir():
        raise InputError(
            "the folder to write into does not exist",
            file=target.parent,
            expected="an existing folder",
            fix=f"mkdir -p {target.parent}",
        )
    partial = target.parent / f".{target.name}.partial-{os.getpid()}"
    partial.mkdir()
    try:
        yield partial
        check_target(target, overwrite=overwrite)
        if target.exists():
            old = target.parent / f".{target.name}.replaced-{os.getpid()}"
            target.rename(old)
            partial.rename(target)
            shutil.rmtree(old)
        else:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_target(target: Path, *, overwrite: bool) -> None:
    """Raise ``OutputExistsError`` where ``new_folder`` would."""
    if not target.exists():
        return
    if not overwrite:
        raise OutputExistsError(
            f"the output folder exists already\n  file:     {target}\n"
            "  fix:      choose another --out, or add --force to replace this run"
        )
    if any(target.iterdir() if target.is_dir() else [target]) and not (target / RECORD_FILE).is_file():
        raise OutputExistsError(
            f"the output folder exists and is not a run folder, so even --force leaves it alone\n  file:     {target}\n"
            "  fix:      choose another --out"
        )
