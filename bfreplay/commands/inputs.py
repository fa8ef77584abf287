"""Functions shared by commands: checks of paths and pictures, notes, and printing."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import rich_click as click

from bfreplay.errors import InputError, OutputExistsError, printable
from bfreplay.outputs import make_folder, remove_empty


def check_failures_folder(folder: Path | None, out: Path | None) -> None:
    """Raise ``InputError`` for a --save-failures that would be lost or cannot be written, before any decision."""
    if folder is None:
        return
    if out is not None and folder.resolve().is_relative_to(out.resolve()):
        raise InputError(
            "--save-failures is inside --out, which is made only at the end",
            value=str(folder),
            fix="choose another folder",
        )
    try:
        new_folders = make_folder(folder)
        probe = folder / ".bfreplay-probe"
        probe.touch()
        probe.unlink()
        remove_empty(new_folders)  # it is made with the first failure
    except OSError as error:
        raise InputError(f"--save-failures cannot be written: {error.strerror}", file=folder) from error


def refuse_existing(file: Path, force: bool) -> None:
    """Raise ``OutputExistsError`` for an existing file without --force."""
    if file.exists() and not force:
        raise OutputExistsError(f"{file} exists already; choose another name, or replace it with --force")


def command_line() -> dict[str, str]:
    """Return the command line, for session records."""
    return {"command": shlex.join(["bfreplay", *sys.argv[1:]])}


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text, on stdout or stderr, with control characters escaped: names in it may be a stranger's.

    All that commands print goes through this.
    """
    click.echo(printable(str(text)), err=err, nl=nl)


def note(text: str) -> None:
    """Print a note on stderr."""
    say(f"Note: {text}", err=True)


def split_names(text: str) -> list[str]:
    """Return names that are separated by commas, such as ``"choices, counts_sos2"``."""
    return [name.strip() for name in text.split(",") if name.strip()]


def json_text(document: object) -> str:
    """Return a record as JSON text for printing."""
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False)


def drawing(name: str, *, quiet: bool) -> Callable[[Path], object] | None:
    """Return the function ``name`` of ``bfreplay.report``, or ``None`` with a note if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        if not quiet:
            note("no pictures are drawn: matplotlib is not installed (pip install matplotlib).")
        return None
    draw: Callable[[Path], object] = getattr(import_module("bfreplay.report"), name)
    return draw


def refuse_without_matplotlib(option: str, place: Path) -> None:
    """Raise ``InputError`` for pictures of ``option`` that cannot be drawn here."""
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{option}: matplotlib is not installed",
            value=str(place),
            fix="pip install matplotlib, or remove the option",
        )


def check_picture_option(file: Path, force: bool) -> None:
    """Raise an error for a --picture that cannot be drawn or written, before anything is read."""
    refuse_without_matplotlib("--picture", file)
    from bfreplay.report.figures.picture_files import check_picture

    check_picture(file, overwrite=force)
