"""Best score over time, and trials in parallel coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.best_score import BEST_SCORE, best_score
from bfreplay.report.figures.figure import NotForThisRunError, NothingToShowError
from bfreplay.report.figures.trials import TRIALS, trials
from tests.replay.tiny import SECOND, log
from tests.report.figures.drawn import check_page
from tests.runs.explain.little_source import LittleHalving


class Trials(LittleHalving):
    """Four trials: learning rates over a factor of 1,000, optimisers by name, and one depth."""

    def _trial(self, k, now_us):
        params = {"rate": 10.0 ** (k - 4), "optimiser": ("sgd", "adam")[k % 2], "depth": 2}
        return replace(super()._trial(k, now_us), params=params if k != 2 else params | {"momentum": 0.9})


@pytest.fixture(scope="module")
def run():
    return replay_log(log(4, [], 200, range(4)), Trials(), EqualSharePolicy(), bound=False)


def test_the_best_score_rises_step_by_step(run):
    found = best_score(run)
    scores = run.frame("reports")["score"].dropna()
    assert found.best.mean.tolist() == sorted(set(np.maximum.accumulate(scores)))
    assert (found.job, found.best.mean[-1]) == ("t2", 8.0)
    assert BEST_SCORE.words({"": found}).startswith("The best score, 8, was reached by t2 after 23.8 s")
    check_page(BEST_SCORE.page({"A": found, "B": found}))
    BEST_SCORE.draw({"A": found, "B": found})


def test_a_part_of_the_window_has_the_score_of_then(run):
    found = best_score(run)
    start_us = found.span.start_us
    assert found.between(start_us + 100 * SECOND, start_us + 150 * SECOND).best.mean.tolist() == [8.0]
    with pytest.raises(NothingToShowError, match="no trial had reported"):
        found.between(start_us, start_us + 1)


def test_an_axis_stands_for_each_parameter_that_varies_and_the_score(run):
    found = trials(run)
    assert [each.name for each in found.coordinates] == ["optimiser", "rate", "score"]
    rate = found.coordinates[1]
    assert rate.ticks[0][1] == "0.000100"
    best = found.texts[-1]
    assert best.startswith("t2: score 8<br>")
    assert "momentum 0.9" in best
    assert found.coordinates[-1].height.tolist() == sorted(found.coordinates[-1].height)
    assert {0.0, 1.0} <= set(found.coordinates[-1].height)


def test_numbers_over_a_large_factor_are_on_a_logarithmic_axis(run):
    found = trials(run)
    place = dict(zip((text.partition(":")[0] for text in found.texts), found.coordinates[1].height, strict=True))
    assert place == pytest.approx({f"t{k}": k / 3 for k in (0, 2, 3)}), "t1 crashed without a score"


def test_lines_run_through_all_axes_and_darken_with_the_score(run):
    found = trials(run)
    page = check_page(TRIALS.page({"": found}))
    n = len(found.coordinates)
    assert sum(len(trace["x"]) for trace in page.traces) == len(found.score) * (n + 1)
    assert [trace["line"]["color"] for trace in page.traces] == ["@heat-1", "@heat-2", "@heat-3", "@heat-4"][
        : len(found.score)
    ]
    assert "darkest for the best quarter" in TRIALS.words({"": found})
    TRIALS.draw({"A": found, "B": found})


def test_a_plain_job_set_has_neither(sample_run):
    for data in (best_score, trials):
        with pytest.raises(NotForThisRunError):
            data(sample_run)
