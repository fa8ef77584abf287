"""Coordinator of the pilot: lets workers that come and go serve elastic trainings, as a decider says which.

A training runs on a set of nodes, a rank on each. When the decider wants another set, all ranks are told to save and
stop, and start again on the new one. Of a node that is reclaimed the rank saves and stops by itself, and so do the
others of its training. After an end that was not in order a training goes back to its last checkpoint.
"""

import asyncio
import contextlib
import hmac
import json
import secrets
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

from agent import LINE_BYTES, proof
from measures import Meter, Run

from bfreplay import BfreplayError

PING_S = 3.0
SILENCE_S = 12.0  # a worker and a pilot that have not heard of each other for so long part
TICK_S = 0.05
MOST_FAILURES = 5  # one after another, without a step
GO_S = 0.5  # a worker that leaves waits for so long, at most, until those that wait are held
SETTLED_S = 5.0  # by then a decision has been taken, if there was something to decide
SKEW_S = 5.0  # by how much the clock of a node may differ
MOST_SAMPLES = 1e30
STEADY_S = 30.0  # a training that runs on is measured anew after so long


class Decider(Protocol):
    """Decides which training each node serves. Times are microseconds since 1970 that never decrease."""

    def change(self, time_us: int, node: str, is_idle: bool) -> None:
        """Note that a worker has joined on a node, or that the node is reclaimed."""

    def decide(self, time_us: int) -> list[dict]:
        """Return the decisions that have become final up to now: their `time_us`, and the `counts` of each training."""

    def nodes(self) -> Mapping[str, tuple[str, ...]]:
        """Return the nodes of each training."""

    def report(self, time_us: int, training: str, samples: float, ended: str = "") -> None:
        """Note measured progress, and whether a training has really ended."""

    def measured(self, time_us: int, training: str, meter: Meter) -> None:
        """Note what has been measured of a training."""


@dataclass(eq=False)
class Worker:
    """One worker that has joined."""

    node: str
    slurm_job: str
    writer: asyncio.StreamWriter
    address: str
    port: int  # free on its node
    heard_at: float
    is_leaving: bool = False
    is_gone: bool = False

    def send(self, **message: object) -> None:
        """Write a message; a worker that is gone is noticed elsewhere."""
        with contextlib.suppress(OSError):
            self.writer.write(json.dumps(message).encode() + b"\n")


@dataclass
class Training:
    """One elastic training: its command, and its present run."""

    name: str
    trainer: list[str]
    min_nodes: int
    max_nodes: int
    save_every_s: float
    run: int = 0
    nodes: frozenset[str] = frozenset()  # of the present run
    ranks: dict[str, Worker] = field(default_factory=dict)  # those of it that have not ended, by node
    samples: float = 0.0
    saved: float = 0.0
    reported_at: float = 0.0
    is_stopping: bool = False
    is_failing: bool = False  # a rank of this run has not ended in order
    is_unasked: bool = False  # a rank of this run has ended although nobody had asked it to
    is_done: bool = False
    has_stepped: bool = False
    n_failures: int = 0
    not_before: float = 0.0
    meter: Meter = field(default_factory=Meter)
    changed: tuple[float, float, bool] | None = None  # since its nodes last changed: when, samples then, had it nodes?


