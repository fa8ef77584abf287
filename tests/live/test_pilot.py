"""The pilot without a Slurm: its rules, and a coordinator with real agents that run a real trainer."""

import asyncio
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.live.conftest import SCRIPT

EXAMPLE = SCRIPT.parent
NODES = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def pilot():
    sys.path.insert(0, str(EXAMPLE))
    yield importlib.import_module("pilot")
    sys.path.remove(str(EXAMPLE))


def module(name):
    return importlib.import_module(name)


# -- may workers run here? ---------------------------------------------------------------------------------------------

CONFIG = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE", "SuspendTime": "INFINITE"}
PARTITIONS = {
    "batch": {"Nodes": "n[01-12]", "PriorityTier": "10", "PreemptMode": "OFF", "GraceTime": "0"},
    "idle": {"Nodes": "n[01-12]", "PriorityTier": "1", "PreemptMode": "REQUEUE", "GraceTime": "5", "State": "UP"},
}


@pytest.mark.parametrize(
    ("config", "own", "words"),
    [
        ({"PreemptType": "preempt/none"}, {}, "no preemption"),
        ({"PreemptType": "preempt/qos"}, {}, "no preemption by partitions"),
        ({}, {"PreemptMode": "OFF"}, "not preempted"),
        ({}, {"PreemptMode": "SUSPEND,GANG"}, "not preempted"),
        ({}, {"PriorityTier": "10"}, "nobody could preempt"),
        ({}, {"Nodes": "n[01-04]"}, "have other nodes"),
        ({}, {"GraceTime": "0"}, "no grace time"),
        ({"SuspendTime": "300 sec", "SuspendProgram": "/sbin/off"}, {}, "power saving"),
        ({}, {"State": "DOWN"}, "is DOWN"),
    ],
)
def test_a_site_that_workers_would_disturb_is_refused_by_name(pilot, config, own, words):
    site = module("slurm_site")
    assert site.faults_of(CONFIG, PARTITIONS, "idle") == []
    faults = site.faults_of({**CONFIG, **config}, {**PARTITIONS, "idle": {**PARTITIONS["idle"], **own}}, "idle")
    assert len(faults) == 1
    assert words in faults[0]


def test_a_partition_that_is_not_there_is_named(pilot):
    assert "batch, idle" in module("slurm_site").faults_of(CONFIG, PARTITIONS, "other")[0]


def test_times_of_slurm_are_read(pilot):
    seconds_of = module("slurm_site").seconds_of
    assert [seconds_of(text) for text in ("1-00:00:05", "00:01:00", "20 sec", "5", "0")] == [86_405, 60, 20, 5, 0]
    assert seconds_of("INFINITE") == seconds_of("UNLIMITED") == float("inf")


# -- measuring ---------------------------------------------------------------------------------------------------------


def test_each_number_of_nodes_is_measured_from_others_and_from_none(pilot):
    training = module("coordinator").Training
    trainings = [training("A", ["a"], 1, 8, 20.0), training("B", ["b"], 2, 5, 20.0)]
    phases = module("deciders").phases_of(trainings, 9)
    assert all(sum(phase.values()) <= 9 for phase in phases)
    starts = {
        (name, phases[k][name]) for k in range(1, len(phases)) for name in "AB" if not any(phases[k - 1].values())
    }
    counts = {*(("A", n) for n in (1, 2, 3, 4, 6, 8)), *(("B", n) for n in (2, 3, 4, 5))}
    assert starts - {("A", 0), ("B", 0)} == counts
    assert {(name, phase[name]) for phase in phases[1:7] for name in "AB"} >= counts


def test_a_pause_is_the_time_without_progress(pilot):
    measures = module("measures")
    meter = measures.Meter()
    # decided at 100 s with 1,000 samples; the old run makes 50 more while it stops, the new one 200 in its first step
    meter.begin(measures.Run(4, 100.0, 1_000.0, is_restart=True))
    meter.report(106.0, 1_250.0)
    meter.report(116.0, 2_250.0)  # 100 samples/s
    assert meter.end()
    assert meter.restarts == {4: [3.5]}
    assert not meter.starts
    meter.begin(measures.Run(2, 200.0, 2_000.0, is_restart=False))
    meter.report(203.0, 2_060.0)
    assert not meter.end()  # one report gives no rate
    meter.begin(measures.Run(2, 300.0, 2_000.0, is_restart=False))
    meter.report(303.0, 2_060.0)
    meter.report(313.0, 2_660.0)
    assert meter.end(goes_on=True)
    meter.report(323.0, 3_260.0)
    assert meter.end()
    assert meter.starts == {2: [2.0]}
    assumed = pilot.jobs_for([module("coordinator").Training("A", ["a"], 1, 8, 20.0)], None)["A"]
    job = meter.applied_to(assumed)
    # on 3 nodes in between, in proportion to the nodes: 30 and 25 samples/s a node
    assert [job.throughput.table(8)[n] for n in (1, 2, 3, 4, 8)] == pytest.approx([30, 60, 82.5, 100, 200])
    assert (str(job.start_cost_s), str(job.scale_up_cost_s)) == ("2.0", "3.5")


