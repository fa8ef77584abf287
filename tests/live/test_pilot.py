"""The pilot without a Slurm: its rules, and a coordinator with real agents that run a real trainer."""

import asyncio
import errno
import importlib
import itertools
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

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
    "batch": {"PriorityTier": "10", "PreemptMode": "OFF", "GraceTime": "0"},
    "idle": {"PriorityTier": "1", "PreemptMode": "REQUEUE", "GraceTime": "5", "State": "UP", "MaxTime": "01:00:00"},
}
MEMBERS = {"batch": {"n1", "n2", "n3"}, "idle": {"n1", "n2"}}


def faults(config=(), own=(), members=MEMBERS, minutes=60):
    partitions = {**PARTITIONS, "idle": {**PARTITIONS["idle"], **dict(own)}}
    return module("slurm_site").faults_of({**CONFIG, **dict(config)}, partitions, members, "idle", minutes)


POWER_SAVING = {"SuspendTime": "300 sec", "SuspendProgram": "/sbin/off"}


@pytest.mark.parametrize(
    ("config", "own", "words"),
    [
        ({"PreemptType": "preempt/none"}, {}, "no preemption"),
        ({"PreemptType": "preempt/qos"}, {}, "no preemption by partitions"),
        ({}, {"PreemptMode": "OFF"}, "not preempted"),
        ({}, {"PreemptMode": "SUSPEND,GANG"}, "not preempted"),
        ({}, {"PriorityTier": "10"}, "nobody could preempt"),
        ({"PreemptMode": "OFF"}, {"PreemptMode": ""}, "not preempted"),
        ({"PreemptExemptTime": "00:10:00"}, {}, "not preempted for a while"),
        ({}, {"GraceTime": "0"}, "no grace time"),
        (POWER_SAVING, {}, "power saving"),
        (POWER_SAVING, {"SuspendTime": "GLOBAL"}, "power saving"),
        ({"SuspendProgram": "/sbin/off"}, {"SuspendTime": "300"}, "power saving"),
        ({}, {"State": "DOWN"}, "is DOWN"),
        ({}, {"MaxTime": "00:30:00"}, "longer than MaxTime"),
    ],
)
def test_a_site_that_workers_would_disturb_is_refused_by_name(pilot, config, own, words):
    assert faults() == []
    (fault,) = faults(config, own)
    assert words in fault


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ({}, {"PreemptMode": ""}),
        ({}, {"PreemptMode": "GANG,REQUEUE"}),
        ({"PreemptExemptTime": "00:00:00"}, {}),
        ({"SuspendTime": "NONE", "SuspendProgram": "/sbin/off"}, {}),
        ({"SuspendTime": "300 sec", "SuspendProgram": "(null)"}, {}),
        ({**POWER_SAVING, "SuspendExcParts": "gpu,idle"}, {}),
        (POWER_SAVING, {"SuspendTime": "INFINITE"}),
        ({}, {"MaxTime": "UNLIMITED"}),
    ],
)
def test_a_site_on_which_workers_disturb_nobody_is_not_refused(pilot, config, own):
    assert faults(config, own) == []


def test_nodes_that_no_partition_above_has_are_named(pilot):
    (fault,) = faults(members={**MEMBERS, "batch": {"n2", "n3"}})
    assert "1 nodes of idle, such as ['n1']," in fault


def test_a_partition_that_is_not_there_is_named(pilot):
    assert "batch, idle" in module("slurm_site").faults_of(CONFIG, PARTITIONS, MEMBERS, "other", 60)[0]


def test_times_of_slurm_are_read(pilot):
    seconds_of = module("slurm_site").seconds_of
    assert [seconds_of(text) for text in ("1-00:00:05", "00:01:00", "20 sec", "5", "0")] == [86_405, 60, 20, 5, 0]
    assert seconds_of("INFINITE") == seconds_of("UNLIMITED") == float("inf")


# -- supply of workers -------------------------------------------------------------------------------------------------

