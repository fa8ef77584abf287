"""Fetching from a server, and what is left when it goes wrong."""

from __future__ import annotations

import gzip
import socket

import pytest

from bfreplay.datasets.public_logs import DownloadError, fetch, fetch_all, fetching
from bfreplay.errors import OutputExistsError
from tests.datasets.public_logs.web_server import made_file, made_log, unused_address

BODY = b"; Version: 2.2\n" + b"1 0 0 60 4\n" * 50_000
OTHER = b"<html>Sorry</html>"


def everything_in(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_log_comes_with_all_its_files(server, tmp_path):
    server.bodies = {"a.swf": BODY, "b.txt": b"columns\n"}
    log = made_log("a", *(made_file(name, body, server.url(name)) for name, body in server.bodies.items()))
    paths = fetch(log, tmp_path / "new" / "folder")
    assert [path.read_bytes() for path in paths] == [BODY, b"columns\n"]
    assert everything_in(tmp_path / "new" / "folder") == ["a.swf", "b.txt"]


def test_what_is_there_and_right_is_not_fetched_again(server, tmp_path):
    server.bodies = {"a.swf": BODY}
    log = made_log("a", made_file("a.swf", BODY, server.url("a.swf")))
    assert fetch(log, tmp_path) == fetch(log, tmp_path)
    assert server.asked == ["a.swf"]


def test_a_log_published_uncompressed_becomes_the_gzip_file_of_its_name(server, tmp_path):
    server.bodies = {"raw.log": BODY}
    as_known = gzip.compress(BODY, 1, mtime=12345)
    log = made_log("a", made_file("a.log.gz", as_known, server.url("raw.log"), content=BODY))
    (path,) = fetch(log, tmp_path / "1")
    assert gzip.decompress(path.read_bytes()) == BODY
    (again,) = fetch(log, tmp_path / "2")
    assert again.read_bytes() == path.read_bytes()
    assert path.read_bytes()[3:8] == bytes(5)  # RFC 1952: no name and no time, so that the bytes do not change
    fetch(log, tmp_path / "1")
    assert server.asked == ["raw.log"] * 2


def test_progress_ends_at_the_size_of_the_file(server, tmp_path):
    server.bodies = {"a.swf": BODY}
    seen = []
    file = made_file("a.swf", BODY, server.url("a.swf"))
    fetch(made_log("a", file), tmp_path, progress=lambda of, done: seen.append((of, done)))
    assert [of for of, _ in seen] == [file] * len(seen)
    assert [done for _, done in seen] == sorted(done for _, done in seen)
    assert seen[-1][1] == len(BODY)


def test_the_second_address_is_tried_when_the_first_gives_something_else(server, tmp_path):
    server.bodies = {"first": OTHER, "second": BODY}
    log = made_log("a", made_file("a.swf", BODY, server.url("first"), server.url("second")))
    (path,) = fetch(log, tmp_path)
    assert path.read_bytes() == BODY
    assert server.asked == ["first", "second"]


def bad(server, kind):
    server.bodies = {"wrong": OTHER, "cut": BODY, "unannounced": BODY, "long": BODY * 2}
    server.cut = {"cut", "unannounced"}
    server.endless = {"unannounced", "long"}
    return unused_address() if kind == "refused" else server.url(kind)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("wrong", "the download is another file: 18 bytes, sha256 "),
        ("absent", "the server answers 404 Not Found"),
        ("cut", "the transfer broke off after "),
        ("unannounced", "the download is another file: 275,007 bytes"),
        ("long", "the download is longer than the log (550,015 bytes)"),
        ("refused", "cannot be reached: Connection refused"),
    ],
)
def test_what_cannot_be_had_is_said_and_leaves_nothing(server, tmp_path, kind, said):
    address = bad(server, kind)
    server.bodies["good"] = b"fine"
    log = made_log("mine", made_file("b.txt", b"fine", server.url("good")), made_file("a.swf", BODY, address))
    with pytest.raises(DownloadError) as error:
        fetch(log, tmp_path / "new" / "folder")
    text = str(error.value)
    assert said in text
    assert address in text
    assert "mine: a.swf (550,015 bytes)" in text
    assert "bfreplay datasets fetch mine --from FOLDER" in text
    assert everything_in(tmp_path) == []


