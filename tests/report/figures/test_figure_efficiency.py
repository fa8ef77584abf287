"""A run beside its baselines: which there are, what is compared, and that bars show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay.report.figures.efficiency import EFFICIENCY, efficiency
from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.wording import value_text
from tests.report.figures.drawn import check_page
from tests.run_records import run_of

HOUR_US = 3_600_000_000
START_US = 5 * HOUR_US


def efficiency_run(samples=40.0, dedicated=80.0, bound=50.0, *, done=None, there=None, earliest=None, source=None):
    """Samples here, on the dedicated nodes and at most; hours until all was done. ``None``: not known."""

    def time_us(hours):
        return None if hours is None else START_US + round(hours * HOUR_US)

    summary = {
        "ledger": {"samples": samples},
        "equivalent_nodes": 12.5,
        "last_finish_us": time_us(done),
        "efficiency": None,
        "bound": None,
    }
    if dedicated is not None:
        u = samples / dedicated if dedicated and source is None else None
        summary["efficiency"] = {"u": u, "dedicated_samples": dedicated, "dedicated_last_finish_us": time_us(there)}
    if bound is not None:
        share = samples / bound if bound else None
        summary["bound"] = {"samples": bound, "kind": "priced", "share": share, "earliest_finish_us": time_us(earliest)}
    inputs = {"jobs": {"source": source}, "events": {"metadata": {}}}
    config = {"window_start_us": START_US, "window_end_us": 1_000 * START_US}
    record = {"config": config, "inputs": inputs, "summary": summary}
    return run_of(record)


def bars_of(found):
    """Words and lengths of the bars, the same on the page."""
    (axes,) = EFFICIENCY.draw(found).axes
    words = [text.get_text() for text in axes.get_yticklabels()]
    lengths = [bar.get_width() for bar in axes.patches]
    figure = check_page(EFFICIENCY.page(found))
    assert [trace["x"][0] for trace in figure.traces] == lengths
    assert [trace["y"][0].replace("<br>", " ") for trace in figure.traces] == words
    return dict(zip(words, lengths, strict=True)), axes.get_xlabel()


def test_samples_are_compared_with_both_baselines():
    found = {"": efficiency(efficiency_run())}
    bars, title = bars_of(found)
    assert bars == {"this run": 40.0, "12.5 dedicated nodes": 80.0, "upper bound": 50.0}
    assert title == "samples in the window"
    assert EFFICIENCY.words(found).startswith(
        "40 samples, U 0.500 against 12.5 dedicated nodes, at least 80 % of the upper bound."
    )


def test_when_all_jobs_are_done_in_both_times_are_compared():
    found = {"": efficiency(efficiency_run(40.0, 40.0, 40.0, done=30, there=24, earliest=20))}
    bars, title = bars_of(found)
    assert bars == {"this run": 30.0, "12.5 dedicated nodes": 24.0, "lower bound": 20.0}
    assert title == "hours until all jobs were done"
    words = EFFICIENCY.words(found)
    assert "U is 1 by construction" in words
    assert words.startswith("All jobs were done after 30 h, on 12.5 dedicated nodes after 24 h, no policy can")


def test_jobs_that_are_done_in_one_of_them_only_leave_samples_to_compare():
    found = {"": efficiency(efficiency_run(40.0, 30.0, 40.0, done=30, there=None, earliest=20))}
    bars, _ = bars_of(found)
    assert bars["12.5 dedicated nodes"] == 30.0
    assert "U 1.33" in EFFICIENCY.words(found)


def test_baselines_that_runs_share_are_shown_once():
    found = {
        "A": efficiency(efficiency_run()),
        "B": efficiency(efficiency_run(45.0)),
        "C": efficiency(efficiency_run(30.0, 60.0)),
    }
    bars, _ = bars_of(found)
    assert bars == {
        "A": 40.0,
        "B": 45.0,
        "C": 30.0,
        "12.5 dedicated nodes (A, B)": 80.0,
        "12.5 dedicated nodes (C)": 60.0,
        "upper bound": 50.0,
    }


def test_what_is_not_known_is_left_out():
    bars, _ = bars_of({"": efficiency(efficiency_run(dedicated=None))})
    assert bars == {"this run": 40.0, "upper bound": 50.0}
    bars, _ = bars_of({"": efficiency(efficiency_run(bound=None))})
    assert bars == {"this run": 40.0, "12.5 dedicated nodes": 80.0}


def test_u_is_undefined_where_the_dedicated_nodes_make_nothing():
    words = EFFICIENCY.words({"": efficiency(efficiency_run(dedicated=0.0))})
    assert "U is undefined, because the same jobs process nothing on 12.5 dedicated nodes" in words
    found = replace(efficiency(efficiency_run()), u=None, equivalent_nodes=0.25)
    words = EFFICIENCY.words({"": found})
    assert "U is undefined, because one dedicated node, more than 0.250, does all the work" in words


def test_the_share_of_the_bound_is_rounded_down():
    assert "at least 79.9 %" in EFFICIENCY.words({"": efficiency(efficiency_run(bound=50.01))})
    assert "at least 80 %" in EFFICIENCY.words({"": efficiency(efficiency_run(bound=50.0))})


def test_the_table_says_no_more_than_the_words():
    table = EFFICIENCY.table({"": efficiency(efficiency_run(bound=50.01))})
    (place,) = (k for k, column in enumerate(table.columns) if column.key == "share")
    assert value_text(table.rows[0][place], table.columns[place].kind) == "79.9 %"


def test_one_dedicated_node_is_told_as_one():
    found = {"": replace(efficiency(efficiency_run()), equivalent_nodes=1.0)}
    assert "U 0.500 against 1 dedicated node," in EFFICIENCY.words(found)
    assert "1 dedicated node" in bars_of(found)[0]


def test_baselines_of_some_runs_name_them_by_their_letters():
    found = {
        f"{letter} (a-run-of-{letter})": efficiency(efficiency_run(dedicated=80.0 + (letter == "B")))
        for letter in "ABC"
    }
    assert "12.5 dedicated nodes (A, C)" in bars_of(found)[0]


def test_a_source_has_no_samples_to_compare_but_times():
    source = {"name": "campaign"}
    with pytest.raises(NothingToShowError, match="samples do not compare"):
        efficiency(efficiency_run(bound=None, source=source))
    found = {"": efficiency(efficiency_run(bound=None, done=30, there=24, source=source))}
    bars, _ = bars_of(found)
    assert bars == {"this run": 30.0, "12.5 dedicated nodes": 24.0}
    assert "where other trials may be pruned" in EFFICIENCY.words(found)
    assert EFFICIENCY.table(found).rows[0][3:5] == [None, None]


def test_a_run_without_baselines_and_one_without_samples_have_nothing_to_show(never_idle_run):
    with pytest.raises(NothingToShowError, match="neither with dedicated nodes nor with an upper bound"):
        efficiency(efficiency_run(dedicated=None, bound=None))
    with pytest.raises(NothingToShowError, match="no sample could be processed"):
        efficiency(never_idle_run)


def test_numbers_of_a_run_are_those_of_its_summary(sample_run, other_run):
    found = {"A": efficiency(sample_run), "B": efficiency(other_run)}
    for run, row in zip((sample_run, other_run), EFFICIENCY.table(found).rows, strict=True):
        summary = run.summary
        assert row[1] == summary["ledger"]["samples"]
        assert row[3:5] == [summary["efficiency"]["dedicated_samples"], run.u]
        assert row[5:7] == [summary["bound"]["samples"], summary["bound"]["share"]]
    bars_of(found)