FAKE_SLURM = {  # a queue in a file; jobs of the real user, unless a filter hides them
    "squeue": 'case "$*${SQUEUE_PARTITION:+ hidden}" in *hidden*) ;; *"-u $OWNER "*) cat queue ;; esac',
    "sbatch": """
        case "$*" in *--test-only*) exit 0 ;; esac
        if [ -e limit ]; then echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2; exit 1; fi
        echo "$*$SBATCH_ARRAY_INX$SLURM_NTASKS$SLURM_CONF" >> submitted
        if [ ! -e dies ]; then wc -l < submitted >> queue; fi
        id=$(wc -l < submitted)
        echo $id
        for script; do :; done
        if [ -e runs ]; then SLURMD_NODENAME=n$id SLURM_JOB_ID=$id sh -c "$script" < /dev/null > worker$id 2>&1 & fi""",
    "srun": 'shift; exec "$@"',
    "scancel": 'echo "$*" >> cancelled; : > queue',
    "scontrol": 'case $1 in show) cat "$2";; *) echo "$*" >> orders;; esac',
    "sinfo": "echo n1 batch; echo n2 batch; echo n1 idle; echo n2 idle",
}


@pytest.fixture
def fake_slurm(pilot, tmp_path, monkeypatch):
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, text in FAKE_SLURM.items():
        (folder / name).write_text(f"#!/bin/sh\ncd {folder}\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "queue").touch()
    (folder / "config").write_text("".join(f"{key} = {value}\n" for key, value in CONFIG.items()))
    rows = [{"PartitionName": name, **values} for name, values in PARTITIONS.items()]
    (folder / "partition").write_text("".join(" ".join(f"{k}={v}" for k, v in row.items()) + "\n" for row in rows))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("OWNER", pwd.getpwuid(os.getuid()).pw_name)
    mask = os.umask(0o022)  # the pilot narrows it
    yield folder
    os.umask(mask)


async def until(condition, limit_s=30):
    limit = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        await asyncio.sleep(0.02)


class Polls:
    """A supply of three workers, and what happens after each of its polls; then it is cancelled."""

    def __init__(self, folder, monkeypatch, *scripts, joined=frozenset()):
        site = module("slurm_site")
        self.joined, self.notes, self.pauses = joined, [], []
        options = SimpleNamespace(nodes=3, time=60, partition="idle")
        supply = site.Supply(folder, options, self)
        following = iter(scripts)

        async def sleep(seconds):
            self.pauses.append(seconds)
            try:
                next(following)()
            except StopIteration:
                raise asyncio.CancelledError from None

        monkeypatch.setattr(site.asyncio, "sleep", sleep)

        async def scene():
            with pytest.raises(asyncio.CancelledError):
                await supply.keep()
            await supply.end()

        asyncio.run(scene())

    def note(self, event, message):
        self.notes.append((event, message))


def test_waiting_workers_are_held_while_batch_jobs_take_nodes(fake_slurm, tmp_path, monkeypatch):
    site = module("slurm_site")
    monkeypatch.setattr(site, "ASIDE_S", 0.5)
    orders = fake_slurm / "orders"
    (fake_slurm / "queue").write_text("5\n6\n")

    def ordered():
        return orders.read_text().splitlines()

    async def scene():
        let_go = []
        coordinator = SimpleNamespace(
            reclaim=asyncio.Event(), joined={"7"}, let_go=lambda: let_go.append(ordered()), note=print
        )
        supply = site.Supply(tmp_path, SimpleNamespace(nodes=3, time=60, partition="idle"), coordinator)
        aside = asyncio.create_task(supply.step_aside())
        await until(lambda: orders.exists() and not supply.is_aside)
        supply.submitted = {"5", "6", "7"}
        coordinator.reclaim.set()
        await until(lambda: len(let_go) == 1)
        await asyncio.sleep(0.3)
        coordinator.reclaim.set()  # another node is taken: they stay held
        await until(lambda: len(let_go) == 2)
        await asyncio.sleep(0.3)
        assert supply.is_aside
        assert len(ordered()) == 2
        await until(lambda: not supply.is_aside)
        aside.cancel()
        return let_go

    # those of a pilot that was killed are released first; held before the first worker goes
    assert asyncio.run(scene()) == [["release 5,6", "hold 5,6"]] * 2
    assert ordered() == ["release 5,6", "hold 5,6", "release 5,6"]


def test_there_are_never_more_workers_than_asked_for(fake_slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("SQUEUE_PARTITION", "batch")
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("LOGNAME", "somebody")
    monkeypatch.setenv("SBATCH_ARRAY_INX", "0-9")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    submitted, queue = fake_slurm / "submitted", fake_slurm / "queue"
    counts = []

    def look(text=None):
        counts.append(len(submitted.read_text().splitlines()))
        if text is not None:
            queue.write_text(text)

    Polls(tmp_path, monkeypatch, look, lambda: look("2\n3\n7\n8\n"), look, lambda: look("2\n3\n"), look)
    assert counts == [3, 3, 3, 3, 4]  # two jobs of the earlier pilot count too
    assert all("--exclusive" in line and "--no-requeue" in line for line in submitted.read_text().splitlines())
    assert all(
        line.endswith("/agent.py " + str(tmp_path) + "/etc/slurm.conf") for line in submitted.read_text().splitlines()
    )
    assert queue.read_text() == ""
    assert f"-u {os.environ['OWNER']} -n pilot-" in (fake_slurm / "cancelled").read_text()


def test_workers_that_end_before_they_join_come_ever_more_rarely(fake_slurm, tmp_path, monkeypatch):
    (fake_slurm / "dies").touch()

    def revive():
        (fake_slurm / "dies").unlink()

    polls = Polls(tmp_path, monkeypatch, *[lambda: None] * 7, revive, lambda: None, lambda: None)
    assert polls.pauses[:8] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert polls.pauses[9:] == [5, 5]  # those of the last poll have not ended
    assert [event for event, _ in polls.notes] == ["refused"]
    assert str(tmp_path / "workers") in polls.notes[0][1]


def test_workers_that_have_joined_are_replaced_at_once(fake_slurm, tmp_path, monkeypatch):
    joined = {"1", "2", "3"}  # and then their nodes were reclaimed
    polls = Polls(tmp_path, monkeypatch, lambda: (fake_slurm / "queue").write_text(""), lambda: None, joined=joined)
    assert polls.pauses == [5, 5, 5]
    assert not polls.notes
    assert len((fake_slurm / "submitted").read_text().splitlines()) == 6


def test_a_limit_of_the_site_is_told_once(fake_slurm, tmp_path, monkeypatch, capsys):
    (fake_slurm / "limit").touch()

    def lift():
        (fake_slurm / "limit").unlink()

    polls = Polls(tmp_path, monkeypatch, lambda: None, lambda: None, lift, lambda: None)
    ((_, message),) = polls.notes
    assert "QOSMaxSubmitJobPerUserLimit" in message
    assert capsys.readouterr().err.count("QOSMaxSubmit") == 1
    assert len((fake_slurm / "submitted").read_text().splitlines()) == 3


def test_a_command_of_slurm_ends_with_the_task_that_waits_for_it(fake_slurm):
    (fake_slurm / "sbatch").write_text(f"#!/bin/sh\necho $$ > {fake_slurm}/pid\nexec sleep 60\n")

    async def scene():
        asking = asyncio.create_task(module("slurm_site").ask("sbatch"))
        while not (fake_slurm / "pid").exists() or not (fake_slurm / "pid").read_text():
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        return int((fake_slurm / "pid").read_text())

    assert not is_alive(asyncio.run(scene()))


def is_alive(process):
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


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
        TRAINING.replace('["true"]', '"true"'),
        TRAINING.replace("A", '".."'),
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
        self.coordinator.go_s = 0  # nobody holds workers here
        self.decider = self.coordinator.decider = Fixed()

    def runs_script(self, text):
        """Let the trainer be a script; it is told its run in BFREPLAY_RUN and its rank in RANK."""
        imports = "import json, os, subprocess, sys, time"
        variables = "run, rank = int(os.environ['BFREPLAY_RUN']), int(os.environ['RANK'])"
        self.training.trainer = [sys.executable, "-u", "-c", f"{imports}\n{variables}\n{text}"]

    def agent(self, node):
        command = [sys.executable, str(EXAMPLE / "agent.py"), str(self.folder)]
        environment = {**os.environ, "SLURMD_NODENAME": node, "SLURM_JOB_ID": node[1:]}
        self.agents[node] = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    async def until(self, condition, limit_s=30):
        await until(condition, limit_s)

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


def test_a_worker_that_leaves_waits_until_those_that_wait_are_held(stage):
    async def script():
        stage.coordinator.go_s = 60
        stage.agent("n1")
        await stage.trains_on("n1")
        stage.agents["n1"].send_signal(signal.SIGTERM)
        await stage.until(stage.coordinator.reclaim.is_set)
        await stage.until(lambda: not stage.training.ranks)
        assert stage.agents["n1"].poll() is None
        stage.coordinator.let_go()
        await stage.until(lambda: stage.agents["n1"].poll() is not None)

    events = [line["ev"] for line in stage.play(script) if line["ev"] in ("leaving", "exited", "gone")]
    assert events == ["leaving", "exited", "gone"]


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


# -- trainers that do not keep the contract, and agents that meet them -------------------------------------------------


def test_what_a_rank_leaves_behind_ends_with_it(pilot, stage, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 1)
    file = stage.folder / "pid"
    # the child has the rank's output open
    stage.runs_script(f"open({str(file)!r}, 'w').write(str(subprocess.Popen(['sleep', '60']).pid)); sys.exit(7)")

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.is_done)
        await stage.until(lambda: not is_alive(int(file.read_text())))

    assert [line["code"] for line in stage.play(script) if line["ev"] == "exited"] == [7]


def test_a_trainer_that_does_not_stop_is_killed_within_the_grace_time(stage):
    stage.coordinator.grace_s = 2.0
    stage.runs_script(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(json.dumps({'samples': os.getpid()}))\n"
        "sys.stdout.flush(); os.close(1); time.sleep(60)"
    )

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.has_stepped)
        process = int(stage.training.samples)
        stage.agents["n1"].send_signal(signal.SIGTERM)
        await stage.until(lambda: stage.training.ranks == {})
        stage.agents["n1"].send_signal(signal.SIGTERM)
        await stage.until(lambda: stage.agents["n1"].poll() is not None, 5)
        assert not is_alive(process)

    lines = stage.play(script)
    assert [line["code"] for line in lines if line["ev"] == "exited"] == [-9]
    assert [line["told"] for line in lines if line["ev"] == "gone"] == [True]


