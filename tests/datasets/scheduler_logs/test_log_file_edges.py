"""For tests/datasets/scheduler_logs: what no test there would notice."""

import io
import tarfile

import pytest

from bfreplay.datasets.scheduler_logs.hostlists import MOST_NODES, expand_nodes
from bfreplay.datasets.scheduler_logs.local_times import LocalClock, named_zone, settled, wall_clock_us
from bfreplay.datasets.scheduler_logs.log_file import HEAD_BYTES, LONGEST_LINE, LogFile, OpenedLog

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
    assert settled((0,), (10 * S,), 11 * S) == [(0, 10 * S)]
    assert settled((0,), (10 * S,), 9 * S) == [(0, 10 * S)]
    assert settled((0,), (10 * S,), 9 * S - 1) == []
    assert settled((5 * S,), (5 * S,), None) == [(5 * S, 5 * S)]
    assert settled((5 * S,), (5 * S - 1,), None) == []


def test_the_earlier_meaning_comes_first_in_every_zone():
    for zone, text in (("America/Chicago", "2024-11-03T01:30:00"), ("Australia/Lord_Howe", "2024-04-07T01:45:00")):
        early, late = LocalClock(named_zone(zone)).utc_us(wall_clock_us(text))
        assert early < late


def test_a_list_of_the_greatest_length_is_expanded():
    assert len(expand_nodes(f"n[1-{MOST_NODES}]")) == MOST_NODES
    with pytest.raises(ValueError, match="more than"):
        expand_nodes(f"n[0-{MOST_NODES}]")
    expand_nodes.cache_clear()


@pytest.mark.parametrize("text", ["NONE ASSIGNED", "(NULL)", "N/A", "-"])
def test_what_means_no_nodes_means_it_in_any_case(text):
    assert expand_nodes(text) == ()


@pytest.mark.parametrize("text", ["-n[1-2]", "n[1-2]-", "n[1-2].", ".[1-2]"])
def test_names_from_ranges_are_names(text):
    with pytest.raises(ValueError, match="no name of a node"):
        expand_nodes(text)
