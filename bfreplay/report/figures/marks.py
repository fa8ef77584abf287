"""Colours, dashes, hatches and labels of runs and parts of a figure, on paper and on the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, TypeVar

from bfreplay.errors import InputError
from bfreplay.wording import amount

D = TypeVar("D")
Trace = dict[str, Any]
"""A trace, an axis or a style, as Plotly and matplotlib take it."""

Dashes = str | tuple[int, tuple[int, ...]]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A00", "#5B3FA0")
"""Colours that the colour-blind can tell apart (Okabe and Ito, 2008; yellow, unreadable as a line, is replaced)."""

LINES: tuple[Dashes, ...] = ("-", (0, (6, 2)), (0, (2, 1)), (0, (7, 2, 1, 2)), (0, (1, 1)), (0, (9, 2, 1, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
BLUE, RED = OKABE_ITO[:2]
PALE_BLUE, FAINT_BLUE = "#9CC9E8", "#DCE9F2"
GREY, PALE_GREY = "#5F5F5F", "#C8C8C8"

_ON_DARK = ("#4FA8E8", "#FF8A47", "#2FC79A", "#E79AC6", "#F2B63C", "#9AD4F5", "#C9C94A", "#A48DE8")

_COLOURS = {
    "paper": ("#FFFFFF", "#14181D"),
    "panel": ("#F6F7F9", "#1D232A"),
    "ink": ("#1C2126", "#E8ECF0"),
    "muted": ("#56606B", "#A7B1BC"),
    "rule": ("#D5DAE0", "#3A434D"),
    "grid": ("#E4E7EB", "#2B323A"),
    "accent": ("#005A9C", "#7CC0F5"),
    "warning": ("#8A4B00", "#FFC670"),
    "warning-panel": ("#FFF4E0", "#3A2C12"),
    # where idle node-hours go
    "useful": ("#0072B2", "#4FA8E8"),
    "rescaling": ("#E69F00", "#F2B63C"),
    "lost": ("#D55E00", "#FF8A47"),
    "unallocated": ("#B9C0C8", "#5B6672"),
    # nodes over time
    "idle": ("#6B7580", "#A7B1BC"),
    "idle-range": ("#C9D0D7", "#3F4954"),
    # baselines
    "bound": ("#009E73", "#2FC79A"),
    "dedicated": ("#CC79A7", "#E79AC6"),
    # few to many, of a heat map
    "heat-0": ("#F1F5F9", "#1D232A"),
    "heat-1": ("#BBD9EE", "#1F4A6B"),
    "heat-2": ("#72B2DD", "#2A7FBA"),
    "heat-3": ("#2A7FBA", "#72B2DD"),
    "heat-4": ("#0B3F66", "#DCEFFB"),
    **{f"run-{k}": pair for k, pair in enumerate(zip(OKABE_ITO, _ON_DARK, strict=True))},
}
LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
"""Colour by role, on a light ground and on paper."""
DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}
"""The same names on a dark ground."""

ROWS: Trace = {"type": "category", "autorange": "reversed", "automargin": True, "showgrid": False}
"""Plotly's vertical axis of bars or jobs one below the other."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Dashes of Plotly, in the order of ``LINES``."""

