"""A web server on this machine that serves what a test tells it to, well or badly."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from bfreplay.datasets.public_logs.entries import LogFile, PublicLog


@dataclass
class Server:
    """Path to body; ``cut`` names paths whose body ends early, ``endless`` those without a length that go on."""

    address: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    endless: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@contextmanager
def serving() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            server.asked.append(path)
            if path not in server.bodies:
                self.send_error(404)
                return
            body = server.bodies[path]
            self.send_response(200)
            if path not in server.endless:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if path in server.cut else body)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{web.server_port}")
    thread = Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def unused_address() -> str:
    """Address without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}/log.swf"


def made_log(name: str, *files: LogFile) -> PublicLog:
    """An entry with these files and made-up words."""
    return PublicLog(
        name=name,
        title="made up",
        format="swf",
        quality="B",
        clock="relative",
        good_for="tests",
        bad_for="results",
        traps=("none",),
        licence="none",
        acknowledge="nobody",
        citation="nothing",
        page="https://example.org",
        files=files,
        ingest=f"bfreplay ingest swf {files[0].name} -o x.parquet",
    )


def made_file(name: str, body: bytes, *addresses: str, content: bytes | None = None) -> LogFile:
    """A file of this body; ``content`` is what it holds if it is compressed."""
    inside = body if content is None else content
    return LogFile(
        name, len(body), hashlib.sha256(body).hexdigest(), len(inside), hashlib.sha256(inside).hexdigest(), addresses
    )
