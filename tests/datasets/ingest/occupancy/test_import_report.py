import json

import pytest

from bfreplay.datasets.ingest.occupancy.import_report import (
    MOST_EXAMPLES,
    WHICH_NODES,
    WHY_NO_AMOUNT,
    Example,
    ImportReport,
    skip_counts,
)
from bfreplay.datasets.times import HOUR_US
from bfreplay.errors import InputError


def test_rows_are_counted_as_read_kept_and_skipped():
    report = ImportReport()
    report.read()
    report.read(9)
    report.keep("job intervals")
    report.keep("job intervals", 4)
    report.keep("outage intervals", 2)
    report.skip("never started")
    report.skip("never started", count=2)
    report.skip("a job step")
    assert report.rows_read == 10
    assert report.kept == {"job intervals": 5, "outage intervals": 2}
    assert report.rows_skipped == 4
    assert skip_counts(report) == {"never started": 3, "a job step": 1}


def test_nothing_is_no_reason_and_no_warning():
    report = ImportReport()
    report.skip("never started", "jobs.psv", 3, "row", count=0)
    report.warn("times are ambiguous", count=0)
    assert (report.skipped, report.warnings) == ({}, {})
    report.refuse_warnings()


def test_the_first_few_places_are_examples_and_all_are_counted():
    report = ImportReport()
    for line in range(1, 10):
        report.skip("never started", "jobs.psv", line, f"job {line}")
    tally = report.skipped["never started"]
    assert tally.count == 9
    assert [example.line for example in tally.examples] == list(range(1, MOST_EXAMPLES + 1))


def test_what_has_no_place_and_no_value_is_no_example():
    report = ImportReport()
    report.skip("a", line=7)
    report.skip("b", "jobs.psv")
    report.skip("c", value=0)
    assert report.skipped["a"].examples == []
    assert report.skipped["b"].examples == [Example("jobs.psv", None, "")]
    assert report.skipped["c"].examples == [Example("", None, "0")]


@pytest.mark.parametrize(
    ("example", "text"),
    [
        (Example("jobs.psv", 3, "a|b"), "jobs.psv:3: a|b"),
        (Example("jobs.psv", None, "a|b"), "jobs.psv: a|b"),
        (Example("jobs.psv", 3, ""), "jobs.psv:3"),
        (Example("", None, "a|b"), "a|b"),
    ],
)
def test_an_example_reads_as_a_place(example, text):
    assert str(example) == text


def test_values_are_one_short_line_of_text():
    report = ImportReport()
    report.skip("a", value="x\n\ty  z")
    report.skip("a", value="x" * 160)
    report.skip("a", value="y" * 161)
    report.skip("b", value="caf\udce9")
    values = [example.value for example in report.skipped["a"].examples]
    assert values == ["x y z", "x" * 160, "y" * 157 + "..."]
    assert report.skipped["b"].examples[0].value.encode("utf-8") == b"caf\\udce9"


def test_a_report_is_plain_json_without_folders():
    report = ImportReport()
    report.read(3)
    report.keep("job intervals", 2)
    report.skip("never started", "/data/site/jobs.psv", 3, "in a/folder")
    report.warn("times are ambiguous", "logs/a.tar:b/c.log", 4)
    report.facts["time zone"] = "given as UTC"
    document = report.to_json()
    assert json.loads(json.dumps(document)) == document
    assert document == {
        "rows_read": 3,
        "kept": {"job intervals": 2},
        "rows_skipped": 1,
        "skipped": {"never started": {"count": 1, "examples": ["jobs.psv:3: in a/folder"]}},
        "warnings": {"times are ambiguous": {"count": 1, "why_no_amount": WHY_NO_AMOUNT, "examples": ["c.log:4"]}},
        "facts": {"time zone": "given as UTC"},
    }


def amounts(report: ImportReport, log_end_us: int = 100 * HOUR_US, mean: float | None = 5.0) -> dict[str, float | None]:
    report.complete(log_end_us, mean)
    document = report.to_json()["warnings"]
    return {sentence: tally.get("node_hours") for sentence, tally in document.items()}


