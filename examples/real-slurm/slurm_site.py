"""Slurm as the pilot sees it: its commands, whether a site lets workers run, and the supply of workers."""

import argparse
import asyncio
import contextlib
import getpass
import hashlib
import math
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from coordinator import Coordinator

POLL_S = 5.0


class PilotError(Exception):
    """A failure whose text tells the user what to do."""


async def ask(*command: str, limit_s: float = 10) -> str:
    """Return the output of a command of Slurm."""
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    try:
        process = await asyncio.create_subprocess_exec(*command, **pipes)
    except OSError as error:
        raise PilotError(f"{command[0]}: {error}; is this a machine with Slurm?") from None
    try:
        out, errors = await asyncio.wait_for(process.communicate(), limit_s)
    except TimeoutError:
        process.kill()
        raise PilotError(f"{shlex.join(command)}: no answer in {limit_s:g} s") from None
    if process.returncode:
        raise PilotError(f"{shlex.join(command)}: {errors.decode(errors='replace').strip()}")
    return out.decode(errors="replace")


def seconds_of(text: str) -> float:
    """Return the seconds of a time of Slurm: 00:00:05, 1-00:00:00, 20 sec; 0 for none."""
    parts = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", text.strip())
    if parts is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    number = re.match(r"\d+", text.strip())
    return math.inf if number is None else float(number[0])


def faults_of(config: Mapping[str, str], partitions: Mapping[str, Mapping[str, str]], name: str) -> list[str]:
    """Return what in a site's configuration makes workers in a partition hold up batch jobs, or lose their work."""
    own = partitions.get(name)
    if own is None:
        return [f"no partition {name}: there are {', '.join(sorted(partitions))}"]
    faults = []
    mode = own.get("PreemptMode", "") if own.get("PreemptMode", "") else config.get("PreemptMode", "OFF")
    if config.get("PreemptType", "preempt/none") != "preempt/partition_prio":
        faults.append(
            f"no preemption by partitions (PreemptType={config.get('PreemptType')}): batch jobs would wait for workers"
        )
    elif mode.split(",")[-1] not in ("REQUEUE", "CANCEL"):
        faults.append(f"jobs of partition {name} are not preempted (PreemptMode={mode}): expected REQUEUE or CANCEL")
    own_nodes, own_tier = own.get("Nodes"), int(own.get("PriorityTier", 1))
    above = [other for other, values in partitions.items() if int(values.get("PriorityTier", 1)) > own_tier]
    if not above:
        faults.append(f"no partition has a higher PriorityTier than {name} ({own_tier}): nobody could preempt a worker")
    elif not any(partitions[other].get("Nodes") == own_nodes for other in above):
        faults.append(f"the partitions above {name} ({', '.join(above)}) have other nodes than {own_nodes}: look at it")
    if seconds_of(own.get("GraceTime", "0")) < 2:
        faults.append(
            f"no grace time (GraceTime={own.get('GraceTime')}): workers could not save; at least 2 s are needed"
        )
    suspend_s = seconds_of(config.get("SuspendTime", "0")) if config.get("SuspendTime") != "NONE" else math.inf
    if 0 < suspend_s < math.inf and config.get("SuspendProgram", "(null)") not in ("(null)", ""):
        faults.append(
            f"power saving (SuspendTime={config['SuspendTime']}): Slurm prefers nodes that are powered down to"
            " preemption, so workers on the nodes that are awake would hold up batch jobs"
        )
    if own.get("State", "UP") != "UP":
        faults.append(f"partition {name} is {own['State']}")
    return faults


async def check(partition: str) -> tuple[list[str], float]:
    """Return what speaks against workers in a partition, and its grace time in seconds."""
    lines = (await ask("scontrol", "show", "config")).splitlines()
    config = {key.strip(): value.strip() for key, found, value in (line.partition("=") for line in lines) if found}
    partitions = {}
    for line in (await ask("scontrol", "show", "partition", "-o")).splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        partitions[values.get("PartitionName", "")] = values
    faults = faults_of(config, partitions, partition)
    if not faults:
        try:
            await ask("sbatch", "--test-only", "-p", partition, "-N1", "--no-requeue", "-t", "1", "--wrap", "true")
        except PilotError as error:
            faults.append(f"Slurm refuses a worker: {error}")
    return faults, seconds_of(partitions.get(partition, {}).get("GraceTime", "0"))


class Supply:
    """Keeps so many one-node jobs in the queue of a partition that each node of it that becomes idle gets a worker."""

    def __init__(self, folder: Path, options: argparse.Namespace, coordinator: Coordinator) -> None:
        self.options = options
        self.coordinator = coordinator
        self.name = f"pilot-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        agent = Path(__file__).resolve().with_name("agent.py")
        # by srun, else a batch script is not told of its preemption
        self.script = f"exec srun {shlex.join((sys.executable, str(agent), str(folder)))}"
        (folder / "workers").mkdir(exist_ok=True)
        self.log = folder / "workers" / "%j.log"

    async def queued(self) -> int:
        """Return the number of jobs that wait or run."""
        state = ("-t", "PENDING,RUNNING,CONFIGURING", "-u", getpass.getuser(), "-n", self.name)
        return len((await ask("squeue", "-h", "-o", "%i", *state)).split())

    async def keep(self) -> None:
        """Submit workers in place of those that have left; until cancelled."""
        while True:
            try:
                for _ in range(self.options.nodes - await self.queued()):
                    place = ("-p", self.options.partition, "-N1", "-n1", "--no-requeue", "-t", str(self.options.time))
                    await ask("sbatch", "-J", self.name, *place, "-o", str(self.log), "--wrap", self.script)
            except PilotError as error:  # without a controller nobody can submit
                self.coordinator.note("refused", message=str(error))
            self.coordinator.lost_workers.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.coordinator.lost_workers.wait(), POLL_S)

    async def end(self) -> None:
        """Cancel what is left."""
        with contextlib.suppress(PilotError):
            await ask("scancel", "-u", getpass.getuser(), "-n", self.name)
