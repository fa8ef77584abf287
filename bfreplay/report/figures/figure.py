"""What a figure is: its numbers, its picture as a file, its picture on the page, and its words; and which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bfreplay.errors import InputError
from bfreplay.registry import Registry, built_in, unknown_name
from bfreplay.report.figures.marks import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from bfreplay.report.figures.over_time import StepSeries
    from bfreplay.report.shown_values import ShownTable

D = TypeVar("D")
F = TypeVar("F")


class NothingToShowError(InputError):
    """A run holds nothing that this figure shows; the message says why, as a whole sentence."""


class NotForThisRunError(NothingToShowError):
    """The figure is of other kinds of runs, so that the page leaves it out."""


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure for the page, drawn there by Plotly.

    Parameters
    ----------
    traces
        Plotly's ``data``, as plain JSON. A colour is written ``"@name"``, a name of ``look.LIGHT``: the page puts in
        that of its theme. Three keys are the page's own:

        - ``"steps": {"series": name, "statistic": "least" | "mean" | "most"}`` on a scatter trace: the page fills
          ``x`` and ``y`` from that series, as fine as the part of the window that is looked at allows.
        - ``"rows": [name, ...]`` on a heat map: the page fills ``x``, ``y`` and ``z``, one row a series, the mean in
          each column.
        - ``"holders": [name, ...]`` beside ``rows``: heights of the series are numbers of these names, from 1 on, and
          the page fills in the one of the longest time in each column, by colour and by name.
    layout
        Plotly's ``layout``, colours likewise. Axes of time have ``"time": True``, and the page sets their type, range
        and ticks; figures with such an axis zoom together.
    series
        Step functions by name.
    height
        Pixels.
    """

    traces: list[Trace]
    layout: Trace
    series: Mapping[str, StepSeries] = field(default_factory=dict)
    height: int = 340


@dataclass(frozen=True, slots=True)
class Figure(Generic[F]):
    """One figure, of whatever it shows.

    Parameters
    ----------
    name
        Its own among the figures of one thing: what a user types, the name of its files, its place on the page.
    title
        Heading on the page, and of the picture.
    data
        Numbers of a saved result, or of a log; raises ``NothingToShowError``.
    draw
        Matplotlib's figure of them.
    page
        The same for the page; ``None`` where it is not on the page.
    words
        One or two sentences that tell what there is to see, numbers included, for those who do not see it.
    table
        The numbers as a table; ``None`` where there are too many.
    """

    name: str
    title: str
    data: Callable[..., Any]
    draw: Callable[[F], Drawing]
    page: Callable[[F], PageFigure] | None = None
    words: Callable[[F], str] | None = None
    table: Callable[[F], ShownTable] | None = None

    def drawn(self, *source: object) -> Drawing:
        """Draw what ``data`` takes from a source."""
        return self.draw(self.data(*source))


@dataclass(frozen=True, slots=True)
class RunFigure(Figure[Mapping[str, D]], Generic[D]):
    """A figure of one run, or of several runs side by side.

    Functions but ``data``, which takes a ``RunResult``, take what ``data`` found in each run, by the run's label. A
    single run is labelled ``""``. Several are labelled by letters in their order, ``"A"``, ``"B"``, ..., ``"Z"``,
    ``"AA"``, perhaps with a name: ``"B (run-600)"``. A run looks as its letter says, and keeps it where another run has
    nothing to show and is left out. ``marks.numbered`` refuses other labels.
    """


_HERE = "bfreplay.report.figures"
FIGURES = Registry(
    kind="figure",
    group="bfreplay.run_figures",
    needs=(),
    built_in={
        "best-score": f"{_HERE}.best_score:BEST_SCORE",
        "trials": f"{_HERE}.trials:TRIALS",
        "timeline": f"{_HERE}.timeline:TIMELINE",
        "node-hours": f"{_HERE}.node_hours:NODE_HOURS",
        "jobs": f"{_HERE}.job_timeline:JOBS",
        "nodes": f"{_HERE}.node_gantt:NODES",
        "idle-intervals": f"{_HERE}.idle_intervals:IDLE_INTERVALS",
        "widths": f"{_HERE}.widths:WIDTHS",
        "rescales": f"{_HERE}.rescales:RESCALES",
        "decision-times": f"{_HERE}.decision_times:DECISION_TIMES",
        "efficiency": f"{_HERE}.efficiency:EFFICIENCY",
    },
)
"""Figures of runs, by the names in ``bfreplay plot NAME RUN``; in the order of the page."""
OTHER_FIGURES: Mapping[str, tuple[str, ...]] = {
    "log": tuple(
        f"{_HERE}.idleness:{name}" for name in ("IDLE_OVER_TIME", "HOUR_AND_WEEKDAY", "LENGTHS", "WIDTHS", "BURSTS")
    ),
    "comparison": (f"{_HERE}.run_comparison:DIFFERENCES_OVER_TIME", f"{_HERE}.run_comparison:CAUSES"),
    "lab": tuple(f"{_HERE}.formulation_lab:{name}" for name in ("PROFILE", "TIME_BY_SIZE", "OUTCOME_BARS")),
    "tuning": (f"{_HERE}.tuning:TUNING",),
    "sweep": (f"{_HERE}.sweep_picture:SWEEP",),
}
"""Figures of all else that commands make, which draw them all, by what they are of."""
_FORM = "package.module:FIGURE"


def figure_named(name: str) -> RunFigure[Any]:
    """Return the figure of this name, or the one that stands at ``package.module:FIGURE``.

    Raises
    ------
    InputError
        There is none, or it cannot be imported, or is something else.
    """
    if ":" not in name and name not in FIGURES.names():
        raise unknown_name(FIGURES.kind, name, FIGURES.names(), _FORM)
    found = FIGURES.find(name, _FORM, allow_code=True)
    if not isinstance(found, RunFigure):
        raise InputError(
            f"the figure {name!r} is none: it is {type(found).__name__}", value=FIGURES.location(name),
            expected="a bfreplay.report.figures.figure.RunFigure",
        )  # fmt: skip
    return found


def figures_of(what: str) -> list[Figure[Any]]:
    """Figures of a ``"log"``, or of another of ``OTHER_FIGURES``."""
    return [built_in(location) for location in OTHER_FIGURES[what]]


def as_they_are(source: F) -> F:
    """``data`` of a figure of numbers that need nothing done to them."""
    return source
