"""PBS accounting: what the text stamps are of UTC."""

import pytest

from bfreplay.errors import InputError
from tests.datasets.ingest.pbs_records import (
    AUTUMN,
    BOTH,
    CDT,
    CST,
    SPRING,
    US,
    T,
    ended,
    line,
    read,
    runs,
    started,
    warnings,
)


def test_the_change_to_winter_time_shows_in_the_facts(tmp_path):
    record = read(
        tmp_path,
        [ended(AUTUMN - 90, AUTUMN - 60, "1.s", offset=CDT), ended(AUTUMN - 90, AUTUMN + 4_000, "2.s", offset=CST)],
    )
    facts = record.report.facts["time zone"]
    assert "text stamps are -05:00 of UTC until 2023-11-05T08:06:40Z, -06:00 after" in facts


@pytest.mark.parametrize("timezone", [None, "America/Chicago"])
@pytest.mark.parametrize(
    ("change", "moment", "before", "after"),
    [
        (AUTUMN, AUTUMN - 100, CDT, CST),
        (AUTUMN, AUTUMN + 100, CDT, CST),
        (SPRING, SPRING - 100, CST, CDT),
        (SPRING, SPRING + 100, CST, CDT),
    ],
)
def test_a_bare_record_at_the_change_of_the_clock_is_settled_by_its_neighbours(
    tmp_path, timezone, change, moment, before, after
):
    def offset(at):
        return before if at < change else after

    lines = [
        started(change - 9_000, offset=before),
        ended(change - 9_500, moment - 70, "1.s", offset=offset(moment - 70)),
        line(moment, "R", "7.srv", offset=offset(moment)),
        ended(change - 9_500, moment + 150, "2.s", offset=offset(moment + 150)),
        ended(change - 9_500, change + 9_000, "3.s", offset=after),
    ]
    record = read(tmp_path, lines, timezone=timezone)
    assert (change - 9_000, moment, BOTH, 2) in runs(record)
    assert not record.report.warnings


def folded(tmp_path, **options):
    """The record of the end is at 01:30, which came twice, and nothing lies between the two."""
    return read(
        tmp_path,
        [
            started(AUTUMN - 9_000, offset=CDT),
            line(AUTUMN - 1_800, "R", "7.srv", offset=CDT),
            ended(AUTUMN - 9_500, AUTUMN + 9_000, "3.s", offset=CST),
        ],
        **options,
    )


@pytest.mark.parametrize("timezone", [None, "America/Chicago"])
def test_a_bare_record_in_the_repeated_hour_asks_for_a_choice(tmp_path, timezone):
    with pytest.raises(InputError, match="--dst-fold earlier") as error:
        folded(tmp_path, timezone=timezone)
    assert (error.value.file, error.value.row) == ("0", "line 2")
    assert ("--tz America/Chicago is wrong" in error.value.fix) == (timezone is not None)
    for choice, end in (("earlier", AUTUMN - 1_800), ("later", AUTUMN + 1_800)):
        record = folded(tmp_path, timezone=timezone, dst_fold=choice)
        assert (AUTUMN - 9_000, end, BOTH, 2) in runs(record)
        assert len(record.report.warnings) == 1


def test_without_any_evidence_of_the_zone_a_bare_record_asks_for_it(tmp_path):
    lines = [started(T, stamp=T + 400), line(T + 500, "R", "7.srv")]
    with pytest.raises(InputError, match="--tz") as error:
        read(tmp_path, lines)
    assert (error.value.file, error.value.row) == ("0", "line 2")
    record = read(tmp_path, lines, timezone="America/Chicago")
    assert runs(record) == [(T, T + 500, BOTH, 2)]
    assert record.timezone == "America/Chicago"


def test_later_evidence_settles_an_earlier_bare_record(tmp_path):
    record = read(tmp_path, [started(T, stamp=T + 400), line(T + 500, "R", "7.srv"), ended(T, T + 900, "8.srv")])
    assert (T, T + 500, BOTH, 2) in runs(record)


def test_a_given_zone_that_the_records_contradict_is_a_warning(tmp_path):
    record = read(tmp_path, [started(T), ended(T, T + 60)], timezone="Europe/Paris")
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert list(warnings(record)) == ["the text stamps are not in the given time zone: check --tz"]


def test_a_text_stamp_in_the_skipped_hour_is_skipped_with_a_warning(tmp_path):
    lines = [started(SPRING - 9_000), line(SPRING + 1_800, "R", "7.srv"), ended(SPRING - 99, SPRING - 50, "8.s")]
    record = read(tmp_path, lines, timezone="America/Chicago")
    assert runs(record) == [(SPRING - 99, SPRING - 50, BOTH, 2)]
    assert any("do not exist in the time zone" in sentence for sentence in warnings(record))


def test_an_unknown_zone_is_refused(tmp_path):
    with pytest.raises(InputError, match="unknown time zone"):
        read(tmp_path, [ended(T, T + 60)], timezone="Mars/Base")


def test_records_out_of_order_are_a_warning_but_not_the_repeated_hour(tmp_path):
    record = read(tmp_path, [ended(T, T + 90_000, "1.s"), ended(T, T + 60, "2.s")])
    assert [sentence[:32] for sentence in warnings(record)] == ["records are not in order of time"]


def test_the_last_text_stamp_tells_how_long_the_log_was_written(tmp_path):
    record = read(tmp_path, [ended(T, T + 60), line(T + 600, "D", "9.srv")])
    assert record.last_stamp_us == (T + 600) * US
    far = "11/14/2093 10:00:00;D;9.srv;"
    assert read(tmp_path, [ended(T, T + 60), far]).last_stamp_us == (T + 60) * US
