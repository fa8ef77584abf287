"""Trains elastic jobs on the idle nodes of a Slurm, as an ordinary user; bfreplay decides which job gets which node.

python pilot.py check --partition idle
python pilot.py measure --training training.toml --out measured --partition idle --nodes 8
python pilot.py run --training training.toml --measured measured/jobs.csv --out pilot --partition idle --nodes 12

One-node jobs are kept queued in a preemptible partition; each that starts runs agent.py, which joins this program.
README.md beside this file has the contract of a trainer.
"""

import argparse
import asyncio
import contextlib
import fcntl
import json
import math
import os
import re
import signal
import socket
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

from coordinator import MOST_FAILURES, MOST_SAMPLES, Coordinator, Training
from deciders import ScriptDecider, SessionDecider, phases_of
from slurm_site import PilotError, Supply, check

from bfreplay import BfreplayError, ElasticJob, JobSet, NodeEvents, TabulatedCurve, load_jobs, open_session, write_jobs

# -- files -------------------------------------------------------------------------------------------------------------


def read_trainings(file: Path) -> list[Training]:
    """Return the trainings of a file; words of a command that name files beside it become absolute."""
    try:
        tables = tomllib.loads(file.read_text())["jobs"]
        trainings = []
        for name, table in tables.items():
            words = table["trainer"]
            if not isinstance(words, list):
                raise ValueError(f"trainer = {words!r}: expected a list of words")
            words = [str(file.parent.resolve() / word) if (file.parent / word).is_file() else word for word in words]
            counts = int(table["min_nodes"]), int(table["max_nodes"])
            save_every_s = float(table["save_every_s"])
            is_sound = 1 <= counts[0] <= counts[1] and 0 < save_every_s < math.inf and words
            if not re.fullmatch(r"\w[\w.-]{0,63}", name) or not is_sound:
                raise ValueError(f"job {name!r}: expected a plain name, a command, 1 <= min_nodes <= max_nodes, a time")
            trainings.append(Training(name, words, *counts, save_every_s))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PilotError(
            f"{file}: {error!r}; expected tables [jobs.NAME] with trainer = [words], min_nodes, max_nodes, save_every_s"
        ) from None
    if not trainings:
        raise PilotError(f"{file}: no jobs")
    return trainings


def go_on(trainings: list[Training], file: Path) -> int:
    """Let the trainings go on from what the log of a pilot before says they have saved; return its last run."""
    saved: dict[str, float] = {}
    latest_run = 0
    text = ""
    with file.open("r+", errors="replace") as lines:
        for text in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                line = json.loads(text)  # the last one may be cut
                if not 0 < line["run"] < 1 << 31:  # a run of a trainer is a number of 32 bits
                    continue
                latest_run = max(latest_run, int(line["run"]))
                if line["ev"] == "samples" and line.get("saved") is True and 0 <= line["samples"] <= MOST_SAMPLES:
                    saved[line["job"]] = float(line["samples"])
        if text and not text.endswith("\n"):
            lines.write("\n")
    for training in trainings:
        training.saved = training.samples = saved.get(training.name, 0.0)
    return latest_run


def jobs_for(trainings: list[Training], file: Path | None) -> dict[str, ElasticJob]:
    """Return a job for each training: as measured, or in proportion to its nodes if nothing was."""
    known = {} if file is None else {job.name: job for job in load_jobs(file)}
    if file and (missing := [training.name for training in trainings if training.name not in known]):
        raise PilotError(f"{file} has no job {missing[0]}: run `pilot.py measure` with this training file")
    jobs = {}
    for training in trainings:
        bounds = {"min_nodes": training.min_nodes, "max_nodes": training.max_nodes, "work_samples": math.inf}
        # a trainer saves whenever it is told to stop, also by Slurm: only what fails goes back to a checkpoint
        bounds |= {"work_saved_every_s": training.save_every_s, "saves": "on-resize"}
        job = known.get(training.name) or ElasticJob(
            training.name,
            submit_us=0,
            scale_up_cost_s=0.0,
            scale_down_cost_s=0.0,
            throughput=TabulatedCurve((0, training.max_nodes), (0.0, float(training.max_nodes))),
            restart="pause",
            **bounds,
        )
        jobs[training.name] = replace(job, **bounds)
    return jobs