class Coordinator:
    """Workers, trainings, and what connects them."""

    decider: Decider
    nodes: Collection[str] = ()  # those that may join, if not all

    def __init__(self, folder: Path, trainings: list[Training], log: TextIO, grace_s: float, latest_run: int) -> None:
        self.folder = folder
        self.trainings = {training.name: training for training in trainings}
        self.log = log
        self.grace_s = grace_s
        self.settled_s, self.go_s = SETTLED_S, GO_S
        self.secret = secrets.token_hex(32)
        self.workers: dict[str, Worker] = {}  # by node
        self.latest_run = latest_run
        self.reclaim = asyncio.Event()  # a worker has to leave
        self.joined: set[str] = set()  # jobs of all workers that ever joined
        self.decided_us = self.changed_us = 0
        self._offset = time.time() - time.monotonic()  # a clock that is set must not turn time back
        self._latest_us = 0

    def now(self) -> float:
        """Return the time, in seconds since 1970; it never runs backwards."""
        return time.monotonic() + self._offset

    def next_us(self) -> int:
        """Return the time in microseconds, each value once."""
        self._latest_us = max(round(self.now() * 1e6), self._latest_us + 1)
        return self._latest_us

    def note(self, event: str, t: float | None = None, **more: object) -> None:
        """Write a line of the log; `t` is its time, now unless given."""
        line = {"t": round(self.now() if t is None else t, 6), "ev": event, **more}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()

    # -- workers ---------------------------------------------------------------------------------------------------

    async def serve(self, host: str) -> asyncio.Server:
        """Listen for workers; say where in a file that only this user can read."""
        self.failure: asyncio.Future = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(self.welcome, host, 0, limit=LINE_BYTES)
        place = {"host": host, "port": server.sockets[0].getsockname()[1], "secret": self.secret}
        beside = self.folder / "pilot.json.new"
        beside.unlink(missing_ok=True)
        beside.touch(mode=0o600)
        beside.write_text(json.dumps(place))
        beside.replace(self.folder / "pilot.json")
        return server

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Let a worker join that proves it knows the secret, and listen to it until it is gone."""
        try:
            if (worker := await self.greet(reader, writer)) is not None:
                try:
                    self.join(worker)
                    while not worker.is_gone and (line := await reader.readline()):
                        worker.heard_at = self.now()
                        self.hear(worker, json.loads(line))
                except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    print(f"pilot: the worker on {worker.node} is lost: {error!r}", file=sys.stderr)
                    if isinstance(error, BfreplayError):
                        raise
                finally:
                    self.lose(worker)
        except Exception as error:
            self.failure.done() or self.failure.set_exception(error)  # ends the pilot, in order
        finally:
            writer.close()

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Worker | None:
        """Return the worker at the other end of a connection; None for a stranger."""
        own = secrets.token_hex(16)
        try:
            writer.write(json.dumps({"nonce": own}).encode() + b"\n")
            hello = json.loads(await asyncio.wait_for(reader.readline(), 5))
            if not hmac.compare_digest(hello["proof"], proof(self.secret, "agent", own, hello["nonce"])):
                raise ConnectionError("it does not know the secret")
            if self.nodes and hello["node"] not in self.nodes:
                raise ConnectionError(f"node {hello['node']} was not in the partition when the pilot began")
            worker = Worker(
                node=str(hello["node"]),
                slurm_job=str(hello["slurm_job"]),
                writer=writer,
                address=writer.get_extra_info("peername")[0],
                port=int(hello["port"]),
                heard_at=self.now(),
            )
        except Exception as error:  # of a stranger, whatever it sends
            print(f"pilot: refused a connection: {error!r}", file=sys.stderr)
            return None
        own_proof = proof(self.secret, "pilot", hello["nonce"], own)
        worker.send(proof=own_proof, grace_s=self.grace_s, silence_s=SILENCE_S, go_s=self.go_s)
        return worker

    def join(self, worker: Worker) -> None:
        """Give the decider the node of a worker; one that was there before has to leave."""
        if (before := self.workers.get(worker.node)) is not None:
            self.lose(before)
            before.writer.transport.abort()
        self.workers[worker.node] = worker
        self.joined.add(worker.slurm_job)
        self.change(worker.node, True, "join", slurm_job=worker.slurm_job)

    def change(self, node: str, is_idle: bool, event: str, **more: object) -> None:
        """Note that a node has come or is reclaimed, and let the decider decide on it."""
        self.changed_us = self.next_us()
        self.note(event, self.changed_us / 1e6, node=node, **more)
        for training in self.trainings.values():
            if not is_idle and node in training.nodes:
                self.begin_change(training, self.changed_us / 1e6)
        self.decider.change(self.changed_us, node, is_idle)
        self.tick()

    def hear(self, worker: Worker, message: dict) -> None:
        """Take what a worker says."""
        event = message["ev"]
        if event == "leaving" and not worker.is_leaving:
            seen, worker.is_leaving = float(message["seen"]), True
            self.reclaim.set()
            self.change(worker.node, False, "leaving", seen=seen)
        elif event == "exited":
            worker.port = int(message["port"])
            self.end_rank(worker, int(message["run"]), int(message["code"]))
        elif event == "report":
            training = self.serves(worker, int(message["run"]))
            report = message["report"]
            samples = report.get("samples")
            if training is not None and isinstance(samples, int | float) and 0 <= samples <= MOST_SAMPLES:
                self.take_report(training, report)

    def let_go(self) -> None:
        """Let the workers go that have to leave: no other worker takes their nodes now."""
        for worker in self.workers.values():
            if worker.is_leaving:
                worker.send(do="go")

    def lose(self, worker: Worker) -> None:
        """Forget a worker whose connection has ended."""
        if worker.is_gone:
            return
        worker.is_gone = True
        if self.workers.get(worker.node) is worker:
            del self.workers[worker.node]
        for training in self.trainings.values():
            if training.ranks.get(worker.node) is worker:
                self.end_rank(worker, training.run, -9)
        if worker.is_leaving:
            self.note("gone", node=worker.node, told=True)
        else:
            self.change(worker.node, False, "gone", told=False)

    # -- trainings -------------------------------------------------------------------------------------------------

    def serves(self, worker: Worker, run: int) -> Training | None:
        """Return the training whose present run has a rank on this worker."""
        for training in self.trainings.values():
            if training.run == run and training.ranks.get(worker.node) is worker:
                return training
        return None

    def take_report(self, training: Training, report: dict) -> None:
        """Note progress, and what else a trainer says."""
        samples, at = float(report["samples"]), report.get("at")
        if not (isinstance(at, int | float) and abs(at - self.now()) < SKEW_S):
            at = self.now()
        training.samples, training.has_stepped, training.n_failures = samples, True, 0
        if report.get("saved"):
            training.saved = samples
        if not training.is_stopping:
            training.meter.report(at, samples)
        more = {key: report[key] for key in ("saved", "done", "loss") if key in report}
        self.note("samples", job=training.name, run=training.run, samples=report["samples"], at=at, **more)
        if report.get("done") and not training.is_done:
            training.is_done = True
            self.decider.report(self.next_us(), training.name, samples, "finished")
            self.tick()
        elif self.now() >= training.reported_at + 2.0:
            training.reported_at = self.now()
            self.decider.report(self.next_us(), training.name, samples)

    def begin_change(self, training: Training, at: float) -> None:
        """Note that the nodes of a training change at this time."""
        run = training.meter.run
        samples = training.samples
        if run is not None and run.last is not None and (rate := run.rate()) > 0:
            samples = run.last[1] + rate * min(max(at - run.last[0], 0.0), 2.0)
        if training.meter.end():
            self.decider.measured(self.next_us(), training.name, training.meter)
        training.changed = at, samples, bool(training.ranks)

    def end_rank(self, worker: Worker, run: int, code: int) -> None:
        """Note that a rank has ended; when it was the last, that the run has."""
        training = self.serves(worker, run)
        if training is None:
            return
        del training.ranks[worker.node]
        self.note("exited", job=training.name, run=run, node=worker.node, code=code)
        is_asked = training.is_stopping
        training.is_unasked |= not is_asked
        training.is_failing |= code != 0
        if training.ranks:
            if not is_asked:  # before the first step the others would wait for it
                self.stop(training)
            return
        # what a lost worker has ended is no failure of the training
        is_failure = training.is_unasked and not training.has_stepped and self.workers.keys() >= training.nodes
        training.nodes, training.is_stopping = frozenset(), False
        if training.is_failing:
            training.samples = training.saved
            self.decider.report(self.next_us(), training.name, training.saved)
        training.n_failures += is_failure
        training.not_before = self.now() + min(2.0**training.n_failures - 1, 60)
        if is_failure and training.n_failures >= MOST_FAILURES:
            training.is_done = True
            reason = f"{MOST_FAILURES} runs without a step; see {self.folder / 'state' / training.name}"
            self.note("failed", job=training.name, reason=reason)
            print(f"pilot: training {training.name} is given up: {reason}", file=sys.stderr)
            self.decider.report(self.next_us(), training.name, training.saved, "failed")

    def start(self, training: Training, nodes: tuple[str, ...]) -> None:
        """Start a rank on each of these nodes."""
        workers = [self.workers[node] for node in nodes]
        self.latest_run += 1
        training.run = self.latest_run
        training.nodes, training.ranks = frozenset(nodes), dict(zip(nodes, workers, strict=True))
        since, samples, is_restart = training.changed or (self.now(), training.samples, False)
        # the pause after an end that no decision caused is not measured
        is_measured = training.is_failing or training.is_unasked
        training.meter.begin(Run(len(nodes), since, samples, is_restart, is_measured=is_measured))
        training.changed, training.is_failing, training.is_unasked, training.has_stepped = None, False, False, False
        shared = {
            "WORLD_SIZE": str(len(nodes)),
            "MASTER_ADDR": workers[0].address,
            "MASTER_PORT": str(workers[0].port),
            "BFREPLAY_JOB": training.name,
            "BFREPLAY_RUN": str(training.run),
            "BFREPLAY_STATE": str(self.folder / "state" / training.name),
            "BFREPLAY_SAVE_EVERY_S": str(training.save_every_s),
            "BFREPLAY_SECRET": secrets.token_hex(16),
        }
        for rank, worker in enumerate(workers):
            place = {"state": shared["BFREPLAY_STATE"], "environment": {**shared, "RANK": str(rank)}}
            worker.send(do="start", run=training.run, trainer=training.trainer, **place)
        self.note("start", job=training.name, run=training.run, nodes=nodes)

    def is_busy(self, nodes: tuple[str, ...]) -> bool:
        """Return whether a rank still runs on one of these nodes, of a training that has to give it up."""
        return any(node in training.ranks for training in self.trainings.values() for node in nodes)

    def stop(self, training: Training) -> None:
        """Let all ranks of a training save and stop."""
        training.is_stopping = True
        for worker in training.ranks.values():
            worker.send(do="stop", run=training.run)
        self.note("stop", job=training.name, run=training.run)

    def tick(self) -> None:
        """Take the decisions that are due, and let each training run where it should."""
        for decision in self.decider.decide(self.next_us()):
            self.decided_us = decision["time_us"]
            self.note("decision", nodes=self.decider.nodes(), **decision)
        wanted = self.decider.nodes()
        # what comes together is decided once it has settled; until then nobody starts on what is left
        is_settled = self.decided_us >= self.changed_us or self.now() > self.changed_us / 1e6 + self.settled_s
        for training in self.trainings.values():
            nodes = wanted.get(training.name, ())
            if training.is_done or any(node not in self.workers or self.workers[node].is_leaving for node in nodes):
                nodes = ()
            has_other = set(nodes) != training.nodes
            if training.ranks and has_other and not training.is_stopping:
                if training.changed is None:
                    self.begin_change(training, self.decided_us / 1e6)
                self.stop(training)
            elif not training.ranks and len(nodes) < training.min_nodes and is_settled:
                training.changed, training.is_failing, training.is_unasked = None, False, False  # a start from zero
            elif not training.ranks and is_settled and not self.is_busy(nodes):
                training.changed = training.changed or (self.decided_us / 1e6, training.samples, False)
                if self.now() >= training.not_before:
                    self.start(training, nodes)

    async def watch(self) -> None:
        """Tick, greet the workers, and part with those that are silent; until cancelled."""
        greeted_at = measured_at = self.now()
        while True:
            await asyncio.sleep(TICK_S)
            self.tick()
            if self.now() >= greeted_at + PING_S:
                was_asleep = self.now() > greeted_at + 2 * PING_S  # then what workers said has not been read yet
                greeted_at = self.now()
                for worker in list(self.workers.values()):
                    worker.send(do="ping")
                    if self.now() > worker.heard_at + SILENCE_S and not was_asleep:
                        worker.writer.transport.abort()
            if self.now() >= measured_at + STEADY_S:
                measured_at = self.now()
                for training in self.trainings.values():
                    if training.meter.end(goes_on=True):
                        self.decider.measured(self.next_us(), training.name, training.meter)

    async def close(self) -> None:
        """Let all trainings save and stop, and all workers leave."""
        self.note("closing")
        for training in self.trainings.values():
            training.is_done = True
            if training.ranks and not training.is_stopping:
                self.stop(training)
        limit = self.now() + 12
        while any(training.ranks for training in self.trainings.values()) and self.now() < limit:
            await asyncio.sleep(TICK_S)
        for worker in self.workers.values():
            worker.send(do="leave")
        while self.workers and self.now() < limit + 3:
            await asyncio.sleep(TICK_S)
