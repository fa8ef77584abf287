"""Templates, scripts and style sheet of all pages, which lie beside this module, and the file of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.outputs import is_there, written_whole
from bfreplay.report.figures.marks import DARK, LIGHT

if TYPE_CHECKING:
    from jinja2 import Environment, Template


HERE = Path(__file__).parent
FIRST_ROWS = 50
"""Rows of a long table in the HTML; the script pages through all rows."""

_SCRIPTS = ("unpack", "steps", "tables", "theme", "time_view", "main")
_AFTER_PLOTLY = "figures"
_NO_WINDOW = {"start_ms": None, "duration_s": 0, "shown_s": None, "unit": "seconds", "unit_s": 1}


def template(name: str) -> Template:
    """The template of this name: names that it is not given are errors, texts are escaped."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # not needed but for pages

    return Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def check_report(out: Path | str, *, overwrite: bool) -> Path:
    """Raise the errors of writing a page to ``out``, before any work is done."""
    file = Path(out)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError("the page is an HTML file", file=file, value=file.name, expected="a name ending in .html")
    exists = is_there(file)
    if file.is_dir():
        raise InputError("there is a folder where the report should be", file=file, fix="choose another name")
    if exists and not overwrite:
        raise OutputExistsError(f"{file} exists already; choose another name, or replace it with --force")
    return file


def write_page(text: str, file: Path, *, overwrite: bool) -> Path:
    """Write a page, whose file appears when it is complete, and return the file."""
    with written_whole([file], overwrite) as (part,):
        part.write_text(text, encoding="utf-8")
    return file


def page_parts() -> dict[str, Any]:
    """Values that the templates of all pages need: style sheet and colours."""
    return {
        "light": LIGHT,
        "dark": DARK,
        "style": Markup((HERE / "page.css").read_text(encoding="utf-8")),
        "palettes": json_for_script({"light": LIGHT, "dark": DARK}),
    }


def figure_parts(figures: Mapping[str, Any], window: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Values that templates with figures need besides: scripts, and the packed figure of each section or ``None``.

    ``window`` is described in ``time_view.js``; ``None``: no figure is over time.
    """
    return {
        "first_rows": FIRST_ROWS,
        "plotly": Markup(inside_script(_plotly_script())),
        "scripts": [script(name) for name in _SCRIPTS],
        "last_script": script(_AFTER_PLOTLY),
        "figures": json_for_script({name: figure for name, figure in figures.items() if figure is not None}),
        "window": json_for_script(window or _NO_WINDOW),
    }


def _plotly_script() -> str:
    """Return the script of Plotly, which installation puts here (hatch_build.py); else that of the package plotly."""
    own_script = HERE / "plotly.min.js"
    if own_script.exists():
        return own_script.read_text(encoding="utf-8")
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError("this copy of bfreplay has no plotly.min.js", fix="pip install plotly") from error
    return str(get_plotlyjs())


def json_for_script(document: Any) -> Markup:
    """JSON for a script element, which it cannot end."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def script(name: str) -> Markup:
    """Return a script of the pages by name, without its ending."""
    return Markup(inside_script((HERE / f"{name}.js").read_text(encoding="utf-8")))


def inside_script(text: str) -> str:
    """Escape a script so that its texts do not end its element."""
    return text.replace("</script", "<\\/script")
