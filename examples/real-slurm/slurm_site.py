"""Slurm as the pilot sees it: its commands, whether a site lets workers run, and the supply of workers."""

import argparse
import asyncio
import contextlib
import hashlib
import math
import os
import pwd
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from coordinator import Coordinator

# filters would hide workers, arrays multiply them; of SLURM_* the pilot has those of its own job if it runs in one
UNWANTED = re.compile("(SQUEUE|SCANCEL|SINFO)_|SBATCH_(ARRAY|WAIT)|SLURM_(?!CONF|CLUSTERS|JWT)")
POLL_S = 5.0
ASIDE_S = 2.0  # after a reclaim: batch jobs have started by then
LONGEST_POLL_S = 300.0  # while workers end before they join


class PilotError(Exception):
    """A failure whose text tells the user what to do."""


async def ask(*command: str, limit_s: float = 10) -> str:
    """Return the output of a command of Slurm."""
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    environment = {key: value for key, value in os.environ.items() if not UNWANTED.match(key)}
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment, **pipes)
    except OSError as error:
        raise PilotError(f"{command[0]}: {error}; is this a machine with Slurm?") from None
    try:
        out, errors = await asyncio.wait_for(process.communicate(), limit_s)
    except TimeoutError:
        raise PilotError(f"{shlex.join(command)}: no answer in {limit_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            with contextlib.suppress(TimeoutError):  # a wrapper's child may hold its output open
                await asyncio.wait_for(process.wait(), 1)
    if process.returncode:
        raise PilotError(f"{shlex.join(command)}: {errors.decode(errors='replace').strip()}")
    return out.decode(errors="replace")


def seconds_of(text: str) -> float:
    """Return the seconds of a time of Slurm: 00:00:05, 1-00:00:00, 20 sec; infinite for a word such as NONE."""
    parts = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", text.strip())
    if parts is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    number = re.match(r"\d+", text.strip())
    return math.inf if number is None else float(number[0])


def faults_of(
    config: Mapping[str, str],
    partitions: Mapping[str, Mapping[str, str]],
    nodes: Mapping[str, set[str]],
    name: str,
    minutes: int,
) -> list[str]:
    """Return what in a site's configuration makes workers in a partition hold up batch jobs, or lose their work."""
    own = partitions.get(name)
    if own is None:
        return [f"no partition {name}: there are {', '.join(sorted(partitions))}"]
    kind, mode = config.get("PreemptType", "preempt/none"), own.get("PreemptMode") or config.get("PreemptMode", "OFF")
    exempt = config.get("PreemptExemptTime", "NONE")
    tier = int(own.get("PriorityTier", 1))
    above = [other for other, values in partitions.items() if int(values.get("PriorityTier", 1)) > tier]
    uncovered = sorted(nodes.get(name, set()).difference(*(nodes.get(other, set()) for other in above)))
    grace, longest, state = own.get("GraceTime", "0"), own.get("MaxTime", "UNLIMITED"), own.get("State", "UP")
    suspend = own.get("SuspendTime", "GLOBAL")
    suspend = config.get("SuspendTime", "NONE") if suspend == "GLOBAL" else suspend
    saves_power = 0 < seconds_of(suspend) < math.inf and config.get("SuspendProgram", "(null)") not in ("(null)", "")
    faults = {
        f"no preemption by partitions (PreemptType={kind}): batch jobs would wait for workers": (
            kind != "preempt/partition_prio"
        ),
        f"jobs of partition {name} are not preempted (PreemptMode={mode}): expected REQUEUE or CANCEL": (
            mode.split(",")[-1] not in ("REQUEUE", "CANCEL")
        ),
        f"jobs are not preempted for a while (PreemptExemptTime={exempt}): batch jobs would wait for it": (
            exempt != "NONE" and seconds_of(exempt) > 0
        ),
        f"{len(uncovered)} nodes of {name}, such as {uncovered[:1]}, are in no partition of a PriorityTier above {tier}"
        f" (there are {above}): nobody could preempt a worker there": bool(uncovered),
        f"no grace time (GraceTime={grace}): workers could not save; at least 2 s are needed": seconds_of(grace) < 2,
        f"power saving (SuspendTime={suspend}): Slurm prefers nodes that are powered down to preemption,"
        " so workers on the nodes that are awake would hold up batch jobs": (
            saves_power and name not in config.get("SuspendExcParts", "").split(",")
        ),
        f"partition {name} is {state}": state != "UP",
        f"workers of {minutes} minutes are longer than MaxTime={longest} of {name}: give --time": (
            minutes * 60 > seconds_of(longest)
        ),
    }
    return [text for text, is_so in faults.items() if is_so]


async def check(partition: str, minutes: int) -> tuple[list[str], float, list[str]]:
    """Return what speaks against workers in a partition, its grace time in seconds, and its nodes."""
    lines = (await ask("scontrol", "show", "config")).splitlines()
    config = {key.strip(): value.strip() for key, found, value in (line.partition("=") for line in lines) if found}
    partitions = {}
    for line in (await ask("scontrol", "show", "partition", "-o")).splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        partitions[values.get("PartitionName", "")] = values
    nodes: dict[str, set[str]] = {}
    for line in (await ask("sinfo", "-a", "-h", "-N", "-o", "%N %R")).splitlines():
        node, _, its_partition = line.strip().partition(" ")
        nodes.setdefault(its_partition, set()).add(node)
    faults = faults_of(config, partitions, nodes, partition, minutes)
    if not faults:
        try:
            await ask("sbatch", "--test-only", *place(partition, minutes), "--wrap", "true")
        except PilotError as error:
            faults.append(f"Slurm refuses a worker: {error}")
    return faults, seconds_of(partitions.get(partition, {}).get("GraceTime", "0")), sorted(nodes.get(partition, set()))


def place(partition: str, minutes: int) -> tuple[str, ...]:
    """Return the options of sbatch for a worker: a whole node, for a while."""
    return "-p", partition, "-N1", "-n1", "--exclusive", "--no-requeue", "-t", str(minutes)


class Supply:
    """Keeps so many one-node jobs in the queue of a partition that each node of it that becomes idle gets a worker."""

    def __init__(self, folder: Path, options: argparse.Namespace, coordinator: Coordinator) -> None:
        self.options = options
        self.coordinator = coordinator
        self.name = f"pilot-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        agent = Path(__file__).resolve().with_name("agent.py")
        # by srun, else a batch script is not told of its preemption; not bound to the one CPU of a task
        self.script = f"exec srun --cpu-bind=none {shlex.join((sys.executable, str(agent), str(folder)))}"
        (folder / "workers").mkdir(exist_ok=True)
        self.log = folder / "workers" / "%j.log"
        self.own = ("-u", pwd.getpwuid(os.getuid()).pw_name, "-n", self.name)  # the variable USER may be another's
        self.submitted: set[str] = set()  # jobs, as far as they have not ended
        self.is_aside = False

    async def queued(self) -> set[str]:
        """Return the jobs that wait, run or are ending."""
        return set((await ask("squeue", "-h", "-o", "%i", *self.own)).split())

    async def keep(self) -> None:
        """Submit workers in place of those that have left; until cancelled."""
        pause_s, n_joined, problem = POLL_S, 0, ""
        while True:
            latest = ""
            try:
                queued = await self.queued()
                died = self.submitted - queued - self.coordinator.joined
                self.submitted = queued
                if died:
                    latest = f"workers end before they join: see {self.log.parent}"
                in_vain = died and len(self.coordinator.joined) == n_joined
                pause_s = min(2 * pause_s, LONGEST_POLL_S) if in_vain else POLL_S
                n_joined = len(self.coordinator.joined)
                for _ in range(self.options.nodes - len(queued)):
                    if self.is_aside:
                        break
                    await self.submit()
            except PilotError as error:  # without a controller nobody can submit
                latest = str(error)
            if latest not in ("", problem):
                self.coordinator.note("refused", message=latest)
                print(f"pilot: {latest}", file=sys.stderr)
            problem = latest
            await asyncio.sleep(pause_s)

    async def step_aside(self) -> None:
        """Hold the waiting workers while batch jobs take nodes; until cancelled.

        A node that a worker has left is idle until the batch job has all its nodes: backfill gave one to a worker.
        """
        reclaim = self.coordinator.reclaim
        held: set[str] = set()
        with contextlib.suppress(PilotError):
            held = await self.queued()  # those that a pilot held which was killed
        while True:
            await self.order("release", held)
            self.is_aside = False
            await reclaim.wait()
            self.is_aside, held = True, self.submitted - self.coordinator.joined
            await self.order("hold", held)
            while reclaim.is_set():
                reclaim.clear()
                self.coordinator.let_go()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reclaim.wait(), ASIDE_S)

    async def order(self, word: str, jobs: set[str]) -> None:
        """Hold or release jobs; those that have started or ended meanwhile do not matter."""
        if jobs:
            with contextlib.suppress(PilotError):
                await ask("scontrol", word, ",".join(sorted(jobs)))

    async def submit(self) -> None:
        """Submit one worker."""
        options = place(self.options.partition, self.options.time)
        answer = await ask(
            "sbatch", "--parsable", "-J", self.name, *options, "-o", str(self.log), "--wrap", self.script
        )
        self.submitted.add(answer.strip().partition(";")[0])

    async def end(self) -> None:
        """Cancel what is left."""
        try:
            await ask("scancel", *self.own)
        except PilotError as error:
            print(f"pilot: workers may still wait: {error}; later: scancel {shlex.join(self.own)}", file=sys.stderr)
