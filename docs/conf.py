"""How the documentation site is built: ``make docs``, without a network, warnings being errors."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    import click
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the package beside these pages, installed or not

from bfreplay import __version__

project = "bfreplay"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
exclude_patterns = ["_build"]
smartquotes = False  # they make one dash of the two of an option

nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages: their documentation is not looked up in a network

myst_heading_anchors = 4
# pages of other folders that the site has too, each by a page that includes it
PAGES_OF_OTHER_FOLDERS = {"../benchmarks/RESULTS.md": "benchmarks.md", "../CHANGELOG.md": "changelog.md"}

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}  # not all that it stands for
python_use_unqualified_type_names = True
add_module_names = False
napoleon_google_docstring = False
napoleon_use_rtype = False

man_pages = [
    ("command-line", "bfreplay", "replay batch-scheduler logs into an allocator of elastic training jobs", "", 1)
]

html_theme = "furo"
html_title = f"bfreplay {release}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

# what reStructuredText would take for markup in a text for people
_MARKUP = re.compile(r"([\\*`|_<>:])")
_METRICS = "<!-- metrics -->"
_PAGE = re.compile(r"docs/([\w-]+)\.md")


def setup(app: Sphinx) -> None:
    """Connect what is below."""
    app.connect("source-read", link_to_pages_of_the_site)
    app.connect("source-read", list_metrics)
    app.connect("source-read", list_columns)
    app.connect("sphinx-click-process-description", describe_command)
    app.connect("sphinx-click-process-options", describe_options)
    app.connect("doctree-read", name_commands_in_full, priority=100)  # before the tables of contents are made
    app.connect("doctree-read", set_dashes)


def link_to_pages_of_the_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links to files outside this folder to their pages of the site; on code hosts they lead to the files."""
    up = "../" * page.count("/")
    for file, of_site in PAGES_OF_OTHER_FOLDERS.items():
        source[0] = source[0].replace(f"]({up}{file}", f"]({up}{of_site}")


def list_metrics(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the table of metrics with a column, as the package declares them."""
    if _METRICS in source[0]:
        from bfreplay.runs.headline_metrics import COLUMNS

        rows = [f"| `{name}` | {metric.words_for()} |" for name, metric in COLUMNS.items()]
        source[0] = source[0].replace(_METRICS, "\n".join(["| column | meaning |", "|---|---|", *rows]))


def list_columns(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the columns of the tables of a run, as the package declares them."""
    from bfreplay.replay import pool_tables, tables
    from bfreplay.runs.batch_delays import BATCH_DELAY_COLUMNS

    columns_of = {
        "decisions": tables.DECISION_COLUMNS,
        "jobs": tables.JOB_COLUMNS,
        "reports": tables.REPORT_COLUMNS,
        "losses": tables.LOSS_COLUMNS,
        "pool": pool_tables.POOL_COLUMNS,
        "idle_intervals": pool_tables.IDLE_INTERVAL_COLUMNS,
        "batch_delays": BATCH_DELAY_COLUMNS,
    }
    for table, columns in columns_of.items():
        rows = [f"| `{column.name}` | {column.meaning} |" for column in columns]
        text = "\n".join(["| column | meaning |", "|---|---|", *rows])
        source[0] = source[0].replace(f"<!-- columns of {table} -->", text)


def describe_command(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    r"""Write a command's help as reStructuredText: paragraphs, and those that begin with ``\b`` as they stand."""
    lines.clear()
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(context.command.help or "")):
        if paragraph.startswith("\b\n"):
            heading, colon, rest = paragraph[2:].partition(":\n")
            if colon and "\n" not in heading:
                lines += [f"{_plain(heading, app)}:", ""]
            shown = inspect.cleandoc("\n" + (rest if colon and "\n" not in heading else paragraph[2:]))
            lines += [".. code-block:: text", "", *(f"    {line}" for line in shown.splitlines()), ""]
        else:
            lines += [_plain(" ".join(paragraph.split()), app), ""]


def describe_options(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Write the options as ``--help`` has them, defaults and ranges included, under its headings."""
    lines.clear()
    context.show_default = True  # as cli.py has it for all commands
    options = [option for option in context.command.params if option.param_type_name == "option"]
    headings = [panel.name for panel in context.command.panels] + [option.panel for option in options]
    for heading in dict.fromkeys(headings):
        lines += ["", f"**{heading}**", ""] if heading is not None else []
        for option in options:
            record = option.get_help_record(context)
            if record is not None and option.panel == heading:
                lines += [f".. option:: {record[0]}", "", f"    {_plain(' '.join(record[1].split()), app)}", ""]


def name_commands_in_full(app: Sphinx, doctree: nodes.document) -> None:
    """Head each command's section by all its words: ``bfreplay compare runs``."""
    if app.env.docname == "command-line":
        for section in doctree.findall(nodes.section):
            name = section["names"][0] if section["names"] else ""
            if name.startswith("bfreplay "):
                section[0] = nodes.title("", name)


def set_dashes(app: Sphinx, doctree: nodes.document) -> None:
    """Make a dash of what autodoc writes between a parameter and its description."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def _plain(text: str, app: Sphinx) -> str:
    """Text for people as reStructuredText, with links where it names a page; a man page has no others to link to."""
    plain = _MARKUP.sub(r"\\\1", text)
    return plain if app.builder.name == "man" else _PAGE.sub(r":doc:`\1`", plain)
