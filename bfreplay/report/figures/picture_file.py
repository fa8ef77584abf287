"""Pictures as files: PNG or SVG, the same bytes each time, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.outputs import is_there, written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")


def check_picture(file: Path, *, overwrite: bool = False) -> str:
    """Return the format of ``file``; raises what ``save_picture`` would of its name, before anything is drawn."""
    ending = file.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InputError(
            "pictures have another format", file=file, value=file.name, expected="a name ending in .png or .svg"
        )
    if is_there(file) and not overwrite:
        raise OutputExistsError(
            f"{file} is there already; choose another name, or replace it with --force (Python: overwrite=True)"
        )
    return ending


def save_picture(figure: Figure, file: Path, *, overwrite: bool = False) -> None:
    """Write a figure: PNG or SVG, by the ending of ``file``; whole, or not at all.

    Raises
    ------
    OutputExistsError
        The file is there and ``overwrite`` is false.
    InputError
        Another ending, or the folder is not there or may not be written to.
    """
    ending = check_picture(file, overwrite=overwrite)
    with written_whole([file], overwrite) as (part,):
        write_figure(figure, part, ending)


def save_both(folder: Path, figures: Mapping[str, Figure]) -> list[Path]:
    """Write figures, by their names, as PNG and SVG into a folder of results, over those that are there."""
    files = [folder / f"{name}.{ending}" for name in figures for ending in FORMATS]
    for file in files:
        save_picture(figures[file.stem], file, overwrite=True)
    return files


def write_figure(figure: Figure, file: Path, ending: str) -> None:
    """Write a figure in one of ``FORMATS`` to ``file``, whatever its name.

    The same figure gives the same bytes, with the same release of matplotlib.
    """
    import matplotlib

    # the ids inside an SVG are hashes with this salt; without one they differ from run to run
    with matplotlib.rc_context({"svg.hashsalt": "bfreplay"}):
        figure.savefig(file, format=ending, dpi=150, metadata={"Date": None} if ending == "svg" else None)
