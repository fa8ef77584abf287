"""How long decisions took and what stands behind them: by numbers worked by hand, and against the summary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.report.figures.decision_times import DECISION_TIMES, POINTS, decision_times
from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.runs import RunResult
from bfreplay.runs.summary_text import DECISION_WORDS
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.report.figures.drawn import check_page
from tests.run_records import run_of

BEHIND = (  # solver's status, of the process, of the answer, what was rejected; what that counts as
    ("optimal", "ok", "proven", None, "proven"),
    ("optimal", "ok", "proven", "choices on cbc", "proven_by_fallback"),
    ("feasible", "ok", "feasible", None, "feasible"),
    (None, "ok", "feasible", None, "unproven_by_design"),
    (None, "not_needed", "proven", None, "proven_trivially"),
    (None, "not_needed", "feasible", None, "not_asked"),
    ("error", "crashed", "none", None, "none"),
)


def times_run(decide_s, behind=None, fallbacks=None) -> RunResult:
    """Decisions that took so long, proven optimal unless told otherwise."""
    rows = behind or [BEHIND[0]] * len(decide_s)
    decisions = {
        name: pa.array([row[k] for row in rows], pa.string()).dictionary_encode()
        for k, name in enumerate(("solver_status", "process_status", "quality", "fell_back_from"))
    }
    tables = {"timings": pa.table({"decide_s": pa.array(decide_s, pa.float64())}), "decisions": pa.table(decisions)}
    return run_of({"summary": {"fallbacks": fallbacks or {}}}, tables)


def test_quantiles_are_measured_times_and_zeros_are_counted_apart():
    found = decision_times(times_run([0.0, *(k / 1e3 for k in range(100, 0, -1)), 0.0]))
    assert found.decide_s[[0, -1]].tolist() == [0.001, 0.1]
    assert found.n_not_asked == 2
    (row, total) = DECISION_TIMES.table({"": found}).rows
    assert row[:4] == ["proven optimal", 102, 1.0, 2]
    assert row[4:] == pytest.approx([50.0, 95.0, 99.0, 100.0])
    assert total[1:] == row[1:]


def test_each_decision_counts_as_what_stands_behind_it():
    run = times_run([0.5, 4.0, 0.25, 0.125, 0.0, 0.0, 2.0], BEHIND)
    found = decision_times(run)
    kinds = {kind: (times.tolist(), n) for kind, (times, n) in found.by_kind.items()}
    assert kinds == {
        "proven": ([0.5], 0),
        "proven_by_fallback": ([4.0], 0),
        "feasible": ([0.25], 0),
        "unproven_by_design": ([0.125], 0),
        "proven_trivially": ([], 1),
        "not_asked": ([], 1),
        "none": ([2.0], 0),
    }


@pytest.mark.parametrize("which", ["sample_run", "other_run", "all_idle_run", "many_jobs_run"])
def test_counts_and_the_slowest_are_those_of_summary_and_session(which, request):
    run = request.getfixturevalue(which)
    found = decision_times(run)
    assert {kind: times.size + n for kind, (times, n) in found.by_kind.items()} == run.summary["decisions"]
    assert found.decide_s[-1] == run.session["slowest_decision"]["decide_s"]
    assert found.decide_s.sum() == pytest.approx(run.session["seconds"]["decide_s"])


def test_the_first_map_of_the_published_clock_is_a_rule_that_nobody_asked_for():
    settings = ReplaySettings(semantics=Semantics.PUBLISHED)
    events = log(2, [(10, 1, True), (20, 1, False)], 60, idle_first=[0])
    run = replay_log(events, JobSet([job()]), EqualSharePolicy(), settings, efficiency=False, bound=False)
    found = decision_times(run)
    assert {kind: times.size + n for kind, (times, n) in found.by_kind.items()} == run.summary["decisions"]
    assert found.n_not_asked == 1


def test_fallbacks_are_told_by_reason():
    run = times_run([0.5, 0.25], fallbacks={"timed_out": 1})
    rows = DECISION_TIMES.table({"": decision_times(run)}).rows
    assert rows[-1][:3] == ["of them fell back: timed out", 1, 0.5]


def test_curves_are_exact_at_their_points_and_end_at_all():
    rng = np.random.default_rng(7)
    decide_s = rng.lognormal(-8.0, 1.0, 3_000)
    figure = check_page(DECISION_TIMES.page({"": decision_times(times_run(decide_s))}))
    curve, points = figure.traces
    assert len(curve["x"]) == POINTS
    for x, y in zip(curve["x"], curve["y"], strict=True):
        assert y == pytest.approx(100 * (decide_s <= x).mean())
    assert curve["y"][-1] == 100.0
    assert points["x"][-1] == decide_s.max()
    assert (decide_s <= points["x"][1]).mean() >= 0.95 > (decide_s < points["x"][1]).mean()


def test_several_runs_are_drawn_as_lines_that_differ_without_colour():
    found = {"A": decision_times(times_run([0.001, 0.002])), "B": decision_times(times_run([0.004, 0.5, 0.5]))}
    (axes,) = DECISION_TIMES.draw(found).axes
    curves = axes.lines[::2]
    assert [line.get_xdata()[-1] for line in curves] == [0.002, 0.5]
    assert curves[0].get_linestyle() != curves[1].get_linestyle()
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == ["A", "B"]
    assert "1 ms" in [text.get_text() for text in axes.get_xticklabels()]
    table = DECISION_TIMES.table(found)
    assert [row[1] for row in table.rows] == ["A", "A", "B", "B"]


def test_words_say_that_times_are_measurements():
    words = DECISION_TIMES.words({"": decision_times(times_run([0.0, 0.001, 0.002, 2.0]))})
    assert words.startswith(
        "3 decisions: median 2 ms, 95 % within 2 s, 99 % within 2 s, the slowest 2 s; 1 more time the "
        "policy was not asked."
    )
    assert "measurements" in words


def test_every_kind_of_the_summary_has_words(sample_run, many_jobs_run):
    for run in (sample_run, many_jobs_run):
        assert set(run.summary["decisions"]) <= set(DECISION_WORDS)


def test_a_run_that_asked_nobody_has_nothing_to_show(never_idle_run):
    with pytest.raises(NothingToShowError, match="nothing was decided"):
        decision_times(never_idle_run)


def test_tables_that_do_not_fit_are_refused():
    run = times_run([0.5, 0.25])
    run.tables["timings"] = run.tables["timings"].slice(1)
    with pytest.raises(InputError, match="do not have the same decisions"):
        decision_times(run)
