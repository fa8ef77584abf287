"""Headline figures of the page: cards, and the table of key figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bfreplay.report.page.sections import Cell, PageTable
from bfreplay.report.page.templates import template
from bfreplay.runs.metric import KeyFigure, exact, number, show, show_count
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of, is_about_scheduling
from bfreplay.wording import Column, value_text

_MOST = 4
_COMPARED = {
    "node_hours.useful": ("Training gained, node-hours", True),
    "best.score": ("Best score", True),
    "done_s": ("All jobs done after", False),
    "u": ("Efficiency U", True),
    "samples": ("Samples processed", True),
    "jct.mean_s": ("Mean completion time", False),
    "share.overhead": ("Rescaling and preemption", False),
    "utilisation": ("Utilisation", True),
}
"""Title of a card about several runs by key figure, and True if more is better."""
_OF_SEARCHES = {
    "done_s": ("Search finished after", False),
    "best.score": ("Best score", True),
    "node_hours.held": ("Node-hours held", False),
    "share.overhead": ("Rescaling and preemption", False),
}
"""The same of several searches: more samples or node-hours are no merit there."""
_OF_ANY_JOBS = ("node_hours.useful", "utilisation", "share.overhead")
"""Figures that compare even if jobs differ."""


@dataclass(frozen=True, slots=True)
class Card:
    """A number with its title, and a line of words below."""

    title: str
    value: Markup
    words: Markup


def run_cards(run_result: RunResult, facts: Mapping[str, KeyFigure]) -> list[Card]:
    """Return the cards of one run: gain, time or efficiency beside dedicated nodes, jobs, and cost."""
    cards: list[Card] = []

    def card(title: str, value: Markup, caller: Callable[[], Markup]) -> str:
        cards.append(Card(title, Markup(value), Markup(caller().strip())))
        return ""

    template("cards.html.j2").render(
        {function.__name__: function for function in (card, show_count, is_about_scheduling, show)},
        run=run_result,
        facts=facts,
        is_cluster=cluster_of(run_result.record) is not None,
        is_short=first_view_end_s([run_result]) is not None,
    )
    return cards


def comparison_cards(runs: Mapping[str, RunResult], facts: Mapping[str, Mapping[str, KeyFigure]]) -> list[Card]:
    """The best run of each number that differs, and the number of every run; at most four."""
    return [*_best_of_each(runs, facts)][:_MOST]


def _best_of_each(runs: Mapping[str, RunResult], facts: Mapping[str, Mapping[str, KeyFigure]]) -> Iterator[Card]:
    titles = _COMPARED if have_same_jobs([*runs.values()]) else {key: _COMPARED[key] for key in _OF_ANY_JOBS}
    if all(run.record.inputs.jobs.of_source for run in runs.values()):
        titles = _OF_SEARCHES
    for key, (title, more_is_better) in titles.items():
        of_run = {label: figures[key] for label, figures in facts.items() if figures[key].value is not None}
        texts = {value_text(fact.value, fact.kind) for fact in of_run.values()}
        if len(of_run) < max(2, len(facts)) or len(texts) == 1:
            continue
        if key == "best.score":
            more_is_better = next(iter(runs.values())).record.inputs.jobs.higher_is_better is not False
        best = (max if more_is_better else min)(of_run, key=lambda label: of_run[label].value)
        each_run = (Markup("{} {}").format(label, show(fact)) for label, fact in of_run.items() if label != best)
        yield Card(title, Markup("{} <small>{}</small>").format(show(of_run[best]), best), Markup(", ").join(each_run))


def have_same_jobs(runs: Sequence[RunResult]) -> bool:
    """Return whether all runs have the same jobs with the same work, or the same job source."""
    sources = [run.record.inputs.jobs.source for run in runs]
    if sources[0] is not None:
        return all(source == sources[0] for source in sources)
    jobs = [run.table("jobs").select(["job", "work_samples"]).to_pylist() for run in runs]
    return all(jobs_of_run == jobs[0] for jobs_of_run in jobs)


def warnings_card(n_warnings: int) -> Card:
    """Return the number of warnings and notes of the page, with a link to them."""
    words = Markup('<a href="#cautions-title">listed below</a>') if n_warnings else Markup("to be given")
    return Card("Warnings and notes", number("warnings", n_warnings, "count"), words)


def first_view_end_s(runs: Sequence[RunResult]) -> float | None:
    """Seconds of the window shown first in pictures over time: a search, or jobs all done before half of it.

    ``None`` for the whole window.
    """
    finish_s = [run.record.config.after_s(run.summary.last_finish_us) for run in runs]
    if None in finish_s:
        return None
    longest_s = 1.05 * max(time_s or 0.0 for time_s in finish_s)
    is_search = any(run.record.inputs.jobs.of_source for run in runs)
    return longest_s if 0 < longest_s < runs[0].summary.duration_s * (1.0 if is_search else 0.5) else None


_FIRST = (
    "nodes",
    "idle.node_hours",
    "idle.mean_nodes",
    "node_hours.useful",
    "share.useful",
    "utilisation",
    "samples",
    "u",
    "bound.share",
    "done_s",
    "dedicated.done_s",
    "bound.done_s",
    "jobs",
    "jobs.finished",
    "best.score",
    "jct.mean_s",
    "submit_to_start.median_s",
    "node_hours.rescaling",
    "node_hours.preempted",
    "preemptions",
    "decisions",
)
_A_DOZEN = 12


def _is_hidden_at_zero(key: str) -> bool:
    return key.startswith("jobs.") or key.endswith(".repeated")


def key_figure_tables(facts: Mapping[str, Mapping[str, KeyFigure]]) -> list[PageTable]:
    """Key figures of the runs, a column a run: first those that matter most, or that differ."""
    first = next(iter(facts.values()))
    columns = (Column("what", "key figure"), *(Column(label or "value", label or "value", "number") for label in facts))
    rows = {
        key: [
            Cell(key, fact.words),
            *(Cell(exact(figures[key].value), value_text(figures[key].value, fact.kind)) for figures in facts.values()),
        ]
        for key, fact in first.items()
        # there is a number, and it is not that of a status which no job has, or of work that no job lost
        if any(fact[key].value not in ((None, 0) if _is_hidden_at_zero(key) else (None,)) for fact in facts.values())
    }
    differ = [key for key, row in rows.items() if len({cell.text for cell in row[1:]}) > 1]
    # where all work is done, only times tell policies apart
    no_matter = (
        {"u", "bound.share"} if all(fact["bound.done_s"].value is not None for fact in facts.values()) else set()
    )
    first_keys = [key for key in _FIRST if key not in no_matter]
    order = [*(key for key in first_keys if key in differ), *differ, *(key for key in first_keys if key in rows)]
    first_rows = [*dict.fromkeys(order)][:_A_DOZEN]
    rest = [row for key, row in rows.items() if key not in first_rows]
    return [
        PageTable("Key figures", columns, [row for key, row in rows.items() if key in first_rows], None),
        PageTable("Other figures", columns, rest, None),
    ]
