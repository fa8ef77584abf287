"""How runs and parts of a figure are told apart, by colour and without it: on paper, and on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from textwrap import wrap
from typing import Any

from bfreplay.report.look import LIGHT, LINES, OKABE_ITO

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Of Plotly, as ``look.LINES`` of matplotlib."""

_HATCHES = ("", "///", "\\\\\\", "xxx", "---", "...")
_PATTERNS = ("", "/", "\\", "x", "-", ".")


def paper_fill(role: str, k: int) -> dict[str, Any]:
    """Matplotlib's arguments of a bar of this colour with the ``k``-th hatch; the first has none."""
    return {"facecolor": LIGHT[role], "hatch": _HATCHES[k % len(_HATCHES)], "edgecolor": "white", "linewidth": 0.0}


def page_fill(role: str, k: int) -> dict[str, Any]:
    """Plotly's marker of a bar of this colour with the ``k``-th pattern."""
    marker: dict[str, Any] = {"color": f"@{role}", "line": {"color": "@paper", "width": 0.5}}
    shape = _PATTERNS[k % len(_PATTERNS)]
    if shape:
        marker["pattern"] = {"shape": shape, "fillmode": "overlay", "fgcolor": "@paper", "size": 7, "solidity": 0.25}
    return marker


def run_number(label: str) -> int:
    """Which run a label stands for: 0 for ``A (run-120)`` and for the empty one, 25 for ``Z``, 26 for ``AA``.

    A run looks the same in all figures, also in those in which another one has nothing to show.
    """
    number = 0
    for letter in label.partition(" ")[0]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return max(0, number - 1)


def run_role(k: int) -> str:
    """Colour of the ``k``-th run."""
    return f"run-{k % len(OKABE_ITO)}"


def paper_line(role: str, k: int = 0) -> dict[str, Any]:
    """Matplotlib's arguments of a line of this colour with the ``k``-th dashes."""
    return {"color": LIGHT[role], "linestyle": LINES[k % len(LINES)], "linewidth": 1.8}


def page_line(role: str, k: int = 0) -> dict[str, Any]:
    """Plotly's line of this colour with the ``k``-th dashes."""
    return {"color": f"@{role}", "dash": DASHES[k % len(DASHES)], "width": 2}


def named(label: str, words: str) -> str:
    """``A: idle``; of a single run, whose label is empty, the words alone."""
    return f"{label}: {words}" if label else words


def said_of(runs: Sized, sentences: Iterable[str]) -> str:
    """Sentences of a figure's words: one after another, or of several runs each on a line of its own."""
    return ("\n" if len(runs) > 1 else " ").join(sentences)


def in_lines(text: str, width: int = 12, by: str = "<br>") -> str:
    """Broken between words into lines of at most ``width`` letters, where words allow it."""
    return by.join(wrap(text, width, break_long_words=False, break_on_hyphens=False))
