"""How runs and parts of a figure are told apart, by colour and without it: on paper, and on the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sized
from textwrap import wrap
from typing import TypeVar

from bfreplay.errors import InputError
from bfreplay.report.figures.look import LIGHT, LINES, OKABE_ITO, Trace
from bfreplay.wording import amount

D = TypeVar("D")

ROWS: Trace = {"type": "category", "autorange": "reversed", "automargin": True, "showgrid": False}
"""Plotly's vertical axis of bars or jobs one below the other."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Of Plotly, as ``look.LINES`` of matplotlib."""

_HATCHES = ("", "///", "\\\\\\", "xxx", "---", "...")
_PATTERNS = ("", "/", "\\", "x", "-", ".")
_LABEL = re.compile(r"([A-Z]+)(?: \(.*\))?", re.DOTALL)


def paper_fill(role: str, k: int) -> Trace:
    """Matplotlib's arguments of a bar of this colour with the ``k``-th hatch; the first has none."""
    return {"facecolor": LIGHT[role], "hatch": _HATCHES[k % len(_HATCHES)], "edgecolor": "white", "linewidth": 0.0}


def page_fill(role: str, k: int) -> Trace:
    """Plotly's marker of a bar of this colour with the ``k``-th pattern."""
    marker: Trace = {"color": f"@{role}", "line": {"color": "@paper", "width": 0.5}}
    shape = _PATTERNS[k % len(_PATTERNS)]
    if shape:
        marker["pattern"] = {"shape": shape, "fillmode": "overlay", "fgcolor": "@paper", "size": 7, "solidity": 0.25}
    return marker


def run_number(label: str) -> int:
    """Which run a label stands for: 0 for ``A (run-120)`` and for the empty one, 25 for ``Z``, 26 for ``AA``.

    Raises
    ------
    InputError
        It is not a label as ``RunFigure`` has them.
    """
    if not label:
        return 0
    found = _LABEL.fullmatch(label)
    if found is None:
        raise InputError(
            "this is no label of a run", value=label, expected="A, B, ..., Z, AA, ..., perhaps with a name: B (run-600)"
        )
    number = 0
    for letter in found[1]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def numbered(found: Mapping[str, D]) -> list[tuple[int, str, D]]:
    """Number, label and data of each run.

    The number is that of the label, not of the place: a run looks the same in all figures, also in those in which
    another one has nothing to show.

    Raises
    ------
    InputError
        One of the labels is none, or two of them stand for the same run, so that both would look the same.
    """
    runs = [(run_number(label), label, data) for label, data in found.items()]
    if len({k for k, *_ in runs}) < len(runs):
        raise InputError("two runs have the same letter", value=", ".join(found), expected="a letter a run")
    return runs


def all_are_alike(runs: Iterable[D], are_alike: Callable[[D, D], bool]) -> bool:
    """Whether each of them is like the first, so that what they share is shown once."""
    first, *others = runs
    return all(are_alike(first, other) for other in others)


def run_role(k: int) -> str:
    """Colour of the ``k``-th run."""
    return f"run-{k % len(OKABE_ITO)}"


def paper_line(role: str, k: int = 0) -> Trace:
    """Matplotlib's arguments of a line of this colour with the ``k``-th dashes."""
    return {"color": LIGHT[role], "linestyle": LINES[k % len(LINES)], "linewidth": 1.8}


def page_line(role: str, k: int = 0) -> Trace:
    """Plotly's line of this colour with the ``k``-th dashes."""
    return {"color": f"@{role}", "dash": DASHES[k % len(DASHES)], "width": 2}


def named(label: str, words: str) -> str:
    """``A: idle``; of a single run, whose label is empty, the words alone."""
    return f"{label}: {words}" if label else words


def told(label: str, text: str) -> str:
    """A sentence about a run; of a single one, whose label is empty, with a capital."""
    return f"{named(label, text) if label else text[0].upper() + text[1:]}."


def said_of(runs: Sized, sentences: Iterable[str]) -> str:
    """Sentences of a figure's words: one after another, or of several runs each on a line of its own."""
    return ("\n" if len(runs) > 1 else " ").join(sentences)


def amount_of(value: float, word: str) -> str:
    """``12.5 nodes``, and ``1 node`` where that is what is written."""
    text = amount(value)
    return f"{text} {word}{'' if text == '1' else 's'}"


def in_lines(text: str, width: int = 12, by: str = "<br>") -> str:
    """Broken between words into lines of at most ``width`` letters, where words allow it."""
    return by.join(wrap(text, width, break_long_words=False, break_on_hyphens=False))


def axis(k: int, letter: str = "y") -> str:
    """What a trace calls the ``k``-th axis, from 0 on: ``y``, ``y2``, ``y3``."""
    return letter if k == 0 else f"{letter}{k + 1}"


def layout_axis(k: int, letter: str = "y") -> str:
    """What the layout calls it: ``yaxis``, ``yaxis2``, ``yaxis3``."""
    return axis(k, f"{letter}axis")
