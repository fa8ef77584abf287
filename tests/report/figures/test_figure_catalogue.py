"""Every figure of the catalogue obeys what ``RunFigure`` promises, on real runs and on odd ones."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.run_comparison.pairing import labels_of
from bfreplay.report.figures.figure import (
    FIGURES,
    NotForThisRunError,
    NothingToShowError,
    PageFigure,
    RunFigure,
    find_figure,
)
from bfreplay.report.figures.marks import LIGHT
from bfreplay.report.figures.picture_files import FORMATS, save_picture
from bfreplay.runs import RunResult

RUNS = ("sample_run", "all_idle_run", "many_jobs_run", "never_idle_run", "no_jobs_run")
ODD = ("never_idle_run", "no_jobs_run", "all_idle_run")
THE_PAGES_OWN = ("steps", "rows", "holders", "time")


def some(*names, thorough):
    """Names to try, and those of figures that take long, for `make test-all`."""
    return [*names, *(pytest.param(name, marks=pytest.mark.thorough) for name in thorough)]


@pytest.fixture(params=list(FIGURES.built_in))
def figure(request) -> RunFigure[Any]:
    return find_figure(request.param)


@pytest.fixture
def found_in(request, figure):
    """Data of a run that has some, by the fixture's name; other tests skip none but the odd runs."""

    def found(name: str) -> Any:
        run: RunResult = request.getfixturevalue(name)
        try:
            return figure.data(run)
        except NothingToShowError as error:
            if name not in ODD and not isinstance(error, NotForThisRunError):
                raise
            why = error.problem
        assert why
        assert not why.endswith(".")
        return None

    return found


def resolved(document: Any) -> Any:
    """A page's document as Plotly gets it: colours put in, the page's own keys taken out."""
    if isinstance(document, dict):
        return {key: resolved(value) for key, value in document.items() if key not in THE_PAGES_OWN}
    if isinstance(document, list):
        return [resolved(each) for each in document]
    if isinstance(document, str) and document.startswith("@"):
        return LIGHT[document[1:]]
    return document


def check_page(page: PageFigure) -> None:
    from plotly.graph_objects import Figure

    plain = {"data": page.traces, "layout": page.layout}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    Figure(resolved(plain))  # refuses what Plotly does not know
    for trace in page.traces:
        named = [trace["steps"]["series"]] if "steps" in trace else trace.get("rows", [])
        assert set(named) <= set(page.series), "traces show series of the page"
    assert page.traces
    assert page.height > 0


def check_table(figure: RunFigure[Any], found: dict[str, Any]) -> None:
    if figure.table is not None:
        table = figure.table(found)
        keys = [column.key for column in table.columns]
        assert len(set(keys)) == len(keys)
        assert {len(row) for row in table.rows} <= {len(keys)}


@pytest.mark.parametrize("name", RUNS)
def test_a_figure_is_drawn_told_and_put_on_the_page_or_says_why_not(figure, found_in, name):
    data = found_in(name)
    if data is None:
        return
    found = {"": data}
    figure.draw_runs(found)
    check_page(figure.page(found))
    check_table(figure, found)
    words = figure.words(found)
    assert words.endswith(".")
    assert "nan" not in words.lower().split()
    assert "inf" not in words.lower().split()


def test_runs_stand_side_by_side(figure, found_in):
    """Up to six, of different logs as well; their labels are told."""
    found = {label: data for k, label in enumerate("ABCDEF") if (data := found_in(RUNS[k % 3])) is not None}
    if not found:  # a figure of other runs
        return
    figure.draw_runs(found)
    check_page(figure.page(found))
    check_table(figure, found)
    words = figure.words(found)
    assert [label for label in found if not re.search(rf"\b{label}\b", words)] == []


@pytest.mark.often("decision-times", "efficiency")
@pytest.mark.parametrize(
    "figure",
    some(
        "node-hours",
        "jobs",
        "idle-intervals",
        "widths",
        "decision-times",
        "efficiency",
        thorough=("timeline", "rescales"),
    ),
    indirect=True,
)
def test_a_picture_has_the_same_bytes_each_time_and_shows_text_as_it_is(figure, found_in, tmp_path):
    found = {"A (a$\\foo$b)": found_in("sample_run"), "B ($x_1$^_{)": found_in("other_run")}
    for k in range(2):
        drawn = figure.draw_runs(found)
        for ending in FORMATS:
            save_picture(drawn, tmp_path / f"{k}.{ending}")
    for ending in FORMATS:
        assert (tmp_path / f"0.{ending}").read_bytes() == (tmp_path / f"1.{ending}").read_bytes()


@pytest.mark.often("efficiency", "decision-times")
@pytest.mark.parametrize(
    "name",
    some("timeline", "node-hours", "idle-intervals", "widths", "decision-times", "efficiency", thorough=("rescales",)),
)
def test_there_is_room_for_many_runs(name, request):
    """All but the jobs, which are a panel a run."""
    figure = find_figure(name)
    data = [figure.data(request.getfixturevalue(each)) for each in ("sample_run", "all_idle_run")]
    found = {f"{label} (run-{k})": data[k % 2] for k, label in enumerate(labels_of(28))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = figure.draw_runs(found)
    assert all(axes.get_position().height * drawn.get_figheight() > 0.8 for axes in drawn.axes)


def test_names_and_titles_are_as_the_catalogue_has_them():
    for name in FIGURES.built_in:
        figure = find_figure(name)
        assert figure.name == name
        assert figure.title
        assert not figure.title.endswith(".")


def test_figures_of_other_packages_join_by_entry_points(monkeypatch):
    theirs = {
        "mine": "bfreplay.report.figures.timeline:TIMELINE",
        "timeline": "nowhere:NOTHING",  # a built-in name wins
        "broken": "nowhere:NOTHING",
        "other": "bfreplay.report.figures.marks:LIGHT",
    }
    monkeypatch.setattr(
        "bfreplay.registry._entry_points_by_name", lambda group, path: theirs if group == FIGURES.group else {}
    )
    assert FIGURES.names() == [*FIGURES.built_in, "broken", "mine", "other"]
    assert find_figure("mine") is find_figure("timeline")
    with pytest.raises(InputError, match="the figure 'broken' cannot be imported"):
        find_figure("broken")
    with pytest.raises(InputError, match="'other' is no figure, but dict"):
        find_figure("other")


def test_a_figure_may_be_spelled_by_its_place():
    assert find_figure("bfreplay.report.figures.timeline:TIMELINE") is find_figure("timeline")


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="unknown figure 'time-line'") as error:
        find_figure("time-line")
    assert error.value.fix == "did you mean 'timeline'?"
    assert "package.module:FIGURE" in error.value.expected
