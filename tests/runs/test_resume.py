"""A run that is killed goes on from its last checkpoint, to the same bytes as an unbroken one."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bfreplay
from bfreplay import InputError, OutputExistsError, replay_log, saved_state
from bfreplay.cli import main
from bfreplay.errors import BfreplayError
from bfreplay.replay import checkpoint
from bfreplay.replay.checkpoint import folder_of
from bfreplay.saved_state import read_state, write_state
from bfreplay.workload import JobSet, Orders, Verdict
from tests.replay.tiny import job, log

LOG = {"events": "sample", "jobs": "sample", "window": ("2024-07-01", "2024-07-01T12:00")}
GAVEL = {"cluster": "v100=4,p100=4,k80=4", "jobs": "gavel(n=6, jobs_per_hour=8)", "curves": "sample"}
SHOCKWAVE = {"cluster": "v100=8", "jobs": "shockwave(n=8)", "curves": "sample"}
ELASTICFLOW = {"cluster": "a100=32", "jobs": "elasticflow(n=12)", "curves": "sample"}
KINDS = {
    "bftrainer": LOG | {"record_nodes": True},
    "learning T_fwd": LOG | {"t_fwd": "auto"},
    "nodes left alone": LOG | {"reserve": 3, "min_age": 120, "notice": True},
    "placed on runs": LOG | {"placement": "runs", "record_nodes": True},
    "settled": LOG | {"settle": 120, "record_nodes": True},
    "published clock": LOG | {"semantics": "published"},
    "look-ahead": LOG | {"policy": "look-ahead(events=3)"},
    "foresight": LOG | {"policy": "foresight(events=2)"},
    "learning curves": LOG | {"learn_curves": "model", "measurement_noise": 0.1},
    "admission": LOG | {"policy": "bftrainer(admission=true)"},
    "MILP": LOG | {"solver": "highs", "window": ("2024-07-01", "2024-07-01T02:00")},
    "costs": LOG | {"jobs": "costly jobs", "notice": True, "clear": 7},
    "reclaim-aware": LOG | {"jobs": "costly jobs", "policy": "reclaim-aware", "record_nodes": True},
    "campaign": LOG | {"jobs": "asha.toml"},
    "Gavel": GAVEL | {"policy": "gavel.max_min_fairness_packed"},
    "Gavel, pairs estimated": GAVEL | {"policy": "gavel.max_min_fairness_packed(profiled=0.5)"},
    "Gavel, published": GAVEL | {"policy": "gavel.max_min_fairness_perf(published=true)"},
    "AlloX": GAVEL | {"policy": "gavel.allox"},
    "Gandiva": GAVEL | {"policy": "gavel.gandiva"},
    "Shockwave": SHOCKWAVE | {"policy": "shockwave.shockwave"},
    "Shockwave, published": SHOCKWAVE | {"policy": "shockwave.shockwave(published=true)"},
    "ElasticFlow": ELASTICFLOW | {"policy": "elasticflow.elasticflow"},
    "ElasticFlow, published": ELASTICFLOW | {"policy": "elasticflow.elasticflow(published=true)"},
    "Chronus": ELASTICFLOW | {"policy": "elasticflow.chronus"},
    "Tiresias": ELASTICFLOW | {"policy": "elasticflow.tiresias"},
}
OFTEN = (
    "bftrainer",
    "nodes left alone",
    "placed on runs",
    "settled",
    "learning T_fwd",
    "MILP",
    "costs",
    "reclaim-aware",
    "campaign",
    "Gavel",
    "Shockwave",
    "ElasticFlow",
)
"""The others are cut in the contract of policies as well."""
KILLED = ("bftrainer", "look-ahead", "learning curves", "campaign", "Gavel", "Shockwave", "ElasticFlow")
KILLED_OFTEN = ("bftrainer", "learning curves", "campaign", "Gavel")
MEASURED = ("session.json", "timings.parquet")
QUICK = {"efficiency": False, "bound": False}


_KILLED_AFTER = """
import json, os, signal, sys, threading
from bfreplay import replay_log
options, out, n, delay_s, every_s = json.loads(sys.argv[1])
def count(now_us, decisions):
    global n
    n -= 1
    if n == 0:
        threading.Timer(delay_s, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
replay_log(**options, out=out, checkpoint_every=every_s, progress=count)
"""


COSTS = {"start_cost_s": 60.0, "work_saved_every_s": 600.0}


def costly_jobs():
    """Those of the sample, every second of which is paused by changes, and every third saves its work on notice."""
    jobs = bfreplay.load_jobs(bfreplay.sample_jobs_path())
    return JobSet(
        (
            replace(each, restart=("charge", "pause")[k % 2], saves=("never", "never", "on-notice")[k % 3], **COSTS)
            for k, each in enumerate(jobs)
        ),
        submit_is_relative=jobs.submit_is_relative,
    )


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a function of the name of a kind: its options, the folder of its unbroken run, and its instants."""
    folder = tmp_path_factory.mktemp("whole")
    campaign = folder / "asha.toml"
    made = CliRunner().invoke(main, ["jobs", "make", "hpo", "-o", str(campaign), "--pruner", "asha", "--trials", "24"])
    assert made.exit_code == 0, made.output

    @cache
    def of(kind):
        options = KINDS[kind] | ({} if "cluster" in KINDS[kind] else QUICK)
        options |= {"jobs": str(campaign)} if options["jobs"] == campaign.name else {}
        options |= {"jobs": costly_jobs()} if options["jobs"] == "costly jobs" else {}
        n_instants = 0

        def count(now_us, decisions):
            nonlocal n_instants
            n_instants += 1

        replay_log(**options, out=folder / kind, progress=count)
        return options, folder / kind, n_instants

    return of


def same(one, other):
    """Assert that two run folders have the same files, byte for byte but for what is measured."""
    names = sorted(file.name for file in one.iterdir())
    assert names == sorted(file.name for file in other.iterdir())
    for name in names:
        assert name in MEASURED or (one / name).read_bytes() == (other / name).read_bytes(), name


def stopped_after(n, options, out, every_s=0.0):
    """Run until the process would have been killed, at the end of instant ``n``."""

    def count(now_us, decisions):
        nonlocal n
        n -= 1
        if n == 0:
            raise Killed

    with pytest.raises(Killed):
        replay_log(**options, out=out, checkpoint_every=every_s, progress=count)


@pytest.mark.often("bftrainer", "nodes left alone", "learning T_fwd", "costs", "campaign", "ElasticFlow")
@pytest.mark.parametrize(
    "kind", [each if each in OFTEN else pytest.param(each, marks=pytest.mark.thorough) for each in KINDS]
)
def test_a_run_that_is_cut_and_cut_again_goes_on_to_the_same_bytes(kind, whole, tmp_path):
    options, unbroken, n_instants = whole(kind)
    generator, out = random.Random(kind), tmp_path / "run"
    stopped_after(generator.randrange(2, n_instants // 2), options, out, every_s=0.01)
    assert not out.exists()
    with pytest.raises(Killed):
        replay_log(**options, out=out, checkpoint_every=0.01, resume=True, progress=_raising_after(n_instants // 3))
    replay_log(**options, out=out, resume=True)
    same(out, unbroken)
    assert not folder_of(out).exists()


def _raising_after(n):
    def count(now_us, decisions):
        nonlocal n
        n -= 1
        if n == 0:
            raise Killed

    return count


def killed_and_resumed(kind, whole, out, generator, intervals_s=(0.0, 0.01, 0.05)):
    """Kill a process that replays, at any point after a random instant, and resume it."""
    options, unbroken, n_instants = whole(kind)
    every_s = generator.choice(intervals_s)
    arguments = [options, str(out), generator.randrange(1, n_instants), generator.uniform(0, 0.02), every_s]
    killed = subprocess.run([sys.executable, "-c", _KILLED_AFTER, json.dumps(arguments)], check=False)
    assert killed.returncode in (-signal.SIGKILL, 0)
    if folder_of(out).exists():  # it may have been complete before the timer
        replay_log(**options, out=out, resume=True, overwrite=True)
    same(out, unbroken)


@pytest.mark.often("bftrainer")
@pytest.mark.parametrize(
    "kind", [kind if kind in KILLED_OFTEN else pytest.param(kind, marks=pytest.mark.thorough) for kind in KILLED]
)
def test_a_process_that_is_killed_leaves_a_run_that_goes_on_to_the_same_bytes(kind, whole, tmp_path):
    killed_and_resumed(kind, whole, tmp_path / "run", random.Random(kind), (0.005, 0.01, 0.05))


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(29))
@pytest.mark.parametrize("kind", KILLED)
def test_killed_at_many_random_points_it_goes_on_to_the_same_bytes(kind, number, whole, tmp_path):
    killed_and_resumed(kind, whole, tmp_path / "run", random.Random(f"{kind} {number}"))


def test_pauses_and_work_at_risk_are_saved_at_every_instant(tmp_path):
    # starts at 0 s and pauses until 5 s, scales up at 4 s and pauses until 10 s; reclaims at 11, 12 and 27 s
    work = {"start_cost_s": 5.0, "restart": "pause", "work_saved_every_s": 8.0}
    jobs = JobSet([replace(job(up_s=6, down_s=2), **work), job("other", submit_s=12, work=60)])
    changes = [(4, 2, True), (11, 0, False), (12, 1, False), (20, 0, True), (27, 2, False)]
    events = log(3, changes, 40, idle_first=[0, 1])
    options = {"events": events, "jobs": jobs, **QUICK}
    instants = []
    whole = replay_log(**options, out=tmp_path / "whole", progress=lambda now_us, _: instants.append(now_us))
    assert whole.frame("losses")["samples"].tolist() == [30, 20]
    for n in range(1, len(instants)):
        stopped_after(n, options, tmp_path / "cut")
        replay_log(**options, out=tmp_path / "cut", resume=True)
        same(tmp_path / "cut", tmp_path / "whole")
        shutil.rmtree(tmp_path / "cut")


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_removes_its_checkpoints_has_completed_the_run(whole, tmp_path, monkeypatch):
    options, unbroken, _ = whole("bftrainer")
    out, remove = tmp_path / "run", shutil.rmtree

    def remove_some(folder, **options):
        if not options:
            next(each for each in folder.iterdir() if each.name != "about.json").unlink()
            raise Killed
        remove(folder, **options)

    monkeypatch.setattr(checkpoint.shutil, "rmtree", remove_some)
    with pytest.raises(Killed):
        replay_log(**options, out=out, checkpoint_every=0.0)
    monkeypatch.undo()
    same(out, unbroken)
    with pytest.raises(InputError, match="this run is complete"):
        replay_log(**options, out=out, resume=True, overwrite=True)
    replay_log(**options, out=out, checkpoint_every=0.0, overwrite=True)
    same(out, unbroken)
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.fixture(scope="module")
def stopped(whole, tmp_path_factory):
    options, _, n_instants = whole("bftrainer")
    out = tmp_path_factory.mktemp("stopped") / "run"
    stopped_after(n_instants // 2, options, out)
    return options, out


@pytest.fixture
def unfinished(stopped, tmp_path):
    options, out = stopped
    shutil.copytree(folder_of(out), folder_of(tmp_path / "run"))
    return options, tmp_path / "run"


@pytest.mark.slow
def test_an_unfinished_run_is_not_begun_anew_without_being_told_to(unfinished, whole):
    options, out = unfinished
    with pytest.raises(OutputExistsError, match="an unfinished run is there already"):
        replay_log(**options, out=out, checkpoint_every="1h")
    replay_log(**options, out=out, checkpoint_every="1h", overwrite=True)
    same(out, whole("bftrainer")[1])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"t_fwd": 60}, "config.policy.t_fwd_s"),
        ({"max_parallel": 3}, "config.max_parallel"),
        ({"efficiency": True}, "run_settings.efficiency"),
        ({"window": ("2024-07-01", "2024-07-02")}, "window_end_us"),
        ({"policy": "equal-share"}, "config.policy"),
    ],
)
def test_other_options_are_refused_by_name(change, named, unfinished):
    options, out = unfinished
    with pytest.raises(InputError, match=named):
        replay_log(**(options | change), out=out, resume=True)


def unsealed(file):
    """Return what a checkpoint is about, without its checksum."""
    return {name: value for name, value in json.loads(file.read_text()).items() if name != "sha256"}


@pytest.mark.parametrize("name", ["versions.numpy", "versions.python", "processor", "inputs.events.n_nodes"])
def test_another_machine_or_version_is_refused_unless_it_computes_alike(name, unfinished):
    options, out = unfinished
    file = folder_of(out) / "about.json"
    about = unsealed(file)
    place = about
    *path, last = name.split(".")
    for part in path:
        place = place[part]
    place[last] = "another"
    file.write_text(checkpoint._seal(about))
    with pytest.raises(InputError, match=name):
        replay_log(**options, out=out, resume=True)


def test_what_an_older_run_did_not_depend_on_is_refused(unfinished):
    options, out = unfinished
    file = folder_of(out) / "about.json"
    about = unsealed(file)
    del about["processor"]
    file.write_text(checkpoint._seal(about))
    with pytest.raises(InputError, match="another one") as refusal:
        replay_log(**options, out=out, resume=True)
    assert (refusal.value.column, refusal.value.expected) == ("processor", "nothing")


def test_a_run_of_another_version_of_checkpoints_is_not_read(unfinished):
    file = folder_of(unfinished[1]) / "about.json"
    file.write_text(checkpoint._seal(unsealed(file) | {"schema": 1}))
    with pytest.raises(InputError, match="not of this version"):
        checkpoint.read_about(unfinished[1])


def test_the_time_to_the_next_checkpoint_counts_from_the_last(tmp_path, monkeypatch):
    times_s, saved_s = [0], []
    monkeypatch.setattr(checkpoint, "monotonic", lambda: times_s[-1])
    monkeypatch.setattr(checkpoint, "write_state", lambda *_: saved_s.append(times_s[-1]))
    checkpoints = checkpoint.Checkpoints(tmp_path / "run", 12.0, {})
    for _ in range(10):
        times_s.append(times_s[-1] + 4)
        checkpoints.visit(lambda: None)
    assert saved_s == [12, 24, 36]


def test_a_run_that_moves_to_another_folder_goes_on_there(unfinished, whole, tmp_path):
    options, out = unfinished
    moved = tmp_path / "elsewhere" / "mine"
    moved.parent.mkdir()
    shutil.move(folder_of(out), folder_of(moved))
    replay_log(**options, out=moved, resume=True)
    same(moved, whole("bftrainer")[1])


def test_there_must_be_something_to_resume(whole, tmp_path):
    options = whole("bftrainer")[0]
    with pytest.raises(InputError, match="no unfinished run of this name"):
        replay_log(**options, out=tmp_path / "run", resume=True)
    replay_log(**options, out=tmp_path / "run")
    with pytest.raises(InputError, match="this run is complete"):
        replay_log(**options, out=tmp_path / "run", resume=True, overwrite=True)


def test_a_run_killed_before_its_first_checkpoint_begins_again(whole, tmp_path):
    options, unbroken, _ = whole("bftrainer")
    stopped_after(5, options, tmp_path / "run", every_s=3600)
    assert not (folder_of(tmp_path / "run") / "state").exists()
    replay_log(**options, out=tmp_path / "run", resume=True)
    same(tmp_path / "run", unbroken)


AGAIN = ({"resume": True}, {"checkpoint_every": 0, "overwrite": True}, {"checkpoint_every": 0})


@pytest.mark.parametrize("again", AGAIN)
def test_a_run_that_another_process_works_on_is_left_alone(again, whole, tmp_path):
    options, unbroken, _ = whole("bftrainer")
    out, refused = tmp_path / "run", []

    def intrude(now_us, decisions):
        if len(refused) < 2 and (folder_of(out) / "state").exists():
            with pytest.raises(InputError, match="another process works on this run") as refusal:
                replay_log(**options, out=out, **again)
            refused.append(str(refusal.value))

    replay_log(**options, out=out, checkpoint_every=0.01, progress=intrude)
    same(out, unbroken)
    assert len(refused) == 2
    assert f"process {os.getpid()} on " in refused[0]
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.thorough
def test_a_run_begun_anew_over_a_process_that_was_killed_is_the_whole_run(unfinished, whole):
    options, out = unfinished
    (folder_of(out) / "about.json").write_text("{")
    replay_log(**options, out=out, checkpoint_every=0, overwrite=True)
    same(out, whole("bftrainer")[1])


def test_a_folder_that_is_no_checkpoint_is_not_removed(whole, tmp_path):
    (folder_of(tmp_path / "run") / "mine").mkdir(parents=True)
    with pytest.raises(InputError, match="no unfinished run of this name"):
        replay_log(**whole("bftrainer")[0], out=tmp_path / "run", checkpoint_every=0, overwrite=True)
    assert (folder_of(tmp_path / "run") / "mine").is_dir()


def flipped(content, generator):
    place = generator.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << generator.randrange(8)]) + content[place + 1 :]


