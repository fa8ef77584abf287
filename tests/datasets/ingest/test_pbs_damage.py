"""PBS accounting: damaged files."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.pbs.reader import PbsReader
from bfreplay.errors import InputError
from tests.datasets.ingest.pbs_records import UNREADABLE, T, begun, ended, line, outages, read, runs, started
from tests.datasets.ingest.what_was_read import check_damaged
from tests.examples import examples

VALID = [
    line(T - 5, "Q", "7.srv", "queue=batch"),
    started(T, more='account="A B" Resource_List.walltime=01:00:00'),
    started(T + 3, "8[2].srv", "n3/0-3"),
    line(T + 20, "R", "8[2].srv"),
    line(T + 21, "D", "7.srv", "requestor=a@b"),
    started(T + 40, "8[2].srv", "n4/0-3"),
    ended(T, T + 60, more='account="A B" unique_node_count=2'),
    ended(T + 40, T + 90, "8[2].srv", "n4/0-3"),
    begun(T + 50, T + 200),
]
MALFORMED = {
    "a line that is not a record",
    "a record without a job's id",
    "times that cannot be read",
    "a node list that cannot be read",
    "times that contradict the record's own text stamp",
}


@st.composite
def damaged(draw):
    """The valid log with a few lines cut, doubled, exchanged or with characters replaced."""
    lines = list(VALID)
    for _ in range(draw(st.integers(1, 4))):
        i = draw(st.integers(0, len(lines) - 1))
        text = lines[i]
        at = draw(st.integers(0, max(0, len(text) - 1)))
        what = draw(st.sampled_from(["replace", "cut", "insert", "double", "swap", "remove"]))
        if what == "replace":
            lines[i] = text[:at] + draw(st.characters(codec="utf-8", exclude_characters="\r\n")) + text[at + 1 :]
        elif what == "insert":
            lines[i] = text[:at] + draw(st.text("0123456789;=/+ []\"'()x", max_size=4)) + text[at:]
        elif what == "cut":
            lines[i] = text[:at]
        elif what == "double":
            lines.insert(i, text)
        elif what == "swap":
            j = draw(st.integers(0, len(lines) - 1))
            lines[i], lines[j] = lines[j], lines[i]
        elif len(lines) > 1:
            del lines[i]
    return lines


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=damaged(), timezone=st.sampled_from([None, "America/Chicago", "UTC"]))
def test_damage_gives_a_record_or_an_error_and_what_is_left_out_changes_nothing_else(tmp_path, lines, timezone):
    options = {"timezone": timezone, "reservations": "reserved"}
    caught = None
    try:
        record = read(tmp_path, lines, **options)
    except InputError as error:
        caught = error
    if caught is not None:
        assert caught.file
        return
    bad = {
        example.line
        for reason in MALFORMED & set(record.report.skipped)
        for example in record.report.skipped[reason].examples
    }
    if sum(record.report.skipped[reason].count for reason in MALFORMED & set(record.report.skipped)) != len(bad):
        return  # more of a kind than the report names
    assert not bad or UNREADABLE in record.report.warnings
    numbered = [(number, text) for number, text in enumerate("\n".join(lines).split("\n"), 1) if text.strip()]
    without = read(tmp_path, [text for number, text in numbered if number not in bad], **options)
    assert runs(without) == runs(record)
    assert outages(without) == outages(record)


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_end_in_another_error(tmp_path, data):
    content = bytearray("\n".join(VALID).encode())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    check_damaged(PbsReader(), content, tmp_path / "log")
