"""Worker of the pilot on one node: started by srun in a one-node job, it runs ranks of a trainer as the pilot asks.

python agent.py PILOT_FOLDER

It leaves when Slurm, the pilot or a silence of the pilot tells it to; the state of the training is saved before.
"""

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Coroutine
from pathlib import Path

STOP_S = 10.0  # a rank that has not stopped by then is killed
LINE_BYTES = 1 << 16


def proof(secret: str, side: str, *nonces: str) -> str:
    """Return what only a holder of the secret can answer to these nonces."""
    return hmac.new(secret.encode(), " ".join((side, *nonces)).encode(), hashlib.sha256).hexdigest()


def free_port() -> int:
    """Return a port of this node on which nothing listens now."""
    while True:
        port = secrets.randbelow(10_000) + 20_000  # below those that the system gives to connections
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port


class Agent:
    """One worker: a connection to the pilot, and at most one rank of a training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rank: asyncio.subprocess.Process | None = None
        self.run = 0
        self.limit_s = STOP_S  # for a rank to stop
        self.hello: dict = {}  # of the pilot
        self.tasks: set[asyncio.Task] = set()  # nothing else keeps them alive
        self.leaving = asyncio.Event()
        self.may_go = asyncio.Event()

    def send(self, **message: object) -> None:
        """Write a message to the pilot; one that is gone does not matter."""
        with contextlib.suppress(OSError):
            self.writer.write(json.dumps(message).encode() + b"\n")

    def begin(self, task: Coroutine) -> None:
        """Let a task run beside the others."""
        self.tasks.add(created := asyncio.create_task(task))
        created.add_done_callback(self.tasks.discard)

    async def connect(self) -> None:
        """Connect to the pilot; either side proves that it knows the secret of the folder."""
        place = json.loads((self.folder / "pilot.json").read_text())
        self.reader, self.writer = await asyncio.open_connection(place["host"], place["port"], limit=LINE_BYTES)
        theirs, own = json.loads(await self.reader.readline())["nonce"], secrets.token_hex(16)
        node = os.environ.get("SLURMD_NODENAME", socket.gethostname())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.terminate)  # from here on the pilot knows it
        self.send(
            nonce=own,
            proof=proof(place["secret"], "agent", theirs, own),
            node=node,
            slurm_job=os.environ.get("SLURM_JOB_ID", ""),
            port=free_port(),
        )
        self.hello = json.loads(await self.reader.readline())
        if not hmac.compare_digest(self.hello["proof"], proof(place["secret"], "pilot", own, theirs)):
            raise ConnectionError("the other side does not know the secret of this pilot")

    async def listen(self) -> None:
        """Do what the pilot asks, until it is silent for too long, gone, or lets this worker leave."""
        try:
            while line := await asyncio.wait_for(self.reader.readline(), self.hello["silence_s"]):
                message = json.loads(line)
                if message["do"] == "start":
                    await self.start(message)
                elif message["do"] == "stop" and message["run"] == self.run:
                    self.begin(self.stop())
                elif message["do"] == "ping":
                    self.send(ev="alive")
                elif message["do"] == "go":
                    self.may_go.set()
                elif message["do"] == "leave":
                    break
        except Exception as error:  # whatever it is, this worker must not stay without a pilot
            print(f"agent.py: the pilot is lost: {error!r}", file=sys.stderr)
        finally:
            self.leaving.set()
            self.may_go.set()

    async def start(self, order: dict) -> None:
        """Start a rank, and watch it."""
        self.run = order["run"]
        if self.leaving.is_set():
            return self.send(ev="exited", run=self.run, code=-signal.SIGTERM, port=free_port())
        log = Path(order["state"]) / f"rank-{order['environment']['RANK']}.log"
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as errors:
                pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": errors}
                environment = {**os.environ, **order["environment"]}
                self.rank = await asyncio.create_subprocess_exec(
                    *order["trainer"], env=environment, cwd=order["state"], limit=LINE_BYTES, process_group=0, **pipes
                )
        except (OSError, ValueError) as error:
            print(f"agent.py: run {self.run} cannot start: {error}", file=sys.stderr)
            self.send(ev="exited", run=self.run, code=127, port=free_port())
        else:
            self.begin(self.watch(self.rank, self.run))
            if self.leaving.is_set():
                await self.stop()
        return None

    async def watch(self, rank: asyncio.subprocess.Process, run: int) -> None:
        """Pass on what a rank reports, and how it ended."""
        reading = asyncio.create_task(self.pass_on(rank, run))
        while rank.returncode is None:
            # wait() alone may also wait for the end of its output, which what it has left behind holds open
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(rank.wait(), 0.5)
        self.kill(rank)
        await asyncio.wait([reading], timeout=1)
        self.rank = None
        self.send(ev="exited", run=run, code=rank.returncode, port=free_port())

    async def pass_on(self, rank: asyncio.subprocess.Process, run: int) -> None:
        """Pass on the reports of a rank; kill one that writes a line without an end."""
        try:
            while line := await rank.stdout.readline():
                with contextlib.suppress(ValueError, RecursionError, OSError):
                    report = json.loads(line)
                    if isinstance(report, dict):
                        self.send(ev="report", run=run, report=report)
                        await self.writer.drain()  # a rank that writes faster than the pilot reads has to wait
        except ValueError:
            self.kill(rank)

    def kill(self, rank: asyncio.subprocess.Process) -> None:
        """Kill a rank and all that it has started."""
        with contextlib.suppress(OSError):
            os.killpg(rank.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Stop the rank in order; kill it when it takes too long."""
        if (rank := self.rank) is None:
            return
        with contextlib.suppress(OSError):
            rank.stdin.write(b"stop\n")
        try:
            await asyncio.wait_for(rank.wait(), self.limit_s)
        except TimeoutError:
            self.kill(rank)

    def terminate(self) -> None:
        """Leave: Slurm wants the node."""
        self.limit_s = max(self.hello.get("grace_s", 0) - 1.0, 0.5)
        self.send(ev="leaving", seen=time.time())
        self.leaving.set()
        if not self.hello:  # nothing runs: do not wait for the answer of the pilot
            self.may_go.set()
            self.writer.close()

    async def work(self) -> None:
        """Serve the pilot from the connection to the end."""
        await asyncio.wait_for(self.connect(), STOP_S)
        self.begin(self.listen())
        await self.leaving.wait()
        await self.stop()
        while self.rank is not None:  # it has ended; what it said last is still to be passed on
            await asyncio.sleep(0.01)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.may_go.wait(), self.hello.get("go_s", 0))
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), 1)


def main() -> int:
    """Work for the pilot of a folder."""
    try:
        asyncio.run(Agent(Path(sys.argv[1])).work())
    except (OSError, ValueError, KeyError, TypeError, TimeoutError) as error:
        print(f"agent.py: no pilot to work for: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