def test_reports_that_cannot_be_used_do_no_harm(stage):
    reports = [
        "'[' * 20_000",
        "'no JSON'",
        "json.dumps([1])",
        """'{"samples": NaN}'""",
        """'{"samples": -1}'""",
        "'{\"samples\": 1' + '0' * 400 + '}'",
        """'{"samples": 5, "event": "begin", "ev": "end", "t": 7, "at": "x", "job": "B"}'""",
        """'{"samples": 6, "at": 7}'""",  # a clock that is wrong
    ]
    stage.runs_script("\n".join(f"print({report})" for report in reports) + "\nsys.stdin.readline()")

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.samples == 6)
        await stage.coordinator.close()

    lines = stage.play(script)
    reports = [line for line in lines if line["ev"] == "samples"]
    assert [(line["samples"], line["job"], line["run"]) for line in reports] == [(5, "A", 1), (6, "A", 1)]
    for line in reports:
        assert line["at"] == pytest.approx(line["t"], abs=1)
        assert line["t"] > 7
    assert [line["code"] for line in lines if line["ev"] == "exited"] == [0]


def test_a_line_without_an_end_ends_its_rank(stage, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 1)
    stage.runs_script("sys.stdout.write('x' * 1_000_000); time.sleep(60)")

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.is_done)

    assert [line["code"] for line in stage.play(script) if line["ev"] == "exited"] == [-9]


