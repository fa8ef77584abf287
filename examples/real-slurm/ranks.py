"""Ranks of a trainer: the pilot's contract, checkpoints and the training loop.

A rank is one process of a data-parallel training; README.md describes the contract. Standard library only: the rank
listens to its agent before anything slow is imported, and arrays of float32 are used through the buffer protocol.
"""

import argparse
import contextlib
import json
import math
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from star import FAILED, HEADER, LOST, MAGIC, Star, TrainerError, log

BROKEN_CHECKPOINT = 4  # exit code
STOP = 1  # a flag: this step is the last one
PEER_LIMIT_S = 10.0  # a peer that is silent for longer than this, a step and a save is lost
REPORT_S = 0.2  # a report at the first step end after it, so that two are at most 0.4 s or a step apart
LEARNING_RATE = 0.1
ONE_THREAD = {  # many ranks share few cores
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",  # size of XLA's pools of threads
    "JAX_PLATFORMS": "cpu",
}


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
    rank = variable("RANK", number(0, int))
    size, run, port = (variable(name, number(1, int)) for name in ("WORLD_SIZE", "BFREPLAY_RUN", "MASTER_PORT"))
    save_every_s = variable("BFREPLAY_SAVE_EVERY_S", number(0.001))
    step_samples = size * options.batch
    slowdown = 1 + options.serial * (size - 1) + options.kappa * size * (size - 1)
    step_s = options.batch * slowdown / options.rate
    star = Star(rank, size, run, variable("BFREPLAY_SECRET", str.encode))
    host = variable("MASTER_ADDR", str)
    checkpoint = Checkpoint(variable("BFREPLAY_STATE", Path), run)
    if rank == 0:
        star.listen(port)
    time.sleep(options.start_s)
    parameters, gradient = prepare(options.batch)
    samples = checkpoint.read(parameters)[1] if rank == 0 else 0
    star.meet(host, port)
    _, samples = star.broadcast(samples, parameters)
    star.limit_s = PEER_LIMIT_S + step_s + options.save_s

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


def number(least: float, kind: type = float) -> Callable[[str], Any]:
    """Return a function that reads a number and refuses one below the least."""

    def number(text: str) -> Any:
        if not (value := kind(text)) >= least:
            raise ValueError
        return value

    return number


def variable(name: str, read: Callable[[str], Any]) -> Any:
    """Return a variable of the environment, which the agent sets."""
    text = os.environ.get(name, "")
    with contextlib.suppress(ValueError):
        if text:
            return read(text)
    raise TrainerError(FAILED, f"{name} is {text!r}; it has to be what README.md says (contract of a trainer)")


def main(description: str, prepare: Callable[[int], tuple[Any, Any]], rate: float = math.inf) -> NoReturn:
    """Run one rank as the environment and the command line say, and exit."""
    agent = Agent()
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", type=number(1, int), default=32, help="samples of a step on each rank (default: 32)")
    parser.add_argument("--rate", type=number(1e-9), default=rate, help=f"samples/s of one rank (default: {rate})")
    parser.add_argument("--serial", type=number(0), default=0.0, help="share of the work that is not parallel")
    parser.add_argument("--kappa", type=number(0), default=0.0, help="cost of each pair of ranks")
    parser.add_argument("--start-s", type=number(0), default=0.0, help="seconds that a start takes longer")
    parser.add_argument("--save-s", type=number(0), default=0.0, help="seconds that a checkpoint takes longer")
    parser.add_argument("--work", type=number(1), default=math.inf, help="samples of the job (default: no end)")
    options = parser.parse_args()
    code = 0
    try:
        train(agent, options, prepare)
    except TrainerError as error:
        log(str(error))
        code = error.code
    os._exit(code)  # reports are flushed; threads of a framework are not waited for
