"""What several commands do with inputs that a user names, with pictures, and with what they print."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import rich_click as click

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.outputs import make_folder, remove_empty


def check_failures_folder(folder: Path | None, out: Path | None) -> None:
    """Refuse a --save-failures that would be lost or cannot be written, before anything is solved."""
    if folder is None:
        return
    if out is not None and folder.resolve().is_relative_to(out.resolve()):
        raise InputError(
            "--save-failures lies in --out, which appears only when all is done, and then whole",
            value=str(folder),
            fix="name a folder elsewhere",
        )
    try:
        fresh = make_folder(folder)
        probe = folder / ".bfreplay-probe"
        probe.touch()
        probe.unlink()
        remove_empty(fresh)  # it is made with the first failure
    except OSError as error:
        raise InputError(f"--save-failures: nothing can be written there: {error.strerror}", file=folder) from error


def refuse_existing(file: Path, force: bool) -> None:
    """Refuse an output that is there, unless it is to be replaced."""
    if file.exists() and not force:
        raise OutputExistsError(f"{file} is there already; choose another name, or replace it with --force")


def command_line() -> dict[str, str]:
    """The command line, for the session of what it makes."""
    return {"command": shlex.join(["bfreplay", *sys.argv[1:]])}


def note(text: str) -> None:
    """Tell something on stderr that is no error."""
    click.echo(f"Note: {text}", err=True)


def json_text(document: object) -> str:
    """A record as commands print it."""
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False)


def drawing(name: str, *, quiet: bool) -> Callable[[Path], object] | None:
    """Return the function ``name`` of ``bfreplay.report``, or ``None`` with a note where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        if not quiet:
            note("no pictures will be drawn: matplotlib is not installed (pip install matplotlib).")
        return None
    draw: Callable[[Path], object] = getattr(import_module("bfreplay.report"), name)
    return draw


def refuse_without_matplotlib(option: str, place: Path) -> None:
    """Raise ``InputError`` where ``option`` asks for pictures that cannot be drawn here."""
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{option}: matplotlib is not installed", value=str(place), fix="pip install matplotlib, or leave it out"
        )


def check_picture_option(file: Path, force: bool) -> None:
    """Refuse a --picture that cannot be drawn or written, before anything is read."""
    refuse_without_matplotlib("--picture", file)
    from bfreplay.report.figures.picture_files import check_picture

    check_picture(file, overwrite=force)
