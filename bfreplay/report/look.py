"""How lines and bars look: told apart without colour as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Dashes = str | tuple[int, tuple[int, ...]]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A00", "#5B3FA0")
"""Colours that the colour-blind can tell apart (Okabe and Ito, 2008; yellow, unreadable as a line, is replaced)."""

LINES: tuple[Dashes, ...] = ("-", (0, (6, 2)), (0, (2, 1)), (0, (7, 2, 1, 2)), (0, (1, 1)), (0, (9, 2, 1, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")


@dataclass(frozen=True, slots=True)
class Look:
    """Of one line."""

    colour: str
    line: Dashes
    marker: str


def looks(formulations: Sequence[str], backends: Sequence[str]) -> dict[tuple[str, str], Look]:
    """A look for every (formulation, back end): the back end gives colour and dashes, the formulation the marker."""
    return {
        (formulation, backend): Look(OKABE_ITO[b % len(OKABE_ITO)], LINES[b % len(LINES)], MARKERS[f % len(MARKERS)])
        for f, formulation in enumerate(formulations)
        for b, backend in enumerate(backends)
    }
