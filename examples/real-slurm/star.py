"""Exchange between the ranks of a training: rank 0 is the centre of a star.

Each step the others send it their gradients over TCP and receive the mean. A message is a header of fixed size and
float32 values.
"""

import contextlib
import hmac
import os
import socket
import struct
import sys
import threading
import time
from typing import Any

FAILED, LOST = 2, 3  # exit codes
HEADER = struct.Struct("!4sIBQI")  # magic, run, flags, samples, number of float32 values that follow
MAGIC = b"BFT1"
MEET_LIMIT_S = 120.0  # for all ranks to start
HANDSHAKE_LIMIT_S = 5.0
HANDSHAKES = 100  # at a time


class TrainerError(Exception):
    """An error that ends the rank with an exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Star:
    """Connections between rank 0 and the others."""

    def __init__(self, rank: int, size: int, run: int, secret: bytes) -> None:
        self.rank, self.size, self.run, self.secret = rank, size, run, secret
        self.limit_s = MEET_LIMIT_S  # of silence
        self._peers: dict[int, socket.socket] = {}  # on rank 0 all others, elsewhere rank 0
        self._server: socket.socket | None = None

    def listen(self, port: int) -> None:
        """Open the port of rank 0."""
        try:
            self._server = socket.create_server(("", port), backlog=128)
        except OSError as error:
            message = f"rank 0 cannot listen on MASTER_PORT {port}: {error.strerror}; choose another port"
            raise TrainerError(FAILED, message) from None

    def meet(self, host: str, port: int) -> None:
        """Wait until all ranks are connected; whoever does not know the secret is dropped."""
        until = time.monotonic() + MEET_LIMIT_S
        if self._server is not None:
            self._server.settimeout(0.1)
            while len(self._peers) < self.size - 1:
                self._check(until, f"ranks missing: {sorted(set(range(1, self.size)) - set(self._peers))}")
                with contextlib.suppress(OSError):
                    peer, _ = self._server.accept()
                    if threading.active_count() > HANDSHAKES:
                        peer.close()
                    else:  # in a thread: a silent stranger delays nobody
                        threading.Thread(target=self._admit, args=(peer,), daemon=True).start()
            self._server.close()
        while self.rank and not self._peers:
            self._check(until, f"rank 0 does not answer at {host}:{port}")
            with contextlib.suppress(OSError):
                self._greet(socket.create_connection((host, port), HANDSHAKE_LIMIT_S), until)
            if not self._peers:
                time.sleep(0.1)

    def _check(self, until: float, message: str) -> None:
        if time.monotonic() > until:
            raise TrainerError(LOST, f"{message} (after {MEET_LIMIT_S:g} s)")

    def _proof(self, of: bytes, *parts: bytes) -> bytes:
        return hmac.digest(self.secret, b"".join((of, *parts)), "sha256")

    def _admit(self, peer: socket.socket) -> None:
        challenge = os.urandom(16)
        try:
            peer.settimeout(HANDSHAKE_LIMIT_S)
            peer.sendall(challenge)
            answer = bytes(receive(peer, 52, HANDSHAKE_LIMIT_S))
            rank = int.from_bytes(answer[:4], "big")
            if 0 < rank < self.size and hmac.compare_digest(answer[20:], self._proof(b"rank", challenge, answer[:20])):
                peer.sendall(self._proof(b"centre", answer[:20], challenge))
                self._peers[rank] = peer
                return
        except OSError:
            pass
        log("dropped a connection that did not know the secret")
        peer.close()

    def _greet(self, centre: socket.socket, until: float) -> None:
        if centre.getsockname() == centre.getpeername():  # TCP can connect a port to itself
            return centre.close()
        challenge = bytes(receive(centre, 16, until - time.monotonic()))  # rank 0 may still be starting
        mine = self.rank.to_bytes(4, "big") + os.urandom(16)
        centre.sendall(mine + self._proof(b"rank", challenge, mine))
        if hmac.compare_digest(receive(centre, 32, HANDSHAKE_LIMIT_S), self._proof(b"centre", mine, challenge)):
            self._peers[0] = centre
        else:
            centre.close()

    def broadcast(self, samples: int, array: Any, flags: int = 0) -> tuple[int, int]:
        """Copy rank 0's array into that of the others; return its flags and samples."""
        if self.rank == 0:
            for rank in self._peers:
                self._send(rank, flags, samples, array)
            return flags, samples
        flags, samples, array[:] = self._receive(0, len(array))
        return flags, samples

    def mean(self, samples: int, array: Any, flags: int) -> int:
        """Replace the array by the mean over all ranks; return the flags that any of them has set."""
        if self.rank:
            self._send(0, flags, samples, array)
        else:
            for rank in self._peers:
                theirs, _, values = self._receive(rank, len(array))
                array += values
                flags |= theirs
            array /= self.size
        return self.broadcast(samples, array, flags)[0]

    def _send(self, rank: int, flags: int, samples: int, array: Any) -> None:
        try:
            self._peers[rank].settimeout(self.limit_s)
            self._peers[rank].sendall(HEADER.pack(MAGIC, self.run, flags, samples, len(array)) + array.tobytes())
        except OSError as error:
            raise TrainerError(LOST, f"rank {rank} is lost: {error}") from None

    def _receive(self, rank: int, count: int) -> tuple[int, int, memoryview]:
        try:
            magic, run, flags, samples, length = HEADER.unpack(receive(self._peers[rank], HEADER.size, self.limit_s))
            if (magic, run, length) != (MAGIC, self.run, count):
                raise TrainerError(LOST, f"rank {rank} sent {length} values for run {run}, not {count} for {self.run}")
            return flags, samples, memoryview(receive(self._peers[rank], 4 * count, self.limit_s)).cast("f")
        except OSError as error:
            raise TrainerError(LOST, f"rank {rank} is lost: {error}") from None


def receive(peer: socket.socket, size: int, limit_s: float) -> bytearray:
    """Receive exactly so many bytes, or raise OSError."""
    data, until = bytearray(), time.monotonic() + limit_s
    while len(data) < size:
        peer.settimeout(max(until - time.monotonic(), 0.001))
        part = peer.recv(size - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return data


def log(message: str) -> None:
    """Write a line for people."""
    print(f"rank {os.environ.get('RANK')}: {message}", file=sys.stderr, flush=True)