@pytest.mark.parametrize("n_places", [25, pytest.param(500, marks=pytest.mark.thorough)])
def test_a_checkpoint_with_a_flipped_bit_is_refused_or_gives_the_same_bytes(n_places, unfinished, whole, tmp_path):
    options, out = unfinished
    folder, generator = folder_of(out), random.Random(n_places)
    files = sorted(folder.iterdir())
    assert len(files) > 2
    content = {file: file.read_bytes() for file in files}
    refused = named = 0
    for k in range(n_places):
        file = files[k % len(files)]
        folder.mkdir(exist_ok=True)
        for each, of_file in content.items():
            each.write_bytes(flipped(of_file, generator) if each == file else of_file)
        try:
            replay_log(**options, out=out, resume=True, overwrite=True)
        except InputError as error:
            named += file.name in str(error)
            refused += 1
        else:
            same(out, whole("bftrainer")[1])
            shutil.rmtree(out)
    assert named == refused >= n_places // 2


@pytest.mark.often("first")
@pytest.mark.parametrize("place", ["first", "missing"])
def test_rows_that_are_not_those_of_the_state_are_refused(place, whole, tmp_path, monkeypatch):
    monkeypatch.setattr("bfreplay.replay.tables.CHUNK_ROWS", 16)
    options, _, n_instants = whole("bftrainer")
    out, unbroken = tmp_path / "run", tmp_path / "unbroken"
    replay_log(**options, out=unbroken)
    stopped_after(n_instants // 2, options, out)
    chunks = sorted(folder_of(out).glob("*.arrows"))
    assert len(chunks) > 3
    kept = chunks[0].read_bytes()
    chunks[0].write_bytes(flipped(kept, random.Random(place))) if place == "first" else chunks[0].unlink()
    with pytest.raises(InputError, match="rows of the unfinished run are missing") as refusal:
        replay_log(**options, out=out, resume=True, progress=lambda *_: pytest.fail("it goes on"))
    assert chunks[0].name in str(refusal.value)
    chunks[0].write_bytes(kept)
    stale = chunks[0].with_name(chunks[0].name.replace("000000", "000099"))
    stale.write_bytes(b"of after the state")
    replay_log(**options, out=out, resume=True)
    same(out, unbroken)


def _with(change):
    return lambda about: about | change


@pytest.mark.parametrize(
    "damage",
    [
        lambda about: "{",
        lambda about: "[]",
        lambda about: "[" * 5000,
        lambda about: '{"schema":' * 5000,
        lambda about: json.dumps(about),
        lambda about: checkpoint._seal(about).replace("{", '{"schema": 2,', 1),
        _with({"options": []}),
        _with({"options": "text"}),
        lambda about: {**about} | {"options": 1},
        lambda about: {name: value for name, value in about.items() if name != "options"},
        _with({"options": {"no such option": 1}}),
        _with({"options": {"events": ["a", {}]}}),
        _with({"schema": 1}),
    ],
)
def test_a_damaged_description_of_a_run_is_refused(damage, unfinished):
    file = folder_of(unfinished[1]) / "about.json"
    damaged = damage(unsealed(file))
    file.write_text(damaged if isinstance(damaged, str) else checkpoint._seal(damaged))
    refused = CliRunner().invoke(main, ["replay", "--resume", str(unfinished[1])])
    assert refused.exit_code == 2, refused.output
    assert isinstance(refused.exception, SystemExit)
    assert "fix:" in refused.output or "expected:" in refused.output


def portions_of(options):
    """Open a session of the same jobs on a log that is to come."""
    log = bfreplay.load_events("sample")
    return bfreplay.open_session(bfreplay.NodeEvents.to_come(log.nodes, log.window_start_us), jobs=options["jobs"])


POPEN = "bfreplay.milp.isolation:subprocess.Popen"
TOUCH = [{"is": "tuple", "of": ["touch", "made-by-a-state"]}]
FORGERIES = {
    "fields": {"is": "fields", "class": POPEN, "of": TOUCH},
    "enum": {"is": "enum", "class": POPEN, "of": TOUCH[0]},
    "object": {"is": "object", "no": 10**6, "class": POPEN, "of": {}},
    "own": {"is": "own", "no": 10**6, "class": POPEN, "of": TOUCH[0]},
    "in a list": {"is": "list", "no": 10**6, "of": [{"is": "fields", "class": POPEN, "of": TOUCH}]},
    "as a key": {"is": "dict", "no": 10**6, "of": [[{"is": "enum", "class": POPEN, "of": TOUCH[0]}, 1]]},
    "builtins": {"is": "fields", "class": "bfreplay.saved_state:json.builtins.exec", "of": ["raise SystemExit"]},
    "inherited": {"is": "fields", "class": "bfreplay.milp.solution:SolverStatus.__class__", "of": ["X", "Y"]},
    "a class of ours": {"is": "fields", "class": "bfreplay.runs.replay_session:ReplaySession", "of": TOUCH},
    "the solver": {"is": "object", "no": 10**6, "class": "bfreplay.replay.engine:Engine", "of": {"timeline": TOUCH[0]}},
}


@pytest.mark.parametrize("place", ["portions", "engine"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_state_runs_nothing(forgery, place, unfinished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options, out = unfinished
    file = folder_of(out) / "state"
    state = read_state(file)
    state.tree["of"][place] = FORGERIES[forgery]
    write_state(file, state)
    with pytest.raises(InputError, match=r"may make no objects|does not fit"):
        replay_log(**options, out=out, resume=True)
    with portions_of(options) as session:
        session.save("session")
        state = read_state(Path("session"))
        state.tree[1]["of"][place] = FORGERIES[forgery]
        write_state(Path("session"), state)
        with pytest.raises(InputError, match=r"may make no objects|does not fit"):
            session.restore("session")
    assert not Path("made-by-a-state").exists()


def test_a_state_of_a_run_is_not_taken_for_that_of_a_session(unfinished):
    options, out = unfinished
    with portions_of(options) as session, pytest.raises(InputError, match="not of a session"):
        session.restore(folder_of(out) / "state")


def test_checkpoints_need_a_folder(whole):
    with pytest.raises(InputError, match="need a run folder"):
        replay_log(**whole("bftrainer")[0], checkpoint_every="1h")


def test_a_state_is_written_whole_or_not_at_all(whole, tmp_path, monkeypatch):
    options, unbroken, n_instants = whole("bftrainer")
    n_written = 0

    def break_off(part, content):
        nonlocal n_written
        n_written += 1
        with part.open("wb") as out:
            out.write(content[: 100 if n_written == n_instants // 2 else None])
        if n_written == n_instants // 2:
            raise Killed

    monkeypatch.setattr(saved_state.Path, "write_bytes", break_off)
    with pytest.raises(Killed):
        replay_log(**options, out=tmp_path / "run", checkpoint_every=0)
    monkeypatch.undo()
    replay_log(**options, out=tmp_path / "run", resume=True)
    same(tmp_path / "run", unbroken)


class Counting(bfreplay.Policy):
    """A stranger's policy that keeps count, and a handle."""

    name = "counting"

    def __init__(self):
        self.n = 0
        self.handle = lambda: None

    def decide(self, state):
        self.n += 1
        counts = np.zeros(state.n_jobs, np.int64)
        if self.n % 3:
            counts[0] = min(state.n_idle, int(state.max_nodes[0]))
            counts[0] *= counts[0] >= state.min_nodes[0]
        return bfreplay.Decision(counts)


class CountingSaved(Counting):
    not_saved = ("handle",)


class Late:
    """What a policy makes while it decides."""


class CountingLate(CountingSaved):
    def decide(self, state):
        self.last = Late()
        return super().decide(state)


def test_a_policy_of_ones_own_is_saved_or_refused_by_the_name_of_the_attribute(whole, tmp_path):
    options = {name: value for name, value in whole("bftrainer")[0].items() if name not in ("policy", "record_nodes")}
    with pytest.raises(BfreplayError, match=r"policy\.handle is function"):
        replay_log(**options, policy=Counting(), out=tmp_path / "run", checkpoint_every=3600)
    assert list(tmp_path.iterdir()) == []
    replay_log(**options, policy=CountingSaved(), out=tmp_path / "unbroken")
    with pytest.raises(Killed):
        replay_log(
            **options,
            policy=CountingSaved(),
            out=tmp_path / "run",
            checkpoint_every=0,
            overwrite=True,
            progress=_raising_after(50),
        )
    with pytest.raises(BfreplayError, match=r"policy\.last is Late"):
        replay_log(**options, policy=CountingLate(), out=tmp_path / "late", checkpoint_every=0)
    replay_log(**options, policy=CountingSaved(), out=tmp_path / "run", resume=True)
    same(tmp_path / "run", tmp_path / "unbroken")


class Moody:
    """A job source that answers otherwise once it is told to."""

    name, higher_is_better, sources = "moody", True, ()
    mood = 0

    def begin(self, window_start_us, window_end_us):
        self.made = 0

    def ask(self, now_us):
        self.made += 1
        work = 1e6 * (1 + self.mood)
        jobs = (job(f"job{self.made}", work=work, submit_s=now_us / 1e6),) if self.made < 30 else ()
        return Orders(submit=jobs, ask_again_us=now_us + 600_000_000)

    def tell(self, report):
        return Verdict(1.0)

    def describe(self):
        return {}


def test_a_source_that_answers_otherwise_than_it_did_is_refused(tmp_path, monkeypatch):
    options = QUICK | {"events": "sample", "window": LOG["window"]}
    with pytest.raises(Killed):
        replay_log(**options, jobs=Moody(), out=tmp_path / "run", checkpoint_every=0, progress=_raising_after(60))
    monkeypatch.setattr(Moody, "mood", 1)
    with pytest.raises(InputError, match="answers otherwise"):
        replay_log(**options, jobs=Moody(), out=tmp_path / "run", resume=True)
