"""Whether pictures can be drawn here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import rich_click as click

from bfreplay.errors import InputError


def drawing(name: str, *, quiet: bool) -> Callable[[Path], object] | None:
    """Return the function ``name`` of ``bfreplay.report``, or ``None`` with a note where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        if not quiet:
            click.echo(
                "Note: no pictures will be drawn: matplotlib is not installed (pip install matplotlib).", err=True
            )
        return None
    draw: Callable[[Path], object] = getattr(import_module("bfreplay.report"), name)
    return draw


def check_picture_option(file: Path, force: bool) -> None:
    """Refuse a --picture that cannot be drawn or written, before anything is read."""
    if find_spec("matplotlib") is None:
        raise InputError(
            "--picture: matplotlib is not installed", value=str(file), fix="pip install matplotlib, or leave it out"
        )
    from bfreplay.report.picture_file import check_picture

    check_picture(file, overwrite=force)
