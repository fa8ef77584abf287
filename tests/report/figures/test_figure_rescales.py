"""Rescales and preemptions by cause: by numbers worked by hand, and against summary and ledger."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.report.figures.rescales import CAUSES, MEASURES, RESCALES, rescales
from bfreplay.runs import RunResult
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.report.figures.drawn import check_page
from tests.run_records import run_of


def rescales_run(factor: int = 1, gross: float = 1_000.0) -> RunResult:
    """A decision for each cause; of cause k 8 - k jobs grow, and what is charged is told apart by its digits."""
    rows = [
        ("pool", 3, 0),
        ("pool", 0, 2),
        ("pool", 1, 1),
        ("arrival", 0, 0),
        ("completion", 0, 0),
        ("round", 0, 0),
        ("completion+round", 0, 0),
        ("window_begin", 0, 0),
    ]
    decisions = pa.table(
        {
            "trigger": pa.array([trigger for trigger, _, _ in rows]).dictionary_encode(),
            "n_joined": [joined for _, joined, _ in rows],
            "n_reclaimed": [left for _, _, left in rows],
            "n_jobs_scaled_up": [factor * (8 - k) for k in range(8)],
            "n_jobs_scaled_down": [1, 0, 0, 0, 0, 0, 0, 0],
            "n_jobs_preempted": [0, 4, 2, 0, 0, 0, 0, 0],
            "rescale_cost_samples": [10.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0],
            "preemption_cost_samples": [0.0, 60.0, 25.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        }
    )
    ledger = {"gross_samples": gross, "rescale_samples": 15.0, "preemption_samples": 75.0}
    return run_of({"summary": {"ledger": ledger}}, {"decisions": decisions})


def test_each_decision_has_the_cause_that_it_followed():
    found = rescales(rescales_run())
    assert found.by_cause["scaled_up"].tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    assert found.by_cause["preempted"].tolist() == [0, 4, 2, 0, 0, 0, 0, 0]
    assert found.share("preemption_cost").tolist() == [0, 0.06, 0.025, 0, 0, 0, 0, 0]
    assert [found.total(name) for name in MEASURES] == [36, 1, 6, 15.0, 85.0]


@pytest.mark.parametrize("which", ["sample_run", "other_run", "all_idle_run", "many_jobs_run"])
def test_totals_are_those_of_the_summary_and_charges_no_less_than_the_ledger_has(which, request):
    run = request.getfixturevalue(which)
    found, summary = rescales(run), run.summary
    counts = [found.total(name) for name in ("scaled_up", "scaled_down", "preempted")]
    assert counts == [summary[name] for name in ("n_scale_ups", "n_scale_downs", "n_preemptions")]
    for name, word in (("rescale_cost", "rescale_samples"), ("preemption_cost", "preemption_samples")):
        assert found.total(name) == pytest.approx(run.decisions[f"{name}_samples"].sum())
        assert found.total(name) >= summary["ledger"][word] * (1 - 1e-9)  # the rest was open at the end


def test_under_the_published_clock_charges_are_what_the_ledger_has():
    jobs = JobSet([job(f"j{k}", work=2e3, up_s=7.0, down_s=3.0) for k in range(3)])
    changes = [(20.0 * k, k % 3, bool((k - 1) // 3 % 2)) for k in range(1, 40)]
    events = log(3, changes, 900, idle_first=[0, 1, 2])
    settings = ReplaySettings(semantics=Semantics.PUBLISHED)
    run = replay_log(events, jobs, EqualSharePolicy(), settings, efficiency=False, bound=False)
    found, ledger = rescales(run), run.summary["ledger"]
    assert found.total("rescale_cost") == pytest.approx(ledger["rescale_samples"])
    assert found.total("preemption_cost") == pytest.approx(ledger["preemption_samples"])
    assert ledger["preemption_samples"] > 0


def test_bars_of_one_run_are_grouped_and_charges_stacked():
    found = {"": rescales(rescales_run())}
    counts, charges = RESCALES.draw(found).axes
    assert [[bar.get_height() for bar in bars] for bars in counts.containers] == [
        [8, 7, 6, 5, 4, 3, 2, 1],
        [1, 0, 0, 0, 0, 0, 0, 0],
        [0, 4, 2, 0, 0, 0, 0, 0],
    ]
    rescaling, preemption = charges.containers
    assert [bar.get_height() for bar in rescaling] == pytest.approx([1, 0, 0, 0.5, 0, 0, 0, 0])
    assert [bar.get_y() for bar in preemption] == pytest.approx([1, 0, 0, 0.5, 0, 0, 0, 0])
    assert [bar.get_height() for bar in preemption] == pytest.approx([0, 6, 2.5, 0, 0, 0, 0, 0])
    assert [text.get_text().replace("\n", " ") for text in charges.get_xticklabels()] == list(CAUSES)


def test_the_page_has_the_same_bars():
    figure = check_page(RESCALES.page({"": rescales(rescales_run())}))
    heights = {trace["name"]: trace["x"] for trace in figure.traces}
    assert heights["rescales up"] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert heights["charged for preemption"] == pytest.approx([0, 6, 2.5, 0, 0, 0, 0, 0])
    assert "60 samples charged for preemption (6 % of the samples made)" in str(figure.traces)


def test_several_runs_have_a_panel_for_each_measure():
    found = {"A": rescales(rescales_run()), "B": rescales(rescales_run(factor=2, gross=500.0))}
    panels = RESCALES.draw(found).axes
    assert [axes.get_ylabel().split(",")[0] for axes in panels] == [
        "rescales up",
        "rescales down",
        "preemptions",
        "charged",
    ]
    first, second = panels[0].containers
    assert [bar.get_height() for bar in second] == [2 * bar.get_height() for bar in first]
    figure = check_page(RESCALES.page(found))
    charged = [trace["x"] for trace in figure.traces[-2:]]
    assert charged[0] == pytest.approx([1, 6, 2.5, 0.5, 0, 0, 0, 0])
    assert charged[1] == pytest.approx([2, 12, 5, 1, 0, 0, 0, 0])
    assert [trace["name"] for trace in figure.traces if trace["showlegend"]] == ["A", "B"]
    assert len(RESCALES.table(found).columns) == 1 + 2 * 5


def test_the_table_ends_with_the_totals():
    table = RESCALES.table({"": rescales(rescales_run())})
    assert [row[0] for row in table.rows] == [*CAUSES, "all"]
    assert table.rows[1] == ["nodes were reclaimed", 7, 0, 4, 0.0, 0.0, 60.0, 0.06]
    assert table.rows[-1] == ["all", 36, 1, 6, 15.0, 0.015, 85.0, 0.085]


def test_words_are_worked_by_hand():
    assert RESCALES.words({"": rescales(rescales_run())}) == (
        "36 rescales up, 1 down, 6 preemptions; jobs were charged 1.50 % of the samples made for rescaling and 8.50 % "
        "for preemption, 60 % of that when nodes were reclaimed; 10 % of the charges had not been worked off when "
        "the job left or the window ended."
    )


def test_a_run_without_a_rescale_has_nothing_to_show(never_idle_run):
    with pytest.raises(NothingToShowError, match="no rescales"):
        rescales(never_idle_run)
