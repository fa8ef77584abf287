"""The figures of a run, in the order of the page. A new one is a module beside this, and a line here."""

from __future__ import annotations

from typing import Any

from bfreplay.errors import InputError
from bfreplay.registry import Registry, unknown_name
from bfreplay.report.run_figures.figure import RunFigure

FIGURES = Registry(
    kind="figure",
    group="bfreplay.run_figures",
    needs=(),
    built_in={
        "timeline": "bfreplay.report.run_figures.timeline:TIMELINE",
        "node-hours": "bfreplay.report.run_figures.node_hours:NODE_HOURS",
        "jobs": "bfreplay.report.run_figures.job_timeline:JOBS",
        "holes": "bfreplay.report.run_figures.holes:HOLES",
        "widths": "bfreplay.report.run_figures.widths:WIDTHS",
        "rescales": "bfreplay.report.run_figures.rescales:RESCALES",
        "decision-times": "bfreplay.report.run_figures.decision_times:DECISION_TIMES",
        "efficiency": "bfreplay.report.run_figures.efficiency:EFFICIENCY",
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
            expected="a bfreplay.report.run_figures.figure.RunFigure",
        )  # fmt: skip
    return found