def test_a_state_folder_that_cannot_be_made_is_a_failure_of_the_training(stage, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 1)
    (stage.folder / "state").touch()

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.is_done)
        assert stage.agents["n1"].poll() is None

    assert [line["code"] for line in stage.play(script) if line["ev"] == "exited"] == [127]


def test_an_agent_leaves_a_pilot_that_talks_nonsense(stage):
    async def script():
        for node, words in (("n1", b"\xff\n"), ("n2", b"[]\n"), ("n3", b"[" * 20_000 + b"\n")):
            stage.agent(node)
            await stage.until(lambda node=node: node in stage.coordinator.workers)
            stage.coordinator.workers[node].writer.write(words)
            await stage.until(lambda node=node: stage.agents[node].poll() is not None)

    stage.play(script)


def test_an_agent_leaves_at_once_while_the_pilot_has_not_answered(stage):
    async def scene():
        heard = []

        async def silent_pilot(reader, writer):
            writer.write(b'{"nonce": "x"}\n')
            heard.append(json.loads(await reader.readline()))
            stage.agents["n1"].send_signal(signal.SIGTERM)
            heard.append(json.loads(await reader.readline()))
            heard.append(await reader.readline())

        server = await asyncio.start_server(silent_pilot, "127.0.0.1", 0)
        place = {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "secret": "s"}
        (stage.folder / "pilot.json").write_text(json.dumps(place))
        stage.agent("n1")
        await stage.until(lambda: stage.agents["n1"].poll() is not None, module("agent").STOP_S - 2)
        server.close()
        hello, leaving, end = heard
        assert (hello["node"], leaving["ev"], end) == ("n1", "leaving", b"")

    asyncio.run(scene())