def test_a_warning_of_a_row_has_the_amount_of_that_row_only():
    report = ImportReport()
    for hours, is_in_doubt in ((2, True), (4, False), (8, True)):
        report.read()
        if is_in_doubt:
            report.warn("before", "jobs.psv", 1)
        report.set_row_amount(3, 10 * HOUR_US, (10 + hours) * HOUR_US)
        if is_in_doubt:
            report.warn("after", "jobs.psv", 1)
    assert amounts(report) == {"before": 3 * (2 + 8), "after": 3 * (2 + 8)}


def test_a_row_without_an_end_counts_to_the_end_of_the_log():
    report = ImportReport()
    report.read()
    report.warn("open")
    report.set_row_amount(2, 90 * HOUR_US, None)
    assert amounts(report) == {"open": 20.0}


def test_rows_of_an_unknown_amount_count_as_the_mean_job_and_say_so():
    report = ImportReport()
    for _ in range(2):
        report.read()
        report.warn("unreadable")
    report.read()
    report.warn("unreadable")
    report.set_row_amount(1, 0, HOUR_US)
    without = report.copy()
    assert amounts(report) == {"unreadable": 1 + 2 * 5.0}
    assert report.to_json()["warnings"]["unreadable"]["is_estimate"] is True
    assert amounts(without, mean=None) == {"unreadable": 1.0}  # and two more
    assert without.to_json()["warnings"]["unreadable"]["why_no_amount"] == WHY_NO_AMOUNT


def test_rows_with_a_reason_hide_no_amount_of_others():
    report = ImportReport()
    report.read()
    report.warn("unreadable")
    report.set_row_amount(4, 0, HOUR_US)
    report.read()
    report.warn("unreadable", why_no_amount="its nodes cannot be read")
    report.read()
    report.warn("unreadable")
    assert amounts(report) == {"unreadable": 4.0 + 5.0}
    assert report.to_json()["warnings"]["unreadable"]["why_no_amount"] == "its nodes cannot be read"


def test_a_warning_with_a_reason_has_no_amount_and_one_that_is_aside_says_so():
    report = ImportReport()
    report.read()
    report.warn("no amount", why_no_amount="nobody knows")
    report.warn("which", aside=WHICH_NODES)
    report.set_row_amount(1, 0, HOUR_US)
    assert amounts(report) == {"no amount": None, "which": 1.0}
    document = report.to_json()["warnings"]
    assert (document["no amount"]["why_no_amount"], document["which"]["aside"]) == ("nobody knows", WHICH_NODES)


@pytest.mark.parametrize(
    ("asides", "found"),
    [((WHICH_NODES, WHICH_NODES), WHICH_NODES), (("", WHICH_NODES), None), ((WHICH_NODES, ""), None)],
)
def test_a_warning_is_aside_only_if_all_its_cases_are(asides, found):
    report = ImportReport()
    for aside in asides:
        report.warn("which", node_hours=1.0, aside=aside)
    assert report.to_json()["warnings"]["which"].get("aside") == found


def test_a_copy_goes_its_own_way():
    report = ImportReport()
    report.skip("never started", "jobs.psv", 1)
    report.facts["shares"] = {"idle": 0.5}
    other = report.copy()
    assert other.to_json() == report.to_json()
    other.read(5)
    other.keep("job intervals")
    other.skip("never started", "jobs.psv", 2)
    other.warn("times are ambiguous")
    other.facts["shares"]["idle"] = 0.1
    assert (report.rows_read, report.kept, report.rows_skipped, report.warnings) == (0, {}, 1, {})
    assert len(report.skipped["never started"].examples) == 1
    assert report.facts == {"shares": {"idle": 0.5}}


def test_strict_names_every_warning_and_the_first_place():
    report = ImportReport()
    report.skip("never started", "other.psv", 1, "no warning")
    report.warn("nodes do not match", count=1_200)
    with pytest.raises(
        InputError, match=r"--strict: 1 warning about this log: nodes do not match \(1,200 x\)"
    ) as caught:
        report.refuse_warnings()
    assert (caught.value.file, caught.value.row, caught.value.value) == (None, None, None)
    report.warn("times are ambiguous", "jobs.psv", 8, "02:30")
    with pytest.raises(InputError, match=r"2 warnings .*nodes do not match \(1,200 x\); times are ambiguous") as caught:
        report.refuse_warnings()
    assert (caught.value.file, caught.value.row, caught.value.value) == ("jobs.psv", "line 8", "02:30")