def test_a_host_name_that_does_not_exist_is_said_to_be_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    # .invalid is reserved for names that never exist (RFC 6761)
    log = made_log("mine", made_file("a.swf", BODY, "http://logs.invalid/a.swf"))
    with pytest.raises(DownloadError, match=r"logs\.invalid cannot be reached: its name cannot be looked up"):
        fetch(log, tmp_path)


def test_a_host_that_does_not_answer_is_given_up_after_the_time_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "CONNECT_S", 0.05)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()):  # the only place in its queue is taken
            host = f"127.0.0.1:{deaf.getsockname()[1]}"
            log = made_log("mine", made_file("a.swf", BODY, f"http://{host}/a", f"http://{host}/b"))
            with pytest.raises(DownloadError, match=f"{host} cannot be reached: no answer within") as error:
                fetch(log, tmp_path)
    assert f"not tried: {host} could not be reached" in str(error.value)


def test_a_host_that_cannot_be_reached_is_tried_once(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    address = unused_address()
    logs = [made_log(name, made_file(f"{name}.swf", BODY, address)) for name in ("one", "two")]
    with pytest.raises(DownloadError) as error:
        fetch_all(logs, tmp_path)
    assert str(error.value).startswith("none of the 2 public logs could be fetched")
    assert str(error.value).count("Connection refused") == 1
    assert str(error.value).count("not tried") == 1
    assert "fetch one two --from FOLDER" in str(error.value)


def test_one_log_that_fails_does_not_keep_the_others_from_coming(server, tmp_path):
    server.bodies = {"a.swf": BODY}
    logs = [
        made_log("lost", made_file("lost.swf", BODY, server.url("lost.swf"))),
        made_log("good", made_file("a.swf", BODY, server.url("a.swf"))),
    ]
    with pytest.raises(DownloadError, match="1 of 2 public logs could not be fetched, the others are there"):
        fetch_all(logs, tmp_path)
    assert everything_in(tmp_path) == ["a.swf"]


def test_a_file_without_an_address_is_refused_with_the_reason(tmp_path):
    log = made_log("mine", made_file("a.swf", BODY))
    with pytest.raises(DownloadError, match="no address serves it as it is"):
        fetch(log, tmp_path)


def test_a_wrong_file_is_kept_unless_it_may_be_replaced(server, tmp_path):
    server.bodies = {"a.swf": BODY}
    log = made_log("a", made_file("a.swf", BODY, server.url("a.swf")))
    (tmp_path / "a.swf").write_bytes(OTHER)
    with pytest.raises(OutputExistsError, match=r"a\.swf .*sha256"):
        fetch(log, tmp_path)
    assert (tmp_path / "a.swf").read_bytes() == OTHER
    assert server.asked == []
    assert fetch(log, tmp_path, overwrite=True)[0].read_bytes() == BODY


def test_a_wrong_file_survives_a_replacement_that_fails(server, tmp_path):
    log = made_log("a", made_file("a.swf", BODY, server.url("absent")))
    (tmp_path / "a.swf").write_bytes(OTHER)
    with pytest.raises(DownloadError):
        fetch(log, tmp_path, overwrite=True)
    assert everything_in(tmp_path) == ["a.swf"]
    assert (tmp_path / "a.swf").read_bytes() == OTHER


def test_an_interrupt_leaves_nothing(server, tmp_path):
    server.bodies = {"a.swf": BODY}

    def interrupt(*_):
        raise KeyboardInterrupt

    log = made_log("a", made_file("a.swf", BODY, server.url("a.swf")))
    with pytest.raises(KeyboardInterrupt):
        fetch(log, tmp_path / "new", progress=interrupt)
    assert everything_in(tmp_path) == []