# -- runs that end otherwise than asked --------------------------------------------------------------------------------


def test_a_trainer_that_ends_at_once_without_a_step_is_given_up(stage, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 2)
    stage.runs_script("sys.exit(0)")

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.is_done)

    assert [line["code"] for line in stage.play(script) if line["ev"] == "exited"] == [0, 0]


def test_when_one_rank_ends_before_the_first_step_the_others_are_told(stage, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 1)
    stage.runs_script("sys.exit(0) if rank == 1 else sys.stdin.readline()")

    async def script():
        for node in NODES:
            stage.agent(node)
        await stage.until(lambda: stage.training.is_done and not stage.training.ranks)

    lines = stage.play(script)
    assert [line["code"] for line in lines if line["ev"] == "exited"] == [0, 0, 0]
    assert sum(line["ev"] == "stop" for line in lines) == 1


def test_a_worker_that_is_lost_before_the_first_step_is_no_failure_of_the_training(stage, monkeypatch):
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 1)
    stage.runs_script("sys.stdin.readline(); sys.exit(3)")

    async def script():
        stage.agent("n1")
        stage.agent("n2")
        await stage.until(lambda: len(stage.training.ranks) == 2)
        stage.agents["n1"].kill()
        await stage.until(lambda: stage.training.nodes == {"n2"})
        assert (stage.training.is_done, stage.training.n_failures) == (False, 0)

    stage.play(script)


def test_the_pause_after_a_failure_is_not_measured(stage, monkeypatch):
    monkeypatch.setattr(module("measures"), "SHORTEST_S", 0.2)
    stage.runs_script(
        "for k in range(1, 1000):\n"
        "    print(json.dumps({'samples': 10 * k, 'at': time.time()}))\n"
        "    time.sleep(0.05)\n"
        "    if run == 1 and k == 20: sys.exit(7)"
    )

    async def script():
        stage.agent("n1")
        await stage.until(lambda: stage.training.run == 2 and stage.training.samples >= 100)
        assert stage.training.meter.end()

    stage.play(script)
    meter = stage.training.meter
    assert list(meter.rates) == [1]
    assert not meter.starts
    assert not meter.restarts