def unmeasured(trainings: list[Training], phases: list[dict[str, int]]) -> list[str]:
    """Return the trainings and numbers of nodes of these phases for which there is no rate."""
    counts = sorted({(name, count) for phase in phases for name, count in phase.items() if count})
    rates = {training.name: training.meter.rates for training in trainings}
    return [f"{name} on {count}" for name, count in counts if count not in rates[name]]


async def work(options: argparse.Namespace) -> None:
    """Check the site; then run or measure until the time is over, all is done, or a signal comes."""
    for number in (signal.SIGTERM, signal.SIGINT):  # until there are workers
        asyncio.get_running_loop().add_signal_handler(number, asyncio.current_task().cancel)
    faults, grace_s, nodes = await check(options.partition, options.time)
    if faults:
        raise PilotError("workers must not run here:\n" + "\n".join(f"- {fault}" for fault in faults))
    if options.command == "check":
        print(f"partition {options.partition}: workers may run here; they have {grace_s:g} s to save")
        return
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock, (folder / "log.jsonl").open("a") as log:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PilotError(f"another pilot works in {folder}") from None
        trainings = read_trainings(options.training)
        coordinator = Coordinator(folder, trainings, log, grace_s, go_on(trainings, folder / "log.jsonl"))
        coordinator.nodes = nodes
        if options.command == "measure":
            await measure(coordinator, options)
        else:
            await run(coordinator, options)
            if failed := [training.name for training in trainings if training.n_failures >= MOST_FAILURES]:
                raise PilotError(f"given up: {', '.join(failed)}; see {folder / 'state'}")


async def measure(coordinator: Coordinator, options: argparse.Namespace) -> None:
    """Measure all trainings, and write them as jobs."""
    trainings = list(coordinator.trainings.values())
    file = coordinator.folder / "jobs.csv"
    if file.exists():
        raise PilotError(f"{file} exists: give another --out, or remove it to measure again")
    for training in trainings:
        if training.min_nodes > options.nodes:
            raise PilotError(f"training {training.name} needs {training.min_nodes} nodes: --nodes is {options.nodes}")
    coordinator.decider = script = ScriptDecider(trainings, options.nodes, options.seconds)
    await coordinate(coordinator, options)
    if not script.is_done:
        raise PilotError("stopped before all was measured")
    if missing := unmeasured(trainings, phases_of(trainings, options.nodes)):
        raise PilotError(f"not measured: {', '.join(missing)}; give more --seconds, or look into the logs in `state`")
    jobs = jobs_for(trainings, None)
    measured = [training.meter.applied_to(jobs[training.name]) for training in trainings]
    write_jobs(JobSet(measured, submit_is_relative=True), file)
    print(f"measured: {file}")


async def run(coordinator: Coordinator, options: argparse.Namespace) -> None:
    """Train, as a session decides; leave the run of the session in the folder."""
    jobs = jobs_for(list(coordinator.trainings.values()), options.measured)
    nodes = coordinator.nodes
    settings = {"t_fwd": options.t_fwd, "settle": options.settle, "max_parallel": len(jobs), "notice": True}
    settings |= {"clear": 0.0, "efficiency": False, "bound": False}
    # a rehearsal loads or compiles all that the first decision needs, before anybody waits for it
    with open_session(NodeEvents.to_come(nodes, 0), list(jobs.values()), options.policy, **settings) as session:
        session.advance([(1_000_000, node, "idle") for node in nodes])
        session.advance([(9_000_000, nodes[0], "busy")])
        session.finish(90_000_000)
    start_us = coordinator.next_us()
    folder = coordinator.folder / f"run-{start_us}"
    log = NodeEvents.to_come(nodes, start_us)
    with open_session(log, list(jobs.values()), options.policy, out=folder, **settings) as session:
        coordinator.settled_s += (
            10 * options.settle
        )  # the session decides ten settle times after a change at the latest
        coordinator.decider = SessionDecider(session, jobs, learns=not options.no_learning)
        about = {"nodes": nodes, "policy": options.policy, "t_fwd_s": options.t_fwd, "settle_s": options.settle}
        await coordinate(coordinator, options, **about)
        session.finish(coordinator.next_us() + 1)


