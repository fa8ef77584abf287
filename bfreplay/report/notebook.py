"""Runs in a notebook: pictures by name, and a table of key figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

from bfreplay.documents import html_table
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.report.figures.figure import FIGURES, find_figure
from bfreplay.runs.metrics import key_figures
from bfreplay.runs.scheduling_metrics import is_about_scheduling
from bfreplay.wording import value_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_DPI = 100
_SHOWN = (
    "window.duration_s",
    "idle.node_hours",
    "idle.mean_nodes",
    "share.useful",
    "share.rescaling",
    "share.preempted",
    "share.repeated",
    "share.unallocated",
    "u",
    "bound.share",
    "decisions",
    "fallbacks",
)
_OF_SCHEDULING = ("jct.mean_s", "makespan_s", "cost", "rho.mean")
"""Key figures of runs about scheduling."""
_ALWAYS = ("finished",)
"""Statuses shown even with 0 jobs."""


class RunPlots:
    """Pictures of one run: ``run.plot.timeline()``, or ``run.plot("timeline")``; ``dir(run.plot)`` lists them.

    Each returns a ``matplotlib.figure.Figure``, which a notebook shows. A dash in a name is written ``_``.

    Parameters
    ----------
    run
        Read from a folder, or in memory.
    """

    def __init__(self, run: RunResult) -> None:
        self._run = run

    def __call__(self, name: str) -> Figure:
        """Draw the figure of this name.

        Raises
        ------
        NothingToShowError
            The run has no data for it.
        InputError
            No such figure, or the folder of the run is damaged.
        """
        figure = find_figure(name)
        if self._run.folder is not None:
            self._run.check()
        drawing = figure.draw_runs({"": figure.data(self._run)})
        # a notebook shows matplotlib's figures only once pyplot has been imported
        vars(drawing)["_repr_png_"] = partial(_png, drawing)
        return drawing

    def __getattr__(self, name: str) -> Callable[[], Figure]:
        figure = _attributes().get(name)
        if figure is None:
            raise AttributeError(f"there is no figure {name!r}", name=name, obj=self)
        return partial(self, figure)

    def __dir__(self) -> list[str]:
        return list(_attributes())

    def __repr__(self) -> str:
        return f"<pictures of a run: {', '.join(_attributes())}>"


def run_html(run: RunResult) -> str:
    """Key figures of ``run`` with its warnings, as self-contained HTML."""
    facts = key_figures(run)
    keys = [key for key in _SHOWN if key != "share.repeated" or facts[key].value]
    keys += _OF_SCHEDULING if is_about_scheduling(run.record) else ()
    figures = [facts[figure_key] for figure_key in keys if figure_key in facts and facts[figure_key].value is not None]
    jobs = [facts[f"jobs.{status}"] for status in STATUSES if facts[f"jobs.{status}"].value or status in _ALWAYS]
    table_rows = [(fact.words, value_text(fact.value, fact.kind)) for fact in (*figures, *jobs)]
    title_words = (run.record.inputs.events.metadata.cluster, run.record.config.policy_description.name)
    title = ", ".join(filter(None, title_words))
    folder_words = "in memory" if run.folder is None else str(run.folder)
    return html_table(title, table_rows, folder_words, (f"Warning: {warning}" for warning in run.warnings))


def _attributes() -> dict[str, str]:
    """Names of the figures by name of the attribute."""
    return {figure_name.replace("-", "_"): figure_name for figure_name in FIGURES.names()}


def _png(figure: Figure) -> bytes:
    image_bytes = BytesIO()
    figure.savefig(image_bytes, format="png", dpi=_DPI)
    return image_bytes.getvalue()
