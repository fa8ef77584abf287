import bz2
import errno
import gzip
import io
import lzma
import shutil
import tarfile

import pyarrow as pa
import pytest

from bfreplay.datasets.ingest.log_file import LogFile, OpenedLog
from bfreplay.errors import InputError

TEXT = "".join(f"line {i}\n" for i in range(5_000)).encode() + b"last, caf\xe9"


def written_zstd(path, content):
    with pa.OSFile(str(path), "wb") as sink, pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)


WRITERS = {
    "plain": lambda path, content: path.write_bytes(content),
    "gz": lambda path, content: path.write_bytes(gzip.compress(content)),
    "bz2": lambda path, content: path.write_bytes(bz2.compress(content)),
    "xz": lambda path, content: path.write_bytes(lzma.compress(content)),
    "zst": written_zstd,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_the_content_is_the_same_however_it_is_compressed(tmp_path, kind):
    path = tmp_path / "log"  # the content decides, not the name
    WRITERS[kind](path, TEXT)
    file = LogFile(path)
    lines = list(file.lines())
    assert lines[0] == (1, "line 0")
    assert lines[-1] == (5_001, "last, caf\udce9")
    assert b"".join(file.blocks(1_000)) == TEXT
    assert all(block.endswith(b"\n") for block in list(file.blocks(1_000))[:-1])
    assert file.head() == TEXT[:65_536]
    with file.binary() as stream:
        assert stream.read() == TEXT


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_a_cut_file_is_an_error_that_names_it(tmp_path, kind):
    path = tmp_path / "log"
    WRITERS[kind](path, TEXT)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="cut or damaged") as caught:
        list(LogFile(path).lines())
    assert caught.value.file == str(path)


def test_damage_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "log.gz"
    content = bytearray(gzip.compress(TEXT))
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="cut or damaged"):
        list(LogFile(path).lines())


def test_concatenated_gzip_files_are_read_to_the_end(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert list(LogFile(path).lines()) == [(1, "a"), (2, "b")]


def test_concatenated_zstd_frames_are_read_to_the_end(tmp_path):
    for name, content in (("1", b"a\n"), ("2", b"b\n")):
        written_zstd(tmp_path / name, content)
    path = tmp_path / "log.zst"
    path.write_bytes((tmp_path / "1").read_bytes() + (tmp_path / "2").read_bytes())
    assert list(LogFile(path).lines()) == [(1, "a"), (2, "b")]


def test_a_line_without_an_end_is_refused(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * (1 << 25))
    with pytest.raises(InputError, match="a line does not end"):
        list(LogFile(path).lines())
    with pytest.raises(InputError, match="a line does not end"):
        list(LogFile(path).blocks())


def archived(path, members, mode):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_members_of_an_archive_are_files_of_the_log(tmp_path, mode):
    path = tmp_path / "accounting.tar"
    archived(path, [("accounting/20240102", b"b\n"), ("accounting/20240101", gzip.compress(b"a\n"))], mode)
    with OpenedLog([path]) as opened:
        assert [file.name for file in opened.files] == [f"{path}:accounting/20240101", f"{path}:accounting/20240102"]
        assert [list(file.lines()) for file in opened.files] == [[(1, "a")], [(1, "b")]]
        unpacked = opened.files[0].path
        assert [source.name for source in opened.sources] == ["accounting.tar"]
    assert not unpacked.exists()


def test_archives_of_the_same_name_have_their_own_members(tmp_path):
    paths = [tmp_path / month / "jobs.tar" for month in "ab"]
    for path in paths:
        path.parent.mkdir()
        archived(path, [("jobs", path.parent.name.encode())], "w")
    with OpenedLog(paths) as opened:
        assert [list(file.lines()) for file in opened.files] == [[(1, "a")], [(1, "b")]]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_without_room_is_no_damaged_archive(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, "no room")

    path = tmp_path / "log.tar"
    archived(path, [("a", b"a\n")], "w")
    monkeypatch.setattr(shutil, "copyfileobj", refuse)
    with pytest.raises(OSError, match="no room") as caught:
        OpenedLog([path])
    assert caught.value.errno == number


def test_a_member_cannot_be_written_elsewhere(tmp_path):
    path = tmp_path / "evil.tar"
    archived(path, [("../outside", b"x\n"), ("/abs", b"y\n")], "w")
    with OpenedLog([path]) as opened:
        assert len(opened.files) == 2
    assert not (tmp_path.parent / "outside").exists()


def test_a_cut_archive_is_an_error_and_leaves_nothing(tmp_path):
    path = tmp_path / "log.tar.gz"
    archived(path, [("a", TEXT * 20)], "w:gz")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(InputError, match="cut or damaged"):
        OpenedLog([path])


def test_an_archive_without_files_is_refused(tmp_path):
    path = tmp_path / "log.tar"
    with tarfile.open(path, "w") as archive:
        folder = tarfile.TarInfo("accounting")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    with pytest.raises(InputError, match="the archive has no files"):
        OpenedLog([path])


def test_a_folder_stands_for_the_files_in_it(tmp_path):
    folder = tmp_path / "accounting"
    folder.mkdir()
    for name in ("20240102", "20240101", ".hidden"):
        (folder / name).write_text(name)
    (folder / "20240103").touch()
    (folder / "sub").mkdir()
    with OpenedLog([folder]) as opened:
        assert [file.path.name for file in opened.files] == ["20240101", "20240102"]


def test_an_empty_folder_and_an_empty_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="this folder has no files"):
        OpenedLog([tmp_path])
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="the file is empty"):
        OpenedLog([tmp_path / "empty"])
    with pytest.raises(InputError, match="no such file"):
        OpenedLog([tmp_path / "absent"])


def test_progress_is_told_in_bytes_on_disk(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(TEXT))
    told = []
    with OpenedLog([path], told.append) as opened:
        list(opened.files[0].lines())
        assert sum(told) == opened.n_bytes == path.stat().st_size
