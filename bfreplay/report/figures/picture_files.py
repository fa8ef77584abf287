"""Pictures as files: PNG or SVG, reproducible bytes, complete or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.outputs import is_there, make_folder, remove_empty, written_whole
from bfreplay.report.figures.figure import figures_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.datasets.idleness import Idleness

FORMATS = ("png", "svg")


def check_picture(file: Path, *, overwrite: bool = False) -> str:
    """Return the format of ``file``; raise the errors of ``save_picture`` about its name, before drawing."""
    ending = file.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InputError(
            "pictures have another format", file=file, value=file.name, expected="a name ending in .png or .svg"
        )
    if is_there(file) and not overwrite:
        raise OutputExistsError(f"{file} exists already; choose another name, or replace it with --force")
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


def write_figure(figure: Figure, file: Path | BytesIO, ending: str) -> None:
    """Write a figure in one of ``FORMATS`` to ``file``, whatever its name.

    The same figure gives the same bytes, with the same release of matplotlib.
    """
    import matplotlib

    # the ids inside an SVG are hashes with this salt; without one they differ from run to run
    with matplotlib.rc_context({"svg.hashsalt": "bfreplay"}):
        figure.savefig(file, format=ending, dpi=150, metadata={"Date": None} if ending == "svg" else None)


def draw_comparison(folder: Path) -> list[Path]:
    """Draw ``differences-over-time`` and ``causes`` into a comparison folder, as PNG and SVG each.

    Raises
    ------
    InputError
        It is no comparison folder, or lacks a table.
    """
    from bfreplay.result_folders.comparison import RunComparison

    return _draw_all("comparison", RunComparison.load(folder), folder)


def draw_lab(folder: Path) -> list[Path]:
    """Draw ``performance-profile``, ``time-by-size`` and ``outcomes`` into a lab folder, as PNG and SVG each.

    Raises
    ------
    InputError
        It is no lab folder, or lacks a table.
    """
    from bfreplay.result_folders.lab import LabResult

    return _draw_all("lab", LabResult.load(folder), folder)


def draw_tuning(folder: Path) -> list[Path]:
    """Draw ``tuning`` into the folder of a tuning, as PNG and SVG.

    Raises
    ------
    InputError
        It is none.
    """
    from bfreplay.result_folders.tuning import Tuning

    return _draw_all("tuning", Tuning.load(folder).record, folder)


def draw_finish(folder: Path) -> list[Path]:
    """Draw ``finish`` into the folder of ``bfreplay finish``, as PNG and SVG.

    Raises
    ------
    InputError
        It is none.
    """
    from bfreplay.result_folders.finish import Finish

    return _draw_all("finish", Finish.load(folder).record, folder)


def draw_rules(folder: Path) -> list[Path]:
    """Draw ``rules`` into the folder of ``bfreplay compare rules``, as PNG and SVG; ``InputError`` if it is none."""
    from bfreplay.result_folders.rules import RuleComparison

    return _draw_all("rules", RuleComparison.load(folder).record, folder)


def _draw_all(result_kind: str, source: object, folder: Path) -> list[Path]:
    """Write the figures of a result into its folder, as PNG and SVG, over those that are there."""
    files = []
    for figure in figures_of(result_kind):
        drawing = figure.draw_from(source)
        for ending in FORMATS:
            files.append(folder / f"{figure.name}.{ending}")
            save_picture(drawing, files[-1], overwrite=True)
    return files


def draw_idleness(
    idleness: Idleness, folder: Path, formats: Sequence[str] = ("png",), *, overwrite: bool = False
) -> list[Path]:
    """Draw all figures of a log into ``folder``, which is made where it is not there: all of them, or none.

    The same ``idleness`` gives the same bytes, with the same release of matplotlib.

    Parameters
    ----------
    idleness
        What to draw.
    folder
        Where to.
    formats
        ``"png"``, ``"svg"``, or both.
    overwrite
        Replace pictures that are there.

    Raises
    ------
    OutputExistsError
        A picture is there and ``overwrite`` is false.
    InputError
        The folder cannot be made, or may not be written to; or another format.
    """
    files = _files(folder, formats)
    try:
        fresh = make_folder(folder)
    except OSError as error:
        raise _no_folder(folder, error.strerror or str(error)) from error
    try:
        with written_whole(files, overwrite) as temporary:
            parts = iter(temporary)
            for figure in figures_of("log"):
                drawing = figure.draw_from(idleness)
                for ending in formats:
                    write_figure(drawing, next(parts), ending)
    except BaseException:
        remove_empty(fresh)
        raise
    return files


def check_idleness_pictures(folder: Path, formats: Sequence[str] = ("png",), *, overwrite: bool = False) -> None:
    """Raise the errors of ``draw_idleness`` about existing pictures, before measuring."""
    if folder.exists() and not folder.is_dir():
        raise _no_folder(folder, "it is a file")
    for file in _files(folder, formats):
        if file.exists() and not overwrite:
            raise OutputExistsError(f"{file} exists already; choose another folder, or replace it with --force")


def _files(folder: Path, formats: Sequence[str]) -> list[Path]:
    for ending in formats:
        if ending not in FORMATS:
            raise InputError("pictures have another format", value=ending, expected="'png' or 'svg'")
    return [folder / f"{figure.name}.{ending}" for figure in figures_of("log") for ending in formats]


def _no_folder(folder: Path, reason: str) -> InputError:
    return InputError(
        f"the folder of the pictures cannot be made: {reason}",
        file=folder,
        expected="a folder in which you may write",
        fix="choose another folder",
    )
