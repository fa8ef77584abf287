import json

import pytest

from bfreplay.datasets.ingest.occupancy.import_report import MOST_EXAMPLES, Example, ImportReport, dropped_counts
from bfreplay.errors import InputError


def test_rows_are_counted_as_read_kept_and_dropped():
    lint = ImportReport()
    lint.read()
    lint.read(9)
    lint.keep("job intervals")
    lint.keep("job intervals", 4)
    lint.keep("outage intervals", 2)
    lint.drop("never started")
    lint.drop("never started", n=2)
    lint.drop("a job step")
    assert lint.rows_read == 10
    assert lint.kept == {"job intervals": 5, "outage intervals": 2}
    assert lint.rows_dropped == 4
    assert dropped_counts(lint) == {"never started": 3, "a job step": 1}


def test_nothing_is_no_reason_and_no_doubt():
    lint = ImportReport()
    lint.drop("never started", "jobs.psv", 3, "row", n=0)
    lint.doubt("times are ambiguous", n=0)
    assert (lint.dropped, lint.doubts) == ({}, {})
    lint.refuse_doubts()


def test_the_first_few_places_are_examples_and_all_are_counted():
    lint = ImportReport()
    for line in range(1, 10):
        lint.drop("never started", "jobs.psv", line, f"job {line}")
    tally = lint.dropped["never started"]
    assert tally.count == 9
    assert [example.line for example in tally.examples] == list(range(1, MOST_EXAMPLES + 1))


def test_what_has_no_place_and_no_value_is_no_example():
    lint = ImportReport()
    lint.drop("a", line=7)
    lint.drop("b", "jobs.psv")
    lint.drop("c", value=0)
    assert lint.dropped["a"].examples == []
    assert lint.dropped["b"].examples == [Example("jobs.psv", None, "")]
    assert lint.dropped["c"].examples == [Example("", None, "0")]


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
    lint = ImportReport()
    lint.drop("a", value="x\n\ty  z")
    lint.drop("a", value="x" * 160)
    lint.drop("a", value="y" * 161)
    lint.drop("b", value="caf\udce9")
    values = [example.value for example in lint.dropped["a"].examples]
    assert values == ["x y z", "x" * 160, "y" * 157 + "..."]
    assert lint.dropped["b"].examples[0].value.encode("utf-8") == b"caf\\udce9"


def test_a_report_is_plain_json_without_folders():
    lint = ImportReport()
    lint.read(3)
    lint.keep("job intervals", 2)
    lint.drop("never started", "/data/site/jobs.psv", 3, "in a/folder")
    lint.doubt("times are ambiguous", "logs/a.tar:b/c.log", 4)
    lint.facts["time zone"] = "given as UTC"
    document = lint.to_json()
    assert json.loads(json.dumps(document)) == document
    assert document == {
        "rows_read": 3,
        "kept": {"job intervals": 2},
        "rows_dropped": 1,
        "dropped": {"never started": {"count": 1, "examples": ["jobs.psv:3: in a/folder"]}},
        "doubts": {"times are ambiguous": {"count": 1, "examples": ["c.log:4"]}},
        "facts": {"time zone": "given as UTC"},
    }


def test_a_copy_goes_its_own_way():
    lint = ImportReport()
    lint.drop("never started", "jobs.psv", 1)
    lint.facts["shares"] = {"idle": 0.5}
    other = lint.copy()
    assert other.to_json() == lint.to_json()
    other.read(5)
    other.keep("job intervals")
    other.drop("never started", "jobs.psv", 2)
    other.doubt("times are ambiguous")
    other.facts["shares"]["idle"] = 0.1
    assert (lint.rows_read, lint.kept, lint.rows_dropped, lint.doubts) == (0, {}, 1, {})
    assert len(lint.dropped["never started"].examples) == 1
    assert lint.facts == {"shares": {"idle": 0.5}}


def test_strict_names_every_doubt_and_the_first_place():
    lint = ImportReport()
    lint.drop("never started", "other.psv", 1, "no doubt")
    lint.doubt("nodes do not match", n=1_200)
    with pytest.raises(InputError, match=r"--strict: 1 doubt about this log: nodes do not match \(1,200 x\)") as caught:
        lint.refuse_doubts()
    assert (caught.value.file, caught.value.row, caught.value.value) == (None, None, None)
    lint.doubt("times are ambiguous", "jobs.psv", 8, "02:30")
    with pytest.raises(InputError, match=r"2 doubts .*nodes do not match \(1,200 x\); times are ambiguous") as caught:
        lint.refuse_doubts()
    assert (caught.value.file, caught.value.row, caught.value.value) == ("jobs.psv", "line 8", "02:30")