def test_of_two_workers_of_a_node_the_later_one_stays(stage):
    async def script():
        stage.agent("n1")
        await stage.trains_on("n1")
        first = stage.agents["n1"]
        stage.agent("n1")
        await stage.until(lambda: first.poll() is not None)
        await stage.until(lambda: stage.training.run == 2 and stage.training.has_stepped)
        await stage.coordinator.close()

    lines = stage.play(script)
    events = [line["ev"] for line in lines if line["ev"] in ("join", "gone", "leaving", "closing")]
    assert events == ["join", "gone", "join", "closing", "gone"]


def test_a_pilot_that_stood_still_asks_before_it_parts_with_its_workers(stage):
    async def script():
        stage.agent("n1")
        await stage.trains_on("n1")
        (worker,) = stage.coordinator.workers.values()
        stage.coordinator._offset += 60  # as if all had stood still
        stood_until = stage.coordinator.now()
        await stage.until(lambda: worker.is_gone or worker.heard_at > stood_until)
        await asyncio.sleep(2 * module("coordinator").TICK_S)
        assert not worker.is_gone

    stage.play(script)


def test_nobody_from_outside_ends_the_pilot(stage):
    stage.coordinator.nodes = ["n1"]

    async def script():
        place = json.loads((stage.folder / "pilot.json").read_text())
        reader, writer = await asyncio.open_connection(place["host"], place["port"])
        writer.write(b"[" * 20_000 + b"\n")
        await reader.readline()
        assert await reader.read() == b""
        stage.agent("n2")  # a node that was added to the partition later
        await stage.until(lambda: stage.agents["n2"].poll() is not None)
        stage.agent("n1")
        await stage.trains_on("n1")
        assert not stage.coordinator.failure.done()

    lines = stage.play(script)
    assert [line["node"] for line in lines if line["ev"] == "join"] == ["n1"]


# -- the whole program -------------------------------------------------------------------------------------------------


def test_the_log_of_an_earlier_pilot_is_believed_as_far_as_it_can_be(pilot, tmp_path):
    log = tmp_path / "log.jsonl"
    good = {"ev": "samples", "job": "A", "run": 7, "samples": 500, "saved": True}
    bad = [
        {**good, "samples": float("nan")},
        {**good, "samples": "600"},
        {**good, "run": "x"},
        {**good, "run": 1 << 40, "samples": 700},
        {**good, "job": ["A"]},
        {**good, "saved": "no", "samples": 800},
        {"run": "x"},
        {"run": None},
        {"run": 3},
        {},
        7,
        None,
        [],
        "samples",
    ]
    text = "".join(json.dumps(line) + "\n" for line in (good, *bad)) + "[" * 20_000 + "\n"
    log.write_bytes(text.encode() + b'\xff\n{"ev": "samples", "job": "A", "ru')
    training = module("coordinator").Training("A", ["a"], 1, 2, 20.0)
    assert pilot.go_on([training], log) == 7
    assert training.saved == training.samples == 500
    assert log.read_bytes().endswith(b'"ru\n')  # the next line is one of its own


def test_a_machine_that_knows_itself_as_loopback_only_gives_another_address(pilot, monkeypatch):
    monkeypatch.setattr(pilot.socket, "gethostbyname", lambda name: "10.1.2.3")
    assert pilot.own_address() == "10.1.2.3"
    monkeypatch.setattr(pilot.socket, "gethostbyname", lambda name: "127.0.1.1")
    assert pilot.own_address() != "127.0.1.1"


def test_a_worker_that_leaves_in_the_last_phase_spoils_the_measurement(pilot):
    training = module("coordinator").Training("A", ["a"], 1, 1, 20.0)
    script = module("deciders").ScriptDecider([training], 1, 5.0)
    script.change(0, "n1", True)
    time_us = 1
    while script.phases:
        script.decide(time_us)
        time_us = script.due_us
    with pytest.raises(pilot.PilotError, match="the worker on n1 left"):
        script.change(time_us - 1, "n1", False)
    script.decide(time_us)
    assert script.is_done
    script.change(time_us, "n1", False)


