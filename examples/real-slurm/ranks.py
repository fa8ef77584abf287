"""Ranks of a trainer: the pilot's contract, the exchange between ranks, checkpoints and the training loop.

A rank is one process of a data-parallel training. Rank 0 is the centre of a star: each step the others send it their
gradients over TCP and receive the mean. README.md describes the contract. Standard library only: the rank listens to
its agent before anything slow is imported, and arrays of float32 are used through the buffer protocol.
"""

from __future__ import annotations

import argparse
import contextlib
import hmac
import json
import math
import os
import signal
import socket
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

LOST, BROKEN_CHECKPOINT, FAILED = 3, 4, 2  # exit codes
HEADER = struct.Struct("!4sIBQI")  # magic, run, flags, samples, number of float32 values that follow
MAGIC = b"BFT1"
STOP = 1  # a flag: this step is the last one
PEER_LIMIT_S = 10.0  # a peer that is silent for longer than this, a step and a save is lost
MEET_LIMIT_S = 120.0  # for all ranks to start
HANDSHAKE_LIMIT_S = 5.0
HANDSHAKES = 100  # at a time
REPORT_S = 0.2  # a report at the first step end after it, so that two are at most 0.4 s or a step apart
LEARNING_RATE = 0.1
ONE_THREAD = {  # many ranks share few cores
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


class TrainerError(Exception):
    """An error that ends the rank with an exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Agent:
    """Listens to the agent: ``stop`` on stdin or SIGTERM, and the end of stdin.

    Threads of their own do so: a signal handler of Python would wait for the end of an import or a compilation.
    """

    def __init__(self) -> None:
        self.says_stop = False
        self._in_training = False
        self._lock = threading.Lock()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # threads inherit it; sigwait receives the signal
        for listen in (self._await_signals, self._read_lines):
            threading.Thread(target=listen, daemon=True).start()

    def training_begins(self) -> None:
        """From here on a stop waits for the end of the step."""
        with self._lock:
            self._in_training = True

    def _stop(self) -> None:
        with self._lock:
            if not self._in_training:
                os._exit(0)
            self.says_stop = True

    def _await_signals(self) -> None:
        while True:
            signal.sigwait({signal.SIGTERM})
            self._stop()

    def _read_lines(self) -> None:
        rest = b""
        while True:
            try:
                read = os.read(0, 4096)
            except OSError:
                read = b""
            if not read:
                os._exit(1)  # the agent is gone
            *lines, rest = (rest[-4096:] + read).split(b"\n")
            if any(line.strip() == b"stop" for line in lines):
                self._stop()


class Star:
    """Connections between rank 0 and the others."""

    def __init__(self, rank: int, size: int, run: int, secret: bytes) -> None:
        self.rank, self.size, self.run, self.secret = rank, size, run, secret
        self.limit_s = PEER_LIMIT_S
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
                theirs, at, values = self._receive(rank, len(array))
                if at != samples:
                    raise TrainerError(LOST, f"rank {rank} is at sample {at}, rank 0 at {samples}")
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


class Checkpoint:
    """Model and samples of a job in one file, replaced as a whole."""

    def __init__(self, folder: Path, run: int) -> None:
        self.path, self.run = folder / "checkpoint", run

    def read(self, parameters: Any) -> tuple[int, int]:
        """Copy the saved model into the parameters; return run and samples, zeros without a checkpoint."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return 0, 0
        except OSError as error:
            raise TrainerError(BROKEN_CHECKPOINT, f"{self.path} cannot be read: {error.strerror}") from None
        size = HEADER.size + 4 * len(parameters) + 4
        if len(data) != size or data[:4] != MAGIC or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
            message = f"{self.path} ({len(data)} bytes, {size} expected) is cut, damaged or of another model"
            raise TrainerError(BROKEN_CHECKPOINT, f"{message}; remove it to begin anew, which loses its samples")
        _, run, _, samples, _ = HEADER.unpack_from(data)
        parameters[:] = memoryview(data)[HEADER.size : -4].cast("f")
        return run, samples

    def write(self, samples: int, parameters: Any) -> None:
        """Save to a new name and rename, so that a kill leaves the earlier checkpoint."""
        if self.read(parameters.copy())[0] > self.run:  # this process slept while a later run went on
            raise TrainerError(LOST, f"{self.path} is of a later run than {self.run}")
        data = HEADER.pack(MAGIC, self.run, 0, samples, len(parameters)) + parameters.tobytes()
        new = self.path.with_name(f"checkpoint.{self.run}.new")
        try:
            with new.open("wb") as file:
                file.write(data + zlib.crc32(data).to_bytes(4, "big"))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            raise TrainerError(FAILED, f"{self.path} cannot be written: {error.strerror}") from None


def train(agent: Agent, options: argparse.Namespace, prepare: Callable[[int], tuple[Any, Any]]) -> None:
    """Train until a rank is told to stop or the work is done."""
    begun = time.monotonic()
    rank, size, run, port = (number(name) for name in ("RANK", "WORLD_SIZE", "BFREPLAY_RUN", "MASTER_PORT"))
    save_every_s = number("BFREPLAY_SAVE_EVERY_S", float)
    step_samples = size * options.batch
    slowdown = 1 + options.serial * (size - 1) + options.kappa * size * (size - 1)
    step_s = step_samples * slowdown / (options.rate * size)
    star = Star(rank, size, run, variable("BFREPLAY_SECRET").encode())
    star.limit_s = PEER_LIMIT_S + step_s + options.save_s
    checkpoint = Checkpoint(Path(variable("BFREPLAY_STATE")), run)
    if rank == 0:
        star.listen(port)
    time.sleep(options.start_s)
    parameters, gradient = prepare(options.batch)
    samples = checkpoint.read(parameters)[1] if rank == 0 else 0
    star.meet(variable("MASTER_ADDR"), port)
    _, samples = star.broadcast(samples, parameters)

    def save() -> None:
        time.sleep(options.save_s)
        checkpoint.write(samples, parameters)
        report(samples, saved=True, **({"done": True} if samples >= options.work else {}))

    agent.training_begins()
    step_at = report_at = time.monotonic()
    save_at, flags = begun + save_every_s, 0
    while save_at <= step_at:
        save_at += save_every_s  # nothing was made yet
    while not flags & STOP:
        if samples < options.work:
            vector = gradient(parameters, samples + rank * options.batch)  # its last element is the loss
            # a schedule: the time of the work is in the step; a late step is made up for, no more than one
            step_at = max(step_at + step_s, time.monotonic() - step_s)
            time.sleep(max(0.0, step_at - time.monotonic()))
            flags = star.mean(samples, vector, STOP if agent.says_stop else 0)
            parameters -= LEARNING_RATE * vector[:-1]
            samples += step_samples
        if samples >= options.work:
            flags = STOP
        if rank:
            continue
        now = time.monotonic()
        if flags & STOP or now >= save_at:
            save()
            step_at += time.monotonic() - now
            while save_at <= now:
                save_at += save_every_s
        if now >= report_at and not flags & STOP:
            report(samples, loss=round(float(vector[-1]), 6))
            report_at = now + REPORT_S


def report(samples: int, **more: Any) -> None:
    """Write a report for the agent."""
    print(json.dumps({"samples": samples, "at": time.time(), **more}), flush=True)


def log(message: str) -> None:
    """Write a line for people."""
    print(f"rank {os.environ.get('RANK')}: {message}", file=sys.stderr, flush=True)


def variable(name: str) -> str:
    """Return a variable of the environment that has to be there."""
    if not (value := os.environ.get(name)):
        raise TrainerError(FAILED, f"{name} is not set; the agent sets it (README.md, contract of a trainer)")
    return value


def number(name: str, kind: type = int) -> Any:
    """Return a variable of the environment as a number that is not negative."""
    text = variable(name)
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not value >= 0 or (value == 0 and name != "RANK"):
        raise TrainerError(FAILED, f"{name} is {text!r}, not a positive number")
    return value


def positive(text: str) -> float:
    """Return a positive number of the command line."""
    value = float(text)
    if not value > 0:
        raise ValueError
    return value


def not_negative(text: str) -> float:
    """Return a number of the command line that is zero or more."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


def main(description: str, prepare: Callable[[int], tuple[Any, Any]], rate: float = math.inf) -> NoReturn:
    """Run one rank as the environment and the command line say, and exit."""
    agent = Agent()
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", type=int, default=32, help="samples of a step on each rank (default: 32)")
    parser.add_argument("--rate", type=positive, default=rate, help=f"samples/s of one rank at most (default: {rate})")
    parser.add_argument("--serial", type=not_negative, default=0.0, help="share of the work that is not parallel")
    parser.add_argument("--kappa", type=not_negative, default=0.0, help="cost of each pair of ranks")
    parser.add_argument("--start-s", type=not_negative, default=0.0, help="seconds that a start takes longer")
    parser.add_argument("--save-s", type=not_negative, default=0.0, help="seconds that a checkpoint takes longer")
    parser.add_argument("--work", type=positive, default=math.inf, help="samples of the job (default: no end)")
    options = parser.parse_args()
    code = 0
    try:
        if options.batch < 1:
            raise TrainerError(FAILED, f"--batch is {options.batch}; it must be at least 1")
        train(agent, options, prepare)
    except TrainerError as error:
        log(str(error))
        code = error.code
    except BrokenPipeError:
        code = 1  # the agent is gone
    os._exit(code)  # reports are flushed; threads of a framework are not waited for