TRAINING = '[jobs.A]\ntrainer = ["true"]\nmin_nodes = 1\nmax_nodes = 2\nsave_every_s = 20\n'


def test_a_file_of_trainings_that_cannot_be_used_is_named(pilot, tmp_path):
    file = tmp_path / "training.toml"
    for text in (
        "",
        "[jobs.A]\n",
        "[jobs.A]\ntrainer = []\nmin_nodes = 1\nmax_nodes = 2\n",
        TRAINING.replace("20", "0"),
        "jobs = 3",
        "[",
    ):
        file.write_text(text)
        with pytest.raises(pilot.PilotError, match=r"training\.toml"):
            pilot.read_trainings(file)
    file.write_text(TRAINING)
    assert pilot.read_trainings(file)[0].trainer == ["true"]


# -- a coordinator with real agents ------------------------------------------------------------------------------------


class Fixed:
    """Decider that lets one training have all nodes that have joined, and keeps what it is told."""

    def __init__(self):
        self.idle, self.latest, self.decisions, self.reports = set(), 0, [], []

    def change(self, time_us, node, is_idle):
        assert (node in self.idle) != is_idle, f"{node} is told twice"
        self.idle ^= {node}
        self.latest = time_us

    def decide(self, time_us):
        if not self.latest or time_us < self.latest + 300_000:
            return []
        decision, self.latest = {"time_us": self.latest + 300_000, "counts": {"A": len(self.idle)}}, 0
        self.held = tuple(sorted(self.idle))
        return [decision]

    held = ()

    def nodes(self):
        return {"A": tuple(node for node in self.held if node in self.idle)}

    def report(self, time_us, training, samples, ended=""):
        self.reports.append((samples, ended))

    def measured(self, time_us, training, meter):
        pass


class Stage:
    """A coordinator in this process, agents in others."""

    def __init__(self, pilot, folder, *more):
        coordinator = module("coordinator")
        self.folder, self.agents = folder, {}
        trainer = [sys.executable, str(EXAMPLE / "numpy_trainer.py"), "--rate", "2000", "--batch", "8", *more]
        self.training = coordinator.Training("A", trainer, 1, 3, 1.0)
        self.log = (folder / "log.jsonl").open("a")
        latest = pilot.go_on([self.training], folder / "log.jsonl")
        self.coordinator = coordinator.Coordinator(folder, [self.training], self.log, 5.0, latest)
        self.decider = self.coordinator.decider = Fixed()

    def agent(self, node):
        command = [sys.executable, str(EXAMPLE / "agent.py"), str(self.folder)]
        environment = {**os.environ, "SLURMD_NODENAME": node, "SLURM_JOB_ID": node[1:]}
        self.agents[node] = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    async def until(self, condition, limit_s=30):
        limit = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < limit, "waited too long"
            await asyncio.sleep(0.02)

    async def trains_on(self, *nodes):
        await self.until(lambda: self.training.nodes == set(nodes) and self.training.has_stepped)

    def lines(self):
        return [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]

    def play(self, script):
        async def scene():
            server = await self.coordinator.serve("127.0.0.1")
            watch = asyncio.create_task(self.coordinator.watch())
            try:
                await script()
                assert not watch.done(), watch.exception()
            finally:
                watch.cancel()
                server.close()
                for agent in self.agents.values():
                    agent.kill()

        asyncio.run(scene())
        self.log.close()
        return self.lines()


@pytest.fixture
def stage(pilot, tmp_path):
    return Stage(pilot, tmp_path)


def samples_of_runs(lines):
    runs = {}
    for line in lines:
        if line["ev"] == "samples":
            runs.setdefault(line["run"], []).append(line["samples"])
    return runs


