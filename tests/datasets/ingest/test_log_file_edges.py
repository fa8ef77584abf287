"""Edge cases of log files, clocks and catalogue."""

import gzip
import io
import tarfile
import zipfile

import pytest

from bfreplay.datasets.ingest.hostlists import MOST_NODES, expand_nodes
from bfreplay.datasets.ingest.local_times import LocalClock, possible_pairs, wall_clock_us, zone_of_name
from bfreplay.datasets.ingest.log_file import BARE_RETURNS, HEAD_BYTES, LONGEST_LINE, LogFile, OpenedLog
from bfreplay.datasets.ingest.read_log import NO_LOG_FILE, ingest, read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS
from tests.test_documents import OTHER_KINDS

S = 10**6


def test_the_last_line_of_the_head_is_left_out_if_it_may_be_cut(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"first\n" + b"x" * HEAD_BYTES + b"\n")
    assert LogFile(path).head_lines() == ["first"]
    path.write_bytes(b"first\nlast")
    assert LogFile(path).head_lines() == ["first", "last"]
    path.write_bytes(b"x" * (2 * HEAD_BYTES))
    assert LogFile(path).head_lines() == ["x" * HEAD_BYTES]


def test_the_longest_line_is_read_and_a_longer_one_is_not(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * (LONGEST_LINE - 1) + b"\nnext\n")
    assert [(number, len(line)) for number, line in LogFile(path).lines()] == [(1, LONGEST_LINE - 1), (2, 4)]


def test_blocks_are_the_whole_content_however_long_its_lines(tmp_path):
    path = tmp_path / "log"
    content = b"ab\n\nabcdefghijklmnop\nx\ny"
    path.write_bytes(content)
    for size in range(1, 30):
        blocks = list(LogFile(path).blocks(size))
        assert b"".join(blocks) == content
        assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_members_that_are_hidden_are_no_files_and_all_others_count(tmp_path):
    path = tmp_path / "log.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in (("d/b", b"bb\n"), ("d/.x", b"hidden\n"), ("d/a", b"a\n"), ("d/empty", b"")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    with OpenedLog([path]) as opened:
        assert [file.name for file in opened.files] == [f"{path}:d/a", f"{path}:d/b"]
        assert opened.n_bytes == 5


def test_a_leap_second_is_a_time_and_a_second_later_is_none():
    assert wall_clock_us("2016-12-31T23:59:60") == wall_clock_us("2017-01-01T00:00:00")
    assert wall_clock_us("2016-12-31T23:59:61") is None
    assert wall_clock_us("2016-12-31T23:60:00") is None


def test_running_times_may_differ_by_a_second():
    assert possible_pairs((0,), (10 * S,), 11 * S) == [(0, 10 * S)]
    assert possible_pairs((0,), (10 * S,), 9 * S) == [(0, 10 * S)]
    assert possible_pairs((0,), (10 * S,), 9 * S - 1) == []
    assert possible_pairs((5 * S,), (5 * S,), None) == [(5 * S, 5 * S)]
    assert possible_pairs((5 * S,), (5 * S - 1,), None) == []


def test_the_earlier_meaning_comes_first_in_every_zone():
    for zone, text in (("America/Chicago", "2024-11-03T01:30:00"), ("Australia/Lord_Howe", "2024-04-07T01:45:00")):
        early, late = LocalClock(zone_of_name(zone)).utc_us(wall_clock_us(text))
        assert early < late


@pytest.mark.parametrize("most", [1_000, pytest.param(MOST_NODES, marks=pytest.mark.thorough)])
def test_a_list_of_the_greatest_length_is_expanded(monkeypatch, most):
    monkeypatch.setattr("bfreplay.datasets.ingest.hostlists.MOST_NODES", most)
    assert len(expand_nodes(f"n[1-{most}]")) == most
    with pytest.raises(ValueError, match="more than"):
        expand_nodes(f"n[0-{most}]")
    expand_nodes.cache_clear()


@pytest.mark.parametrize("text", ["NONE ASSIGNED", "(NULL)", "N/A", "-"])
def test_what_means_no_nodes_means_it_in_any_case(text):
    assert expand_nodes(text) == ()


@pytest.mark.parametrize("text", ["-n[1-2]", "n[1-2]-", "n[1-2].", ".[1-2]"])
def test_names_from_ranges_are_names(text):
    with pytest.raises(ValueError, match="not the name of a node"):
        expand_nodes(text)


def test_the_files_of_a_zip_archive_are_read_like_those_of_a_tar_archive(tmp_path):
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("d")
        for name, content in (("d/b.gz", gzip.compress(b"bb\n")), ("d/.x", b"hidden\n"), ("d/a", b"a\n"), ("e", b"")):
            archive.writestr(name, content)
    with OpenedLog([path]) as opened:
        assert [file.name for file in opened.files] == [f"{path}:d/a", f"{path}:d/b.gz"]
        assert [list(file.lines()) for file in opened.files] == [[(1, "a")], [(1, "bb")]]


