"""The answer in words."""

import msgspec
import pytest

from bfreplay.experiments.finish_text import answer_of, cautions, notes
from bfreplay.result_folders.comparison import Estimate
from bfreplay.result_folders.finish import (
    AT_MOST,
    EXACT,
    MORE,
    Against,
    Dedicated,
    FinishConfig,
    FinishInputs,
    FinishRecord,
    Quantiles,
    Start,
    Worth,
)
from bfreplay.result_folders.tuning import InputFile

HOUR = 3600.0


def record(quartiles=(31, 36, 44), *, n_open=0, worth=(EXACT, 14), asked=32, is_search=True, days=14, zone="UTC"):
    low, middle, high = (None if each is None else each * HOUR for each in quartiles)
    starts = [Start(time="t", time_us=0, duration_s=50 * HOUR, is_done=k >= n_open, run=f"r{k}") for k in range(48)]
    return FinishRecord(
        schema_version=1,
        versions={},
        config=FinishConfig(options={}, dedicated=asked, starts=48, seed=0, time_zone=zone),
        inputs=FinishInputs(
            events=[], window_us=(0, round(days * 24 * HOUR) * 10**6), n_nodes=9, jobs=[], is_search=is_search
        ),
        starts=starts,
        quantiles=Quantiles(quarter_s=low, median_s=middle, three_quarters_s=high, observed_s=50 * HOUR),
        dedicated=[Dedicated(nodes=13, duration_s=None), Dedicated(nodes=32, duration_s=19.9 * HOUR)],
        worth=Worth(meaning=worth[0], nodes=worth[1]),
        answer="",
        warnings=[],
        notes=[],
    )


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (
            {},
            "The search is over after 36 h (half of the starts within 31 to 44 h), against 19.9 h on 32 nodes of your "
            "own; to this search these idle nodes are worth 14 dedicated nodes.",
        ),
        (
            {"is_search": False, "asked": None, "worth": (EXACT, 1)},
            "All jobs are done after 36 h (half of the starts within 31 to 44 h); to these jobs these idle nodes are "
            "worth 1 dedicated node.",
        ),
        (
            {"quartiles": (31, 36, None), "asked": None, "worth": (MORE, 120)},
            "The search is over after 36 h (a quarter of the starts within 31 h); to this search these idle nodes are "
            "worth more than 120 dedicated nodes, the most that were tried.",
        ),
        (
            {"quartiles": (31, None, None), "n_open": 30, "asked": 13, "worth": (AT_MOST, 9)},
            "The search is over after more than 2.08 days (30 of 48 starts are unfinished when the log ends), and "
            "never on 13 nodes of your own; to this search these idle nodes are worth at most 9 dedicated nodes.",
        ),
        (
            {"quartiles": (1.5, 36, 60), "asked": None},
            "The search is over after 36 h (half of the starts within 1.50 to 60 h); to this search these idle "
            "nodes are worth 14 dedicated nodes.",
        ),
    ],
)
def test_the_answer_is_one_sentence(given, answer):
    assert answer_of(record(**given)) == answer


def test_one_start_has_no_spread():
    found = record(asked=None)
    found = msgspec.structs.replace(found, starts=found.starts[:1])
    assert answer_of(found).startswith("The search is over after 36 h; ")


def test_unfinished_starts_and_a_short_log_are_warned_of():
    assert [*cautions(record())] == []
    (unfinished,) = cautions(record(n_open=5))
    assert unfinished.startswith("From 5 of 48 starts not all is done when the log ends.")
    assert "the median is unknown" not in unfinished
    assert [*cautions(record(days=7.5))] == []  # five medians
    assert "the median is unknown" in next(cautions(record((31, None, None), n_open=30)))
    (overlap,) = cautions(record(days=6))
    assert overlap.startswith("The log is only 4.0 times as long as the median")


def test_starts_that_one_of_two_did_not_finish_are_warned_of():
    starts = record(n_open=5).starts
    against = Against(jobs=[], starts=starts, quantiles=record().quantiles, later_s=None)
    (unfinished,) = cautions(msgspec.structs.replace(record(n_open=5), against=against))
    assert unfinished.startswith("From 5 of 48 starts not all of the first is done")
    (warning,) = cautions(msgspec.structs.replace(record(), against=against))
    assert warning.startswith("Starts that only one of the two finished count with the time the other had")


def test_notes_tell_of_a_missing_calendar_an_unknown_zone_and_fewer_starts():
    assert notes(record(), None) == []
    found = record(zone=None)
    found = msgspec.structs.replace(found, starts=found.starts[:3])
    assert notes(found, "Mars") == [
        "The times of the log are relative: it has no weekdays and hours of the day.",
        "The time zone of the log, 'Mars', is unknown: hours and weekdays are in UTC.",
        "The log leaves room for 3 starts only.",
    ]


@pytest.mark.parametrize(
    ("n_paired", "median_h", "names", "words"),
    [
        (48, 32, ("a.toml", "b.toml"), "b.toml is done after 32 h in the median, 2 h sooner than a.toml on average ("),
        (
            15,
            None,
            ("x/a.toml", "x/a.toml"),
            "the other is done after more than 2.08 days in the median, 2 h sooner than the first on average over the "
            "15 starts that either finished (",
        ),
    ],
)
def test_a_comparison_names_the_files_the_difference_and_its_interval(n_paired, median_h, names, words):
    quartiles = (31, median_h, None)
    jobs = [[InputFile(name=name, sha256="")] for name in names]
    against = Against(
        jobs=jobs[1],
        starts=[],
        quantiles=record(quartiles).quantiles,
        later_s=Estimate.interval(-2 * HOUR, -3 * HOUR, -1 * HOUR, n_paired),
    )
    inputs = msgspec.structs.replace(record().inputs, jobs=jobs[0])
    answer = answer_of(msgspec.structs.replace(record(), inputs=inputs, against=against))
    assert answer.partition("From the same ")[2] == (f"48 starts, {words}95 % interval: 1 h sooner to 3 h sooner).")
