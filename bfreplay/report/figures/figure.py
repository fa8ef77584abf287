"""Definition of a figure (data, drawing, page, words, table) and the catalogue of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bfreplay.errors import InputError
from bfreplay.registry import Registry, built_in, unknown_name
from bfreplay.report.figures.axes import fix_layout
from bfreplay.report.figures.marks import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from bfreplay.runs.step_functions import StepSeries
    from bfreplay.wording import ShownTable

D = TypeVar("D")
F = TypeVar("F")


class NothingToShowError(InputError):
    """The run has no data for this figure; the message gives the reason as a sentence."""


class NotForThisRunError(NothingToShowError):
    """The figure is for other kinds of runs; pages omit it."""


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
    """One figure.

    Parameters
    ----------
    name
        Unique among the figures of one source: argument of the command, name of its files, anchor on the page.
    title
        Heading on the page, and of the picture.
    data
        Returns the data of a saved result, or of a log; raises ``NothingToShowError``.
    draw
        Returns the matplotlib figure.
    page
        Returns the figure for the page; ``None`` for a figure that is not on the page.
    words
        Returns one or two sentences with the numbers, for readers who do not see the picture.
    table
        Returns the numbers as a table; ``None`` for too many.
    """

    name: str
    title: str
    data: Callable[..., Any]
    draw: Callable[[F], Drawing]
    page: Callable[[F], PageFigure] | None = None
    words: Callable[[F], str] | None = None
    table: Callable[[F], ShownTable] | None = None

    def draw_from(self, *source: object) -> Drawing:
        """Draw the data of a source."""
        return self.draw(self.data(*source))


@dataclass(frozen=True, slots=True)
class RunFigure(Figure[Mapping[str, D]], Generic[D]):
    """A figure of one run, or of several runs side by side.

    Functions but ``data``, which takes a ``RunResult``, take what ``data`` found in each run, by the run's label. A
    single run is labelled ``""``. Several are labelled by letters in their order, ``"A"``, ``"B"``, ..., ``"Z"``,
    ``"AA"``, perhaps with a name: ``"B (run-600)"``. The look of a run depends on its letter only.
    ``marks.by_run`` refuses other labels.
    """

    def draw_runs(self, by_label: Mapping[str, D]) -> Drawing:
        """Draw the data of runs, with texts shown literally and the layout fixed."""
        return fix_layout(self.draw(by_label))


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
    "finish": (f"{_HERE}.finish:FINISH",),
    "rules": (f"{_HERE}.rules:RULES",),
    "sweep": (f"{_HERE}.sweep_picture:SWEEP",),
}
"""Figures of other results of commands, by kind of result."""
_FORM = "package.module:FIGURE"


def find_figure(figure_name: str) -> RunFigure[Any]:
    """Return the figure of this name, or the one at ``package.module:FIGURE``.

    Raises
    ------
    InputError
        No such figure, or it cannot be imported, or is not a ``RunFigure``.
    """
    if ":" not in figure_name and figure_name not in FIGURES.names():
        raise unknown_name(FIGURES.kind, figure_name, FIGURES.names(), _FORM)
    figure = FIGURES.find(figure_name, _FORM, allow_code=True)
    if not isinstance(figure, RunFigure):
        raise InputError(
            f"{figure_name!r} is no figure, but {type(figure).__name__}",
            value=FIGURES.location(figure_name),
            expected="a bfreplay.report.figures.figure.RunFigure",
        )
    return figure


def figures_of(result_kind: str) -> list[Figure[Any]]:
    """Figures of a ``"log"``, or of another of ``OTHER_FIGURES``."""
    return [built_in(location) for location in OTHER_FIGURES[result_kind]]


def as_they_are(source: F) -> F:
    """Return ``source`` unchanged: ``data`` of a figure that needs no preparation."""
    return source