async def coordinate(coordinator: Coordinator, options: argparse.Namespace, **about: object) -> None:
    """Let workers come and train until the time is over, all is done, or a signal comes."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    samples = {training.name: training.samples for training in coordinator.trainings.values()}
    server = await coordinator.serve(options.host)
    coordinator.note("begin", **about, jobs=list(samples), samples=samples)
    supply = Supply(coordinator.folder, options, coordinator)
    keeping = asyncio.create_task(supply.keep())
    parts = (coordinator.watch(), supply.step_aside(), show(coordinator))
    ends = (stopped.wait(), asyncio.sleep(options.minutes * 60), until_done(coordinator))
    tasks = [keeping, *(asyncio.create_task(part) for part in (*parts, *ends))]
    try:
        done, _ = await asyncio.wait((*tasks, coordinator.failure), return_when=asyncio.FIRST_COMPLETED)
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])  # nothing is submitted from here on
        try:
            await coordinator.close()
        finally:
            await supply.end()
            for task in tasks:
                task.cancel()
            _ = coordinator.failure.cancel() or coordinator.failure.exception()  # one that came while it ended
            server.close()
            (coordinator.folder / "pilot.json").unlink(missing_ok=True)
            samples = {training.name: training.samples for training in coordinator.trainings.values()}
            coordinator.note("end", samples=samples)
    for task in done:
        task.result()


async def until_done(coordinator: Coordinator) -> None:
    """Wait until all trainings have ended, or all has been measured."""
    while not all(training.is_done for training in coordinator.trainings.values()):
        if getattr(coordinator.decider, "is_done", False):
            return
        await asyncio.sleep(0.2)


async def show(coordinator: Coordinator) -> None:
    """Print a line now and then."""
    while True:
        await asyncio.sleep(10)
        parts = [
            f"{training.name} {len(training.ranks)} nodes, {training.samples:,.0f} samples"
            for training in coordinator.trainings.values()
        ]
        print(f"{len(coordinator.workers)} workers; {'; '.join(parts)}", file=sys.stderr)


def own_address() -> str:
    """Return the address of this machine by which others reach it."""
    with contextlib.suppress(OSError):
        if not (address := socket.gethostbyname(socket.gethostname())).startswith("127."):
            return address
    # the machine knows its own name as its own only: take the address that it would send from
    with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        return probe.getsockname()[0]
    return "127.0.0.1"


def read_options() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).splitlines()[0],
        epilog="\n".join(str(__doc__).splitlines()[2:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("check", "whether workers may run in a partition"),
        ("measure", "rates, starts and restarts of the trainings on a quiet machine"),
        ("run", "train on idle nodes"),
    ):
        command = commands.add_parser(name, help=words)
        command.add_argument("--partition", required=True, help="preemptible partition of the workers")
        command.add_argument("--time", type=int, default=60, help="time limit of a worker, minutes (default 60)")
        if name == "check":
            continue
        command.add_argument("--training", type=Path, required=True, help="trainings (TOML)")
        command.add_argument("--out", type=Path, required=True, help="folder, on a file system that all nodes share")
        command.add_argument(
            "--nodes", type=int, required=True, help="largest number of workers, waiting ones included"
        )
        host = own_address()
        command.add_argument("--host", default=host, help=f"address by which workers reach this machine ({host})")
    measure, run = commands.choices["measure"], commands.choices["run"]
    measure.add_argument("--seconds", type=float, default=12, help="time on each number of nodes (default 12)")
    measure.add_argument("--minutes", type=float, default=60, help="give up after so long (default 60)")
    run.add_argument("--measured", type=Path, help="jobs.csv of `measure`; else rates in proportion to nodes")
    run.add_argument("--minutes", type=float, default=math.inf, help="end after so long (default: at a signal)")
    run.add_argument("--policy", default="bftrainer", help="as of bfreplay replay (default bftrainer)")
    run.add_argument("--t-fwd", type=float, default=60, help="forward-looking time, s (default 60)")
    run.add_argument("--settle", type=float, default=0.3, help="settle time, s (default 0.3)")
    run.add_argument(
        "--no-learning", action="store_true", help="decide with the rates and pauses given, not with those measured"
    )
    options = parser.parse_args()
    if options.time < 1 or (options.command != "check" and options.nodes < 1):
        parser.error("--nodes, --time: expected at least one")
    return options


def main() -> int:
    """Carry out one command."""
    os.umask(0o077)
    try:
        asyncio.run(work(read_options()))
    except asyncio.CancelledError:
        print("pilot.py: stopped before it began", file=sys.stderr)
        return 1
    except (PilotError, BfreplayError, OSError) as error:
        print(f"pilot.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
