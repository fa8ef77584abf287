"""What every figure on the page has to be: something that Plotly takes, in colours that both themes have."""

from __future__ import annotations

import json
from typing import Any

from bfreplay.report.figures.figure import PageFigure
from bfreplay.report.figures.marks import DARK, LIGHT

_OF_THE_PAGE = ("steps", "rows", "holders", "time")


def check_page(figure: PageFigure) -> PageFigure:
    """Make sure that a figure is plain JSON that Plotly takes, in both themes, and return it."""
    import plotly.graph_objects as go

    document = json.loads(json.dumps({"data": figure.traces, "layout": figure.layout}, allow_nan=False))
    for theme in (LIGHT, DARK):
        go.Figure(_coloured(document, theme))
    for trace in figure.traces:
        assert "steps" not in trace or trace["steps"]["series"] in figure.series
    return figure


def _coloured(part: Any, theme: dict[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _coloured(value, theme) for key, value in part.items() if key not in _OF_THE_PAGE}
    if isinstance(part, list):
        return [_coloured(each, theme) for each in part]
    return theme[part[1:]] if isinstance(part, str) and part.startswith("@") else part