def test_a_training_that_was_not_measured_on_some_nodes_is_named(pilot):
    trainings = [module("coordinator").Training("A", ["a"], 1, 3, 20.0)]
    phases = module("deciders").phases_of(trainings, 3)
    trainings[0].meter.rates = {1: [(10.0, 1.0)], 3: [(30.0, 1.0)]}
    assert pilot.unmeasured(trainings, phases) == ["A on 2"]
    trainings[0].meter.rates[2] = [(20.0, 1.0)]
    assert pilot.unmeasured(trainings, phases) == []


def test_a_training_that_needs_more_nodes_is_not_measured(fake_slurm, tmp_path):
    text = TRAINING.replace("min_nodes = 1", "min_nodes = 9").replace("max_nodes = 2", "max_nodes = 9")
    process = start_pilot(tmp_path, "measure", training=text)
    assert process.wait(60) == 1
    assert "needs 9 nodes" in (tmp_path / "errors").read_text()
    assert not (fake_slurm / "submitted").exists()


def test_measurements_are_not_made_that_could_not_be_written(fake_slurm, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "jobs.csv").touch()
    process = start_pilot(tmp_path, "measure")
    assert process.wait(30) == 1
    assert "jobs.csv exists" in (tmp_path / "errors").read_text()
    assert not (fake_slurm / "submitted").exists()


class FullDisk:
    """A log that takes one line."""

    def __init__(self):
        self.lines = []

    def write(self, line):
        if self.lines:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.lines.append(line)

    def flush(self):
        pass


def coordinate(pilot, stage, fake_slurm, script):
    """Let a pilot work beside a script, and return how it ended and the commands that cancelled its workers."""
    options = SimpleNamespace(host="127.0.0.1", nodes=2, time=60, partition="idle", minutes=1)

    async def scene():
        scripted = asyncio.create_task(script())
        try:
            await pilot.coordinate(stage.coordinator, options)
        finally:
            await scripted

    with pytest.raises((OSError, pilot.BfreplayError)) as raised:
        asyncio.run(scene())
    assert (fake_slurm / "queue").read_text() == ""
    return str(raised.value), (fake_slurm / "cancelled").read_text().count("-n pilot-")


def test_waiting_workers_are_cancelled_when_the_log_is_full(pilot, stage, fake_slurm):
    stage.coordinator.log = FullDisk()

    async def script():
        await stage.until(lambda: "2" in (fake_slurm / "queue").read_text())
        stage.training.is_done = True

    message, n_cancelled = coordinate(pilot, stage, fake_slurm, script)
    assert "No space left" in message
    assert n_cancelled == 1


def test_workers_leave_in_order_when_the_session_fails(pilot, stage, fake_slurm):
    def fail(time_us, node, is_idle):
        raise pilot.BfreplayError("the session has ended")

    async def script():
        await stage.until(lambda: (stage.folder / "pilot.json").exists())
        stage.agent("n1")
        await stage.trains_on("n1")
        stage.decider.change = fail
        stage.agent("n2")
        for agent in stage.agents.values():
            await stage.until(lambda agent=agent: agent.poll() is not None)

    message, n_cancelled = coordinate(pilot, stage, fake_slurm, script)
    assert message == "the session has ended"
    assert n_cancelled == 1
    lines = stage.lines()
    assert [line["code"] for line in lines if line["ev"] == "exited"] == [0]
    assert lines[-1]["ev"] == "end"
    assert lines[-1]["samples"]["A"] == [line for line in lines if line["ev"] == "samples"][-1]["samples"] > 0


def options_of_run(folder, *trainers):
    tables = [TRAINING.replace('["true"]', json.dumps(trainer)) for trainer in trainers]
    text = "".join(table.replace("jobs.A", f"jobs.{name}") for name, table in zip("AB", tables, strict=False))
    (folder / "training.toml").write_text(text)
    words = f"run --partition idle --training {folder}/training.toml --out {folder}/out --nodes 2 --host 127.0.0.1"
    return words.split()


