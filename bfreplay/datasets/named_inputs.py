"""Inputs as users name them: ``sample`` for bundled data, times, and a window as two of them."""

from __future__ import annotations

from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bfreplay.datasets.times import EXPECTED_TIME, ISO_FIX, iso_utc, parse_time_us, seconds_to_us
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from bfreplay.datasets.log.events import NodeEvents


def resolve_sample(path: Path, kind: str) -> Path:
    """Return the path of the bundled ``"events"`` or ``"jobs"`` for ``sample``, unless a file has that name."""
    if not is_bundled(path):
        return path
    from bfreplay.datasets import bundled

    return bundled.sample_events_path() if kind == "events" else bundled.sample_jobs_path()


def is_bundled(path: str | PathLike[str]) -> bool:
    """Return whether this is the word ``sample``, and no file has that name."""
    return Path(path) == Path(BUNDLED) and not Path(path).exists()


def place_of(curves: str | PathLike[str]) -> str:
    """Return the absolute path of a file of curves; the word ``sample``, which is not a file, as it is."""
    return BUNDLED if is_bundled(curves) else str(Path(curves).absolute())


Window = tuple[str | float | date, str | float | date]
"""Two times as the user typed them."""


def restrict(log: NodeEvents, window: Window | None) -> NodeEvents:
    """Return the part of ``log`` between two times as the user typed them.

    Raises
    ------
    InputError
        One of them is not a time, or the window is empty or reaches outside the log.
    """
    return log if window is None else log.between(*window_us(window))


def window_us(window: Window) -> tuple[int, int]:
    """Return both ends in microseconds since the epoch; ``InputError`` unless both are times."""
    if isinstance(window, str) or len(window) != 2:
        raise InputError("the window is no pair of times", value=window, expected=f"two times, each {EXPECTED_TIME}")
    bounds = []
    for text in window:
        try:
            bounds.append(parse_time_us(text))
        except ValueError as error:
            raise InputError(f"--window: {error}", value=text, expected=EXPECTED_TIME, fix=ISO_FIX) from error
    return bounds[0], bounds[1]


def time_in_window(text: str, start_us: int, option: str) -> int:
    """Return microseconds since the epoch of a time as the user typed it: ISO-8601, epoch seconds, or +SECONDS.

    Parameters
    ----------
    text
        Text of the time.
    start_us
        Start of the run's window.
    option
        ``"--at"``, for the message.
    """
    expected = f"{EXPECTED_TIME}; or +SECONDS after the start of the window"
    try:
        time_us = start_us + seconds_to_us(text[1:]) if text.startswith("+") else parse_time_us(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}", value=text, expected=expected, fix=ISO_FIX) from error
    if time_us < start_us and text.isdigit():
        raise InputError(
            f"{option}: {iso_utc(time_us)} is before the window",
            value=text,
            expected=expected,
            fix=f"+{text} for seconds after the start of the window",
        )
    return time_us