_HATCHES = ("", "///", "\\\\\\", "xxx", "---", "...")
_PATTERNS = ("", "/", "\\", "x", "-", ".")
_LABEL = re.compile(r"([A-Z]+)(?: \(.*\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mark:
    """A colour by role (a name of ``LIGHT``) with the ``k``-th dashes, hatch or pattern; 0 has none."""

    role: str
    k: int = 0

    @classmethod
    def of_run(cls, number: int) -> Mark:
        """Return the mark of the ``number``-th run."""
        return cls(f"run-{number % len(OKABE_ITO)}", number)

    @classmethod
    def of_label(cls, label: str) -> Mark:
        """Return the mark of the run with this label."""
        return cls.of_run(run_number(label))

    @property
    def colour(self) -> str:
        """Colour on paper."""
        return LIGHT[self.role]

    @property
    def paper_line(self) -> Trace:
        """Matplotlib's arguments of a line."""
        return {"color": self.colour, "linestyle": LINES[self.k % len(LINES)], "linewidth": 1.8}

    @property
    def page_line(self) -> Trace:
        """Plotly's line."""
        return {"color": f"@{self.role}", "dash": DASHES[self.k % len(DASHES)], "width": 2}

    @property
    def paper_fill(self) -> Trace:
        """Matplotlib's arguments of a bar."""
        return fill_look(self.colour, _HATCHES[self.k % len(_HATCHES)])

    @property
    def page_fill(self) -> Trace:
        """Plotly's marker of a bar."""
        marker: Trace = {"color": f"@{self.role}", "line": {"color": "@paper", "width": 0.5}}
        if shape := _PATTERNS[self.k % len(_PATTERNS)]:
            dot_pattern = {"fillmode": "overlay", "fgcolor": "@paper", "size": 7, "solidity": 0.25}
            marker["pattern"] = {"shape": shape, **dot_pattern}
        return marker

    def bars(self, name: str, x: list[Any], y: list[Any], hover: str, **other_entries: Any) -> Trace:
        """Plotly's bars; ``hover`` is the hover text of a bar."""
        bars = {"type": "bar", "name": name, "x": x, "y": y, "marker": self.page_fill}
        return {**bars, **other_entries, "hovertemplate": f"{hover}<extra></extra>"}

    def curve(self, name: str, hover: str, line: Trace | None = None, **other_entries: Any) -> Trace:
        """Plotly's line through points ``x`` and ``y``, changed by ``line``; ``hover`` is the hover text of a point."""
        curve = {"type": "scatter", "mode": "lines", "name": name, "line": self.page_line | (line or {})}
        return {**curve, **other_entries, "hovertemplate": f"{hover}<extra></extra>"}

    def steps(self, name: str, hover: str, series: str, statistic: str = "mean", **other_entries: Any) -> Trace:
        """Plotly's line of a step function, with the points of the page (``PageFigure.traces``)."""
        line = {"shape": "hv"} | other_entries.pop("line", {})
        return self.curve(name, hover, line, steps={"series": series, "statistic": statistic}, **other_entries)


def fill_look(colour: str, hatch: str = "", linewidth: float = 0.0) -> Trace:
    """Matplotlib's arguments of a bar, or of another filled shape."""
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": linewidth}


def point_look(colour: str, marker: str = "o", size: float = 5.0) -> Trace:
    """Matplotlib's arguments of points without a line."""
    return {"linestyle": "none", "marker": marker, "markersize": size, "color": colour}


def run_number(label: str) -> int:
    """Return the number of the run of a label: 0 for ``A (run-120)`` and for ``""``, 25 for ``Z``, 26 for ``AA``.

    Raises
    ------
    InputError
        Not a label of ``RunFigure``.
    """
    if not label:
        return 0
    label_match = _LABEL.fullmatch(label)
    if label_match is None:
        raise InputError(
            "this is no label of a run", value=label, expected="A, B, ..., Z, AA, ..., perhaps with a name: B (run-600)"
        )
    run_position = 0
    for letter in label_match[1]:
        run_position = 26 * run_position + ord(letter) - ord("A") + 1
    return run_position - 1


def by_run(by_label: Mapping[str, D]) -> list[tuple[Mark, str, D]]:
    """Mark, label and data of each run.

    The mark depends on the label, not on the position: a run looks the same in all figures, also where another run has
    nothing to show.

    Raises
    ------
    InputError
        Invalid label, or two labels of the same run.
    """
    numbered_runs = [(run_number(label), label, run_data) for label, run_data in by_label.items()]
    if len({number for number, *_ in numbered_runs}) < len(numbered_runs):
        raise InputError("two runs have the same letter", value=", ".join(by_label), expected="a letter a run")
    return [(Mark.of_run(number), label, run_data) for number, label, run_data in numbered_runs]


def all_are_alike(runs: Iterable[D], are_alike: Callable[[D, D], bool]) -> bool:
    """Return whether each run is like the first, so that common parts are shown once."""
    first, *others = runs
    return all(are_alike(first, other) for other in others)


def tag(label: str, words: str) -> str:
    """Return ``A: idle``; for a single run, whose label is empty, the words alone."""
    return f"{label}: {words}" if label else words


def sentence(label: str, text: str) -> str:
    """Return a sentence about a run; for a single run, whose label is empty, with a capital."""
    return f"{tag(label, text) if label else text[0].upper() + text[1:]}."


def join_text(runs: Sized, sentences: Iterable[str]) -> str:
    """Join the sentences of a figure: with spaces, or for several runs with line breaks."""
    return ("\n" if len(runs) > 1 else " ").join(sentences)


def of_each(words: Callable[[D], str]) -> Callable[[Mapping[str, D]], str]:
    """Words of a figure about its runs: a sentence each."""
    return lambda by_label: join_text(by_label, (sentence(label, words(data)) for label, data in by_label.items()))


def amount_of(value: float, noun: str) -> str:
    """Return ``12.5 nodes``, or ``1 node``."""
    amount_text = amount(value)
    return f"{amount_text} {noun}{'' if amount_text == '1' else 's'}"


def in_lines(text: str, width: int = 12, separator: str = "<br>") -> str:
    """Break between words into lines of at most ``width`` characters if words allow it."""
    return separator.join(wrap(text, width, break_long_words=False, break_on_hyphens=False))


def axis(number: int, letter: str = "y") -> str:
    """Name of the ``number``-th axis, from 0 on, in a trace: ``y``, ``y2``, ``y3``."""
    return letter if number == 0 else f"{letter}{number + 1}"


def layout_axis(number: int, letter: str = "y") -> str:
    """Name of the ``number``-th axis in the layout: ``yaxis``, ``yaxis2``, ``yaxis3``."""
    return axis(number, f"{letter}axis")
