"""Arrivals, budgets, retries, scores: each by itself."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import asdict

from bfreplay.campaigns.campaign import Arrival, Budget, Retries
from bfreplay.campaigns.load import campaign_of
from bfreplay.campaigns.parts import Purpose, stream
from bfreplay.campaigns.scores import LearningCurves, ScoreFunction, ScoreRange
from bfreplay.errors import InputError
from tests.campaigns.small_campaigns import HOUR

FILE = Path("campaign.toml")
MANY = Counter(failed=9, finished=9)


def refusal(campaign=(), **tables):
    """The error of a campaign with these keys of [campaign] and these tables."""
    trial = {
        "epochs": 9,
        "samples_per_epoch": 1000,
        "min_nodes": 1,
        "max_nodes": 8,
        "scale_up_cost_s": 20,
        "scale_down_cost_s": 10,
        "curve": "0:0 1:10 8:60",
    }
    with pytest.raises(InputError) as caught:
        campaign_of({"campaign": {"trials": 6, **dict(campaign)}, "trial": trial, **tables}, FILE)
    return caught.value


# random streams


def test_streams_depend_on_seed_purpose_and_keys():
    draws = [
        stream(*key).random()
        for key in [
            (0, Purpose.NOISE, 1),
            (1, Purpose.NOISE, 1),
            (0, Purpose.PACE, 1),
            (0, Purpose.NOISE, 2),
            (0, Purpose.NOISE, 1, 0),
        ]
    ]
    assert len(set(draws)) == 5
    assert stream(0, Purpose.NOISE, 1).random() == draws[0]


def test_numbers_of_purposes_never_change():
    assert [purpose.value for purpose in Purpose] == list(range(8))
    assert stream(0, Purpose.FAILURE, 3, 1).random() == 0.28671243191862994


# arrivals


def test_trials_come_at_once_or_one_after_the_other():
    assert Arrival().after_us(3, 0) == [0, 0, 0]
    assert Arrival("every", every_s=1.5).after_us(3, 0) == [0, 1_500_000, 3_000_000]


def test_a_poisson_process_has_its_rate_and_keeps_its_first_trials():
    after = Arrival("poisson", per_hour=6.0).after_us(4_000, 7)
    assert after == sorted(after)
    assert after[0] > 0
    assert 4_000 / (after[-1] / HOUR) == pytest.approx(6.0, rel=0.05)
    assert Arrival("poisson", per_hour=6.0).after_us(10, 7) == after[:10]
    assert Arrival("poisson", per_hour=6.0).after_us(10, 8) != after[:10]


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"arrival": "every"}, "every_s"),
        ({"arrival": "poisson"}, "per_hour"),
        ({"arrival": "every", "every_s": -1}, "every_s"),
        ({"arrival": "poisson", "per_hour": 0}, "per_hour"),
        ({"every_s": 3}, "every_s"),
        ({"arrival": "every", "every_s": 3, "per_hour": 3}, "per_hour"),
        ({"arrival": "evry", "every_s": 3}, "arrival"),
    ],
)
def test_an_arrival_needs_its_own_number_and_no_other(given, column):
    error = refusal(given)
    assert (error.row, error.column) == ("[campaign]", column)


# budgets


@pytest.mark.parametrize(
    ("budget", "before", "reached"),
    [
        (Budget(node_hours=2), (2 * HOUR - 1, 1e9, HOUR, MANY), (2 * HOUR, 0, 0, Counter())),
        (Budget(samples=5), (HOUR, 4.5, HOUR, MANY), (0, 5.0, 0, Counter())),
        (Budget(hours=3), (HOUR, 1e9, 3 * HOUR - 1, MANY), (0, 0, 3 * HOUR, Counter())),
        (Budget(failed_trials=2), (HOUR, 1e9, HOUR, Counter(failed=1, finished=9)), (0, 0, 0, Counter(failed=2))),
        (Budget(finished_trials=2), (HOUR, 1e9, HOUR, Counter(failed=9, finished=1)), (0, 0, 0, Counter(finished=2))),
    ],
)
def test_a_budget_is_used_up_when_its_limit_is_reached(budget, before, reached):
    assert budget.used_up(*before) is None
    assert budget.used_up(*reached) == next(key for key, value in asdict(budget).items() if value is not None)


def test_only_what_is_known_at_reports_needs_them():
    assert Budget(node_hours=1).needs_every_epoch
    assert Budget(samples=1).needs_every_epoch
    assert not Budget(hours=1, failed_trials=1).needs_every_epoch
    assert Budget(hours=0.5).end_us(7) == 7 + HOUR // 2
    assert Budget().end_us(7) is None


@pytest.mark.parametrize(
    "given", [{"hours": 0}, {"node_hours": -1}, {"samples": float("nan")}, {"failed_trials": 0}, {"hours": "3"}]
)
def test_a_budget_that_is_not_positive_is_refused(given):
    error = refusal({"budget": given})
    assert (error.row, error.column) == ("[campaign.budget]", next(iter(given)))


# retries


def test_crashes_come_at_their_rate_and_depend_on_trial_and_attempt_alone():
    retries = Retries(failures_per_epoch=0.1)
    first = [retries.crash_epoch(0, number, 0, 0) for number in range(2_000)]
    assert np.mean(first) == pytest.approx(10, rel=0.08)
    assert retries.crash_epoch(0, 5, 0, 0) == first[5]
    assert retries.crash_epoch(0, 5, 1, 0) != first[5]
    assert retries.crash_epoch(0, 5, 0, 3) == pytest.approx(first[5] + 3)
    assert Retries().crash_epoch(0, 5, 0, 0) is None


def test_a_retry_goes_on_from_the_last_whole_epoch_or_from_nothing():
    assert Retries(origin="checkpoint").first_epoch(3.9) == 3
    assert Retries(origin="start").first_epoch(3.9) == 0


@pytest.mark.parametrize(
    ("given", "column"),
    [({"failures_per_epoch": -0.1}, "failures_per_epoch"), ({"most": -1}, "most"), ({"from": "begin"}, "from")],
)
def test_retries_out_of_range_are_refused(given, column):
    error = refusal(retries={"failures_per_epoch": 0.1, **given})
    assert (error.row, error.column) == ("[retries]", column)


# scores


class Fixed:
    def __init__(self, quality):
        self.value = quality

    def quality(self, params):
        return self.value


def test_a_learning_curve_goes_from_the_start_to_the_final_score_of_its_quality():
    scores = ScoreRange(start=0.1, worst=0.5, best=0.9, pace=(1.0, 1.0), noise=0.0)
    curve = LearningCurves(scores, 0, Fixed(0.5))  # towards 0.7
    assert [curve.score(0, {}, epoch) for epoch in (0, 1, 5)] == pytest.approx([0.1, 0.4, 0.6])
    assert curve.score(0, {}, 1e9) == pytest.approx(0.7)


def test_a_loss_falls():
    curve = LearningCurves(ScoreRange(2.0, 1.0, 0.0, noise=0.0), 0, Fixed(1.0))
    assert curve.score(0, {}, 0) == 2.0
    assert 2.0 > curve.score(0, {}, 1) > curve.score(0, {}, 5) > 0.0


def test_a_score_depends_on_seed_trial_and_epoch_alone():
    one, other = (LearningCurves(ScoreRange.usual(True), 3) for _ in range(2))
    backwards = [other.score(number, {}, epoch) for number in (4, 2) for epoch in (9, 1)]
    forwards = [one.score(number, {}, epoch) for number in (2, 4) for epoch in (1, 9)]
    assert sorted(forwards) == sorted(backwards)
    assert len(set(forwards)) == 4
    assert LearningCurves(ScoreRange.usual(True), 4).score(2, {}, 1) != forwards[0]


def test_drawn_qualities_spread_from_worst_to_best():
    curves = LearningCurves(ScoreRange(0.0, 0.2, 0.8, pace=(50, 50), noise=0.0), 0)
    finals = [curves.score(number, {}, 100) for number in range(500)]
    assert 0.2 <= min(finals) < 0.21
    assert 0.79 < max(finals) <= 0.8
    assert np.mean(finals) == pytest.approx(0.5, abs=0.02)


def test_noise_has_its_size_and_differs_between_epochs():
    curves = LearningCurves(ScoreRange(0.5, 0.5, 0.5, noise=0.01), 0)
    draws = [curves.score(number, {}, epoch) - 0.5 for number in range(20) for epoch in range(1, 26)]
    assert np.std(draws) == pytest.approx(0.01, rel=0.1)
    assert abs(np.mean(draws)) < 0.002


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"worst": 0.05}, "worst"),
        ({"worst": 0.99}, "worst"),
        ({"best": float("inf")}, "best"),
        ({"pace": [0.0, 1.0]}, "pace"),
        ({"pace": [2.0, 1.0]}, "pace"),
        ({"pace": 1.0}, "pace"),
        ({"noise": -1}, "noise"),
    ],
)
def test_scores_out_of_order_are_refused(given, column):
    error = refusal(scores={"start": 0.1, "worst": 0.5, "best": 0.9, **given})
    assert (error.row, error.column) == ("[scores]", column)
    assert error.fix


def test_a_users_own_score_function_is_asked(tmp_path, monkeypatch):
    (tmp_path / "my_scores.py").write_text(
        "def good(number, params, epoch):\n    return number + epoch * params['rate']\n"
        "def bad(number, params, epoch):\n    return 1 / number\n"
        "def strange(number, params, epoch):\n    return float('nan')\n"
        "nothing = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert ScoreFunction("my_scores:good").score(2, {"rate": 0.5}, 4) == 4.0
    with pytest.raises(InputError, match=r"failed: ZeroDivisionError.*my_scores\.py, line 4") as caught:
        ScoreFunction("my_scores:bad").score(0, {"lr": 0.1}, 1)
    assert caught.value.value == {"number": 0, "params": {"lr": 0.1}, "epoch": 1}
    with pytest.raises(InputError, match="gave nan for a trial"):
        ScoreFunction("my_scores:strange").score(0, {}, 1)
    for location in ("my_scores:nothing", "my_scores:gone", "my_scores", "no_such_module:f"):
        with pytest.raises(InputError) as caught:
            ScoreFunction(location)
        assert caught.value.column == "function"