def test_a_pilot_trains_from_the_first_worker_to_the_end_of_the_work(pilot, fake_slurm, tmp_path, monkeypatch):
    (fake_slurm / "runs").touch()
    trainer = [sys.executable, str(EXAMPLE / "numpy_trainer.py"), "--rate", "4000", "--work", "6400"]
    monkeypatch.setattr(sys, "argv", ["pilot.py", *options_of_run(tmp_path, trainer)])
    assert pilot.main() == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert {line["node"] for line in lines if line["ev"] == "join"} == {"n1", "n2"}
    assert lines[-1]["samples"]["A"] >= 6400
    assert [line["told"] for line in lines if line["ev"] == "gone"] == [False, False]  # after the closing
    (run,) = (tmp_path / "out").glob("run-*")
    assert (run / "run.json").exists()


def test_the_others_go_on_when_a_training_has_ended_whatever_its_ranks_do_then(
    pilot, fake_slurm, tmp_path, monkeypatch
):
    (fake_slurm / "runs").touch()
    monkeypatch.setattr(module("measures"), "SHORTEST_S", 0.1)
    text = (
        "import json, sys, time\n"
        "for k in range(1, 11):\n"
        "    print(json.dumps({'samples': 1000 * k, 'saved': True, 'done': k == 10 * DONE}), flush=True)\n"
        "    time.sleep(0.1)\n"
    )
    first = [sys.executable, "-c", text.replace("DONE", "1") + "sys.exit(5)"]
    second = [
        sys.executable,
        "-c",
        text.replace("DONE", "0") + "time.sleep(2); print(json.dumps({'samples': 9999, 'done': True}))",
    ]
    monkeypatch.setattr(sys, "argv", ["pilot.py", *options_of_run(tmp_path, first, second)])
    assert pilot.main() == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["samples"] == {"A": 10_000, "B": 9999}
    assert {"exited", 5} <= {value for line in lines for value in (line["ev"], line.get("code"))}


def test_a_pilot_says_that_it_has_given_a_training_up(pilot, fake_slurm, tmp_path, monkeypatch, capsys):
    (fake_slurm / "runs").touch()
    monkeypatch.setattr(module("coordinator"), "MOST_FAILURES", 1)
    monkeypatch.setattr(pilot, "MOST_FAILURES", 1)
    monkeypatch.setattr(sys, "argv", ["pilot.py", *options_of_run(tmp_path, ["false"])])
    assert pilot.main() == 1
    assert "given up: A; see" in capsys.readouterr().err


def start_pilot(folder, *more, training=TRAINING):
    (folder / "training.toml").write_text(training)
    words = [*more, "--training", str(folder / "training.toml"), "--out", str(folder / "out"), "--nodes=2"]
    errors = (folder / "errors").open("w")
    return subprocess.Popen([sys.executable, str(EXAMPLE / "pilot.py"), *words, "--partition=idle"], stderr=errors)


def wait_for(process, text, file):
    limit = time.monotonic() + 60
    while not file.exists() or text not in file.read_text():
        assert process.poll() is None
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.02)


def test_a_signal_ends_the_pilot_in_order_before_there_is_a_worker(fake_slurm, tmp_path):
    process = start_pilot(tmp_path, "run")
    wait_for(process, "2", fake_slurm / "queue")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0, (tmp_path / "errors").read_text()
    lines = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert [line["ev"] for line in lines] == ["begin", "closing", "end"]
    assert (fake_slurm / "queue").read_text() == ""
    (run,) = (tmp_path / "out").glob("run-*")
    assert (run / "run.json").exists()
    assert not (tmp_path / "out" / "pilot.json").exists()
    assert "Traceback" not in (tmp_path / "errors").read_text()


def test_a_signal_ends_the_pilot_while_it_waits_for_slurm(fake_slurm, tmp_path):
    (fake_slurm / "scontrol").write_text(f"#!/bin/sh\ntouch {fake_slurm}/asked\nexec sleep 60\n")
    process = start_pilot(tmp_path, "run")
    wait_for(process, "", fake_slurm / "asked")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 1
    assert (tmp_path / "errors").read_text() == "pilot.py: stopped before it began\n"