def test_a_zip_archive_that_cannot_be_unpacked_says_why(tmp_path):
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"a\n" * 100)
    whole = path.read_bytes()
    encrypted = bytearray(whole)
    for signature, flags_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[whole.index(signature) + flags_at] |= 1
    for content, why in ((whole[:-30], "not a zip file"), (encrypted, "encrypted"), (whole[:40], "not a zip file")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"cut or damaged: .*{why}") as caught:
            OpenedLog([path])
        assert caught.value.file == str(path)


def bomb(path, kind):
    """An archive of few bytes whose one file claims more than 256 MiB, and whether these are there."""
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a", "w") as stream:
            for _ in range(257):
                stream.write(bytes(1 << 20))
        return
    info = tarfile.TarInfo("a")
    info.size = 1 << 40
    if kind == "sparse tar":
        info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.map": "0,1", "GNU.sparse.size": str(info.size)}
        info.size = 1
    path.write_bytes(info.tobuf(tarfile.PAX_FORMAT) + b"x" * 512 + bytes(1024))


@pytest.mark.parametrize("kind", ["zip", "tar", "sparse tar"])
def test_an_archive_that_claims_far_more_than_its_size_is_not_unpacked(tmp_path, kind, monkeypatch):
    path = tmp_path / "log"
    bomb(path, kind)
    monkeypatch.setattr("shutil.copyfileobj", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="claims to unpack to far more") as caught:
        OpenedLog([path])
    assert caught.value.expected.startswith("at most 268,435,456 bytes in all")
    assert caught.value.value == ("a: 269,484,032 bytes" if kind == "zip" else "a: 1,099,511,627,776 bytes")


def test_what_all_files_of_an_archive_claim_counts_together(tmp_path, monkeypatch):
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a", "b"):
            archive.writestr(name, "x" * 60)
    monkeypatch.setattr("bfreplay.datasets.ingest.log_file.unpacked_limit", lambda _: 120)
    with OpenedLog([path]) as opened:
        assert opened.n_bytes == 120
    monkeypatch.setattr("bfreplay.datasets.ingest.log_file.unpacked_limit", lambda _: 119)
    with pytest.raises(InputError, match="claims to unpack") as caught:
        OpenedLog([path])
    assert caught.value.value == "b: 60 bytes"


@pytest.mark.parametrize(
    "reader", ["auto", "slurm", "pbs", "lsf", "grid-engine", "swf", "cobalt", "flux", "batsim", "table"]
)
@pytest.mark.parametrize("what", OTHER_KINDS)
def test_every_reader_calls_a_file_of_another_kind_by_its_name(tmp_path, reader, what):
    path = tmp_path / "jobs"
    OTHER_KINDS[what][0](path)
    with pytest.raises(InputError, match=f"this is {what}") as caught:
        read_log([path], reader)
    assert caught.value.file == str(path)
    assert OTHER_KINDS[what][1] in caught.value.fix


def test_a_file_of_another_kind_among_logs_of_a_folder_is_left_out_and_warned_of(tmp_path):
    OTHER_KINDS["a PDF document"][0](tmp_path / "manual.pdf")
    (tmp_path / "jobs.psv").write_text(
        "JobIDRaw|State|Start|End|NodeList\n1|COMPLETED|2024-05-01T00:00:00|2024-05-01T01:00:00|n[1-2]\n"
    )
    for reader in ("auto", "slurm"):
        record = read_log([tmp_path], reader, ReadOptions(timezone="UTC")).record
        assert record.nodes == ("n1", "n2")
        assert record.report.warnings[NO_LOG_FILE].count == 1


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_lines_that_end_in_a_carriage_return_are_lines(name, tmp_path):
    log = SMALL_LOGS[name]
    wanted, _ = ingest(log.write(tmp_path), log.reader, log.options, log.rules)
    for end, is_said in (("\r\n", False), ("\r\r\n", False), ("\r", "json" not in name and name != "flux")):
        content = log.text.replace("\n", end).encode()
        events, report = ingest(log.write(tmp_path, content), log.reader, log.options, log.rules)
        assert events.to_frame().equals(wanted.to_frame())
        assert (BARE_RETURNS in report.warnings) == is_said


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_two_rows_on_one_line_are_both_read_or_both_said(name, tmp_path):
    log = SMALL_LOGS[name]
    before, known = ingest(log.write(tmp_path), log.reader, log.options, log.rules)
    lines = log.text.encode().splitlines(keepends=True)
    for k in range(1, len(lines) - 1):
        joined = b"".join([*lines[:k], lines[k].removesuffix(b"\n"), *lines[k + 1 :]])
        try:
            events, report = ingest(log.write(tmp_path, joined), log.reader, log.options, log.rules)
        except InputError:
            continue
        is_said = report.warnings.keys() != known.warnings.keys() or report.rows_skipped > known.rows_skipped
        assert is_said or events.to_frame().equals(before.to_frame()), joined


def test_a_return_at_the_end_of_a_block_belongs_to_the_line_feed_after_it(tmp_path):
    (tmp_path / "log").write_bytes(b"abc\r\nd\re\r\r\nf\r")
    for size in range(1, 14):
        file = LogFile(tmp_path / "log")
        assert b"".join(file.blocks(size)) == b"abc\nd\ne\nf\n"
        assert file.has_bare_returns
