"""What a figure of runs is: its numbers, its picture as a file, its picture on the page, and its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bfreplay.errors import InputError
from bfreplay.registry import Registry, unknown_name
from bfreplay.report.figures.look import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.report.figures.step_series import StepSeries
    from bfreplay.report.shown_values import ShownTable
    from bfreplay.runs.run_result import RunResult

D = TypeVar("D")


class NothingToShowError(InputError):
    """A run holds nothing that this figure shows; the message says why, as a whole sentence."""


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure for the page, drawn there by Plotly.

    Parameters
    ----------
    traces
        Plotly's ``data``, as plain JSON. A colour is written ``"@name"``, a name of ``look.LIGHT``: the page puts in
        that of its theme. Two keys are the page's own:

        - ``"steps": {"series": name, "statistic": "least" | "mean" | "most"}`` on a scatter trace: the page fills
          ``x`` and ``y`` from that series, as fine as the part of the window that is looked at allows.
        - ``"rows": [name, ...]`` on a heat map: the page fills ``x``, ``y`` and ``z``, one row a series, the mean in
          each column.
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
class RunFigure(Generic[D]):
    """One figure of a run, or of several runs side by side.

    Functions but ``data`` take what ``data`` found in each run, by the run's label. A single run is labelled ``""``.
    Several are labelled by letters in their order, ``"A"``, ``"B"``, ..., ``"Z"``, ``"AA"``, perhaps with a name:
    ``"B (run-600)"``. A run looks as its letter says, and keeps it where another run has nothing to show and is left
    out. ``marks.numbered`` refuses other labels.

    Parameters
    ----------
    name
        In ``bfreplay plot NAME RUN``: ``"timeline"``.
    title
        Heading on the page, and of the picture.
    data
        Numbers of one run; raises ``NothingToShowError``.
    draw
        Matplotlib's figure of them.
    page
        The same for the page.
    words
        One or two sentences that tell what there is to see, numbers included, for those who do not see it.
    table
        The numbers as a table; ``None`` where there are too many.
    """

    name: str
    title: str
    data: Callable[[RunResult], D]
    draw: Callable[[Mapping[str, D]], Figure]
    page: Callable[[Mapping[str, D]], PageFigure]
    words: Callable[[Mapping[str, D]], str]
    table: Callable[[Mapping[str, D]], ShownTable] | None = None


FIGURES = Registry(
    kind="figure",
    group="bfreplay.run_figures",
    needs=(),
    built_in={
        "timeline": "bfreplay.report.figures.timeline:TIMELINE",
        "node-hours": "bfreplay.report.figures.node_hours:NODE_HOURS",
        "jobs": "bfreplay.report.figures.job_timeline:JOBS",
        "holes": "bfreplay.report.figures.idle_intervals:HOLES",
        "widths": "bfreplay.report.figures.widths:WIDTHS",
        "rescales": "bfreplay.report.figures.rescales:RESCALES",
        "decision-times": "bfreplay.report.figures.decision_times:DECISION_TIMES",
        "efficiency": "bfreplay.report.figures.efficiency:EFFICIENCY",
    },
)
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
