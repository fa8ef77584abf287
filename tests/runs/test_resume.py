"""A run that is killed goes on from its last checkpoint, to the same bytes as an unbroken one."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from filelock import FileLock

import bfreplay
from bfreplay import InputError, OutputExistsError, replay_log
from bfreplay.cli import main
from bfreplay.errors import BfreplayError
from bfreplay.replay import checkpoint
from bfreplay.replay.checkpoint import folder_of
from bfreplay.saved_state import write_state
from bfreplay.workload import Orders, Verdict
from tests.replay.tiny import job

LOG = {"events": "sample", "jobs": "sample", "window": ("2024-07-01", "2024-07-01T12:00")}
GAVEL = {"cluster": "v100=4,p100=4,k80=4", "jobs": "gavel(n=6, jobs_per_hour=8)", "curves": "sample"}
SHOCKWAVE = {"cluster": "v100=8", "jobs": "shockwave(n=8)", "curves": "sample"}
ELASTICFLOW = {"cluster": "a100=32", "jobs": "elasticflow(n=12)", "curves": "sample"}
KINDS = {
    "bftrainer": LOG | {"record_nodes": True},
    "learning T_fwd": LOG | {"t_fwd": "auto"},
    "nodes left alone": LOG | {"reserve": 3, "min_age": 120, "notice": True},
    "published clock": LOG | {"semantics": "published"},
    "look-ahead": LOG | {"policy": "look-ahead(events=3)"},
    "foresight": LOG | {"policy": "foresight(events=2)"},
    "learning curves": LOG | {"learn_curves": "model", "measurement_noise": 0.1},
    "admission": LOG | {"policy": "bftrainer(admission=true)"},
    "MILP": LOG | {"solver": "highs", "window": ("2024-07-01", "2024-07-01T02:00")},
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
OFTEN = ("bftrainer", "nodes left alone", "learning T_fwd", "MILP", "campaign", "Gavel", "Shockwave", "ElasticFlow")
"""The others are cut in the contract of policies as well."""
KILLED = ("bftrainer", "look-ahead", "learning curves", "campaign", "Gavel", "Shockwave", "ElasticFlow")
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


def killed_and_resumed(kind, whole, out, generator):
    """Kill a process that replays, at any point after a random instant, and resume it."""
    options, unbroken, n_instants = whole(kind)
    every_s = generator.choice([0.0, 0.01, 0.05])
    arguments = [options, str(out), generator.randrange(1, n_instants), generator.uniform(0, 0.02), every_s]
    killed = subprocess.run([sys.executable, "-c", _KILLED_AFTER, json.dumps(arguments)], check=False)
    assert killed.returncode in (-signal.SIGKILL, 0)
    if folder_of(out).exists():  # it may have been complete before the timer
        replay_log(**options, out=out, resume=True, overwrite=True)
    same(out, unbroken)


@pytest.mark.parametrize("kind", KILLED)
def test_a_process_that_is_killed_leaves_a_run_that_goes_on_to_the_same_bytes(kind, whole, tmp_path):
    killed_and_resumed(kind, whole, tmp_path / "run", random.Random(kind))


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(29))
@pytest.mark.parametrize("kind", KILLED)
def test_killed_at_many_random_points_it_goes_on_to_the_same_bytes(kind, number, whole, tmp_path):
    killed_and_resumed(kind, whole, tmp_path / "run", random.Random(f"{kind} {number}"))


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


def test_an_unfinished_run_is_not_begun_anew_without_being_told_to(unfinished, whole):
    options, out = unfinished
    with pytest.raises(OutputExistsError, match="an unfinished run is there already"):
        replay_log(**options, out=out, checkpoint_every="1h")
    replay_log(**options, out=out, checkpoint_every="1h", overwrite=True)
    same(out, whole("bftrainer")[1])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"t_fwd": 60}, "config.policy.t_fwd_s"), ({"max_parallel": 3}, "config.max_parallel"),
        ({"efficiency": True}, "run_settings.efficiency"), ({"window": ("2024-07-01", "2024-07-02")}, "window_end_us"),
        ({"policy": "equal-share"}, "config.policy"),
    ],
)  # fmt: skip
def test_other_options_are_refused_by_name(change, named, unfinished):
    options, out = unfinished
    with pytest.raises(InputError, match=named):
        replay_log(**(options | change), out=out, resume=True)


@pytest.mark.parametrize("name", ["versions.numpy", "versions.python", "processor", "inputs.events.n_nodes"])
def test_another_machine_or_version_is_refused_unless_it_computes_alike(name, unfinished):
    options, out = unfinished
    file = folder_of(out) / "about.json"
    about = json.loads(file.read_text())
    place = about
    *path, last = name.split(".")
    for part in path:
        place = place[part]
    place[last] = "another"
    file.write_text(json.dumps(about))
    with pytest.raises(InputError, match=name):
        replay_log(**options, out=out, resume=True)


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


def test_two_processes_do_not_work_on_one_run(unfinished):
    options, out = unfinished
    with (
        FileLock(folder_of(out) / "lock"),
        pytest.raises(InputError, match="another process works on this run"),
    ):
        replay_log(**options, out=out, resume=True)


def test_a_damaged_state_is_refused(unfinished):
    options, out = unfinished
    state = folder_of(out) / "state"
    state.write_bytes(state.read_bytes()[:-1000])
    with pytest.raises(InputError, match="no state of a replay"):
        replay_log(**options, out=out, resume=True)


def test_checkpoints_need_a_folder(whole):
    with pytest.raises(InputError, match="need a run folder"):
        replay_log(**whole("bftrainer")[0], checkpoint_every="1h")


def test_a_state_is_written_whole_or_not_at_all(whole, tmp_path, monkeypatch):
    options, unbroken, n_instants = whole("bftrainer")
    n_written = 0

    def break_off(file, state):
        nonlocal n_written
        n_written += 1
        write_state(file, state)
        if n_written == n_instants // 2:
            file.write_bytes(file.read_bytes()[:100])
            raise Killed

    monkeypatch.setattr(checkpoint, "write_state", break_off)
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


def test_a_policy_of_ones_own_is_saved_or_refused_by_the_name_of_the_attribute(whole, tmp_path):
    options = {name: value for name, value in whole("bftrainer")[0].items() if name not in ("policy", "record_nodes")}
    with pytest.raises(BfreplayError, match=r"policy\.handle is function"):
        replay_log(**options, policy=Counting(), out=tmp_path / "run", checkpoint_every=0)
    replay_log(**options, policy=CountingSaved(), out=tmp_path / "unbroken")
    with pytest.raises(Killed):
        replay_log(
            **options, policy=CountingSaved(), out=tmp_path / "run", checkpoint_every=0, overwrite=True,
            progress=_raising_after(50),
        )  # fmt: skip
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
        replay_log(
            **options, jobs=Moody(), out=tmp_path / "run", checkpoint_every=0, progress=_raising_after(60)
        )  # fmt: skip
    monkeypatch.setattr(Moody, "mood", 1)
    with pytest.raises(InputError, match="answers otherwise"):
        replay_log(**options, jobs=Moody(), out=tmp_path / "run", resume=True)