def test_a_worker_that_is_told_to_leave_loses_nothing(stage):
    async def script():
        for node in NODES:
            stage.agent(node)
        await stage.trains_on(*NODES)
        stage.agents["n2"].send_signal(signal.SIGTERM)
        await stage.trains_on("n1", "n3")
        assert stage.agents["n2"].wait(5) == 0
        await stage.coordinator.close()

    lines = stage.play(script)
    events = [(line["ev"], line["node"]) for line in lines if line["ev"] in ("leaving", "gone")]
    assert events[:2] == [("leaving", "n2"), ("gone", "n2")]
    assert {line["code"] for line in lines if line["ev"] == "exited"} == {0}
    runs = list(samples_of_runs(lines).values())
    assert all(later[0] > earlier[-1] for earlier, later in itertools.pairwise(runs))
    last = [line for line in lines if line["ev"] == "samples"][-1]
    assert last["saved"]


def test_after_kill_9_of_a_worker_the_rest_goes_on_from_the_last_checkpoint(stage):
    async def script():
        for node in NODES:
            stage.agent(node)
        await stage.trains_on(*NODES)
        await stage.until(lambda: stage.training.saved > 0)
        stage.agents["n2"].kill()
        await stage.trains_on("n1", "n3")
        await stage.coordinator.close()

    lines = stage.play(script)
    gone = next(line for line in lines if line["ev"] == "gone")
    assert (gone["node"], gone["told"]) == ("n2", False)
    *_, before, after = samples_of_runs(lines).items()
    saved = [
        line["samples"] for line in lines if line["ev"] == "samples" and line.get("saved") and line["run"] == before[0]
    ]
    # the checkpoint is at most a second old: 2,000 samples/s a node, and a step of 24 samples
    assert saved[-1] < after[1][0] <= saved[-1] + 200
    assert max(before[1]) - saved[-1] <= 3 * 2_000 * 1.2 + 24
    assert (float(saved[-1]), "") in stage.decider.reports


def test_workers_leave_when_their_pilot_is_gone_and_the_next_pilot_goes_on(stage, pilot, tmp_path):
    async def script():
        for node in NODES:
            stage.agent(node)
        await stage.trains_on(*NODES)

    async def killed():
        await script()
        for worker in stage.coordinator.workers.values():  # as if the process had ended
            worker.writer.transport.abort()
        for agent in stage.agents.values():
            await stage.until(lambda agent=agent: agent.poll() is not None, 15)

    stage.play(killed)
    assert [agent.returncode for agent in stage.agents.values()] == [0, 0, 0]
    latest_run = stage.training.run
    again = Stage(pilot, tmp_path)
    assert again.coordinator.latest_run == latest_run

    async def later():
        again.agent("n1")
        await again.trains_on("n1")
        await again.coordinator.close()

    lines = again.play(later)
    runs = samples_of_runs(lines)
    assert runs[latest_run + 1][0] >= runs[latest_run][-1]


def test_who_does_not_know_the_secret_does_not_join(stage):
    async def script():
        place = json.loads((stage.folder / "pilot.json").read_text())
        assert (stage.folder / "pilot.json").stat().st_mode & 0o077 == 0
        for answer in (
            b'{"nonce": "x", "proof": "y", "node": "n1", "slurm_job": "1", "port": 1}\n',
            b"\xff\n",
            b"[]\n",
        ):
            reader, writer = await asyncio.open_connection(place["host"], place["port"])
            await reader.readline()
            writer.write(answer)
            assert await reader.read() == b""
        stage.agent("n1")
        await stage.trains_on("n1")
        await stage.coordinator.close()

    lines = stage.play(script)
    assert [line["node"] for line in lines if line["ev"] == "join"] == ["n1"]


def test_a_trainer_that_never_makes_a_step_is_given_up(pilot, tmp_path, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 2)
    stage = Stage(pilot, tmp_path)
    stage.training.trainer = [sys.executable, "-c", "raise SystemExit(7)"]

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.is_done)

    lines = stage.play(script)
    assert [line["code"] for line in lines if line["ev"] == "exited"] == [7, 7]
    assert stage.decider.reports[-1] == (0.0, "failed")


def test_a_training_that_is_done_ends(pilot, tmp_path):
    stage = Stage(pilot, tmp_path, "--work", "4000")

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.is_done)
        await stage.until(lambda: not stage.training.ranks)
        await asyncio.sleep(0.5)

    lines = stage.play(script)
    assert stage.decider.reports[-1] == (4000.0, "finished")
    assert sum(line["ev"] == "start" for line in lines) == 1
