"""Trainers of the example for a real Slurm: real ranks train, stop together, lose peers and go on from checkpoints."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "real-slurm"
NUMPY = ("numpy_trainer.py", "--rate", "800", "--batch", "16")  # a step of 20 ms
STEP = 16


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """Ranks of one run of a trainer; whatever is left of them is killed at the end."""

    def __init__(self, state, *command, size=1, ranks=None, run=1, save_every_s=60.0, **environment):
        self.port = free_port()
        common = {"WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.port, "BFREPLAY_JOB": "A"}
        common |= {"BFREPLAY_RUN": run, "BFREPLAY_STATE": state, "BFREPLAY_SAVE_EVERY_S": save_every_s}
        common |= {"BFREPLAY_SECRET": f"secret of {run}"} | environment
        line = [sys.executable, FOLDER / (command or NUMPY)[0], *(command or NUMPY)[1:]]
        self.reports = []
        self.ranks = [
            subprocess.Popen(
                line,
                env=os.environ | {name: str(value) for name, value in common.items()} | {"RANK": str(rank)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in ranks or range(size)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
            for stream in (rank.stdin, rank.stdout, rank.stderr):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def read(self, until):
        """Read reports until one fulfils the condition."""
        for line in self.ranks[0].stdout:
            self.reports.append(json.loads(line))
            if until(self.reports[-1]):
                return self.reports[-1]
        raise AssertionError(f"no such report; {self.ranks[0].stderr.read()}")

    def trained(self, samples):
        return self.read(lambda report: report["samples"] >= samples)

    def tell(self, rank, line="stop\n"):
        self.ranks[rank].stdin.write(line)
        self.ranks[rank].stdin.flush()

    def codes(self):
        """Exit codes of all ranks; the reports are read to their end."""
        codes = [rank.wait(30) for rank in self.ranks]
        self.reports += [json.loads(line) for line in self.ranks[0].stdout]  # of the first one, which is rank 0
        return codes

    def errors(self, rank=0):
        return self.ranks[rank].stderr.read()


def trained_once(state, **options):
    """Samples of a run of one rank that was told to stop."""
    with Run(state, **options) as run:
        run.trained(1)
        run.tell(0)
        assert run.codes() == [0]
        return run.reports[-1]["samples"]


@pytest.mark.slow
def test_three_ranks_train_and_the_loss_falls(tmp_path):
    with Run(tmp_path, "numpy_trainer.py", "--rate", "4000", "--batch", "16", size=3) as run:
        run.trained(48 * 200)
        run.tell(0)
        assert run.codes() == [0, 0, 0]
    assert run.reports[0]["samples"] == 48  # a report right after the first step
    assert all(report["samples"] % 48 == 0 for report in run.reports)
    losses = [report["loss"] for report in run.reports if "loss" in report]
    assert losses[-1] < losses[0] / 2
    assert run.reports[-1]["saved"] is True


@pytest.mark.parametrize("how", ["stop", "SIGTERM"])
def test_one_rank_told_to_stop_ends_all_and_the_next_run_goes_on_at_the_very_sample(tmp_path, how):
    with Run(tmp_path, size=3) as run:
        run.trained(1)
        if how == "stop":
            run.tell(1)
        else:
            run.ranks[1].send_signal(signal.SIGTERM)
        assert run.codes() == [0, 0, 0]
    last = run.reports[-1]["samples"]
    with Run(tmp_path, size=1, run=2) as alone:  # another number of ranks
        assert alone.trained(1)["samples"] == last + STEP
        alone.tell(0)
        assert alone.codes() == [0]
    with Run(tmp_path, size=2, run=3) as again:
        assert again.trained(1)["samples"] == alone.reports[-1]["samples"] + 2 * STEP


@pytest.mark.slow
def test_the_model_goes_on_where_it_was_saved(tmp_path):
    work = ("numpy_trainer.py", "--rate", "1e6", "--batch", "16", "--work")
    with Run(tmp_path / "..", *work, "1600", BFREPLAY_STATE=tmp_path) as run:
        assert run.codes() == [0]
    (tmp_path / "b").mkdir()
    for number, samples in enumerate(("480", "1600"), 1):
        with Run(tmp_path / "b", *work, samples, run=number) as run:
            assert run.codes() == [0]
    one, two = ((folder / "checkpoint").read_bytes() for folder in (tmp_path, tmp_path / "b"))
    assert one[8:-4] == two[8:-4]  # behind the number of the run and before the checksum


@pytest.mark.slow
def test_two_ranks_learn_what_one_with_the_whole_batch_learns(tmp_path):
    models = []
    for size in (1, 2):
        folder = tmp_path / str(size)
        folder.mkdir()
        line = ("numpy_trainer.py", "--rate", "1e6", "--batch", str(32 // size), "--work", "640")
        with Run(folder, *line, size=size) as run:
            assert run.codes() == [0] * size
        values = (folder / "checkpoint").read_bytes()[21:-4]  # behind the header
        models.append(struct.unpack(f"{len(values) // 4}f", values))
    assert models[0] == pytest.approx(models[1], abs=1e-5)


@pytest.mark.slow
def test_samples_are_those_of_the_schedule(tmp_path):
    # 2 * 100 / (1 + 0.25 + 0.125 * 2) = 133.3 samples/s, 8 a rank: a step of 0.12 s
    curve = ("numpy_trainer.py", "--rate", "100", "--batch", "8", "--serial", "0.25", "--kappa", "0.125")
    with Run(tmp_path, *curve, size=2) as run:
        first = run.trained(16)
        last = run.trained(16 * 11)
    assert (last["at"] - first["at"]) / (last["samples"] - first["samples"]) * 16 >= 0.119  # never faster


@pytest.mark.slow
def test_work_that_is_done_ends_all_ranks(tmp_path):
    line = ("numpy_trainer.py", "--rate", "1e6", "--batch", "16", "--work", "100")
    with Run(tmp_path, *line, size=2) as run:
        assert run.codes() == [0, 0]
    assert {"samples": 128, "saved": True, "done": True}.items() <= run.reports[-1].items()
    with Run(tmp_path, *line, size=2, run=2) as again:
        assert again.codes() == [0, 0]
    assert [(report["samples"], report["done"]) for report in again.reports] == [(128, True)]


def test_a_killed_rank_ends_the_others_and_the_next_run_begins_at_the_last_checkpoint(tmp_path):
    with Run(tmp_path, size=3, save_every_s=0.7) as run:
        first, saved = (run.read(lambda report: report.get("saved"))["samples"] for _ in range(2))
        assert saved - first <= 3 * STEP * (0.7 / 0.02 + 2)
        run.trained(saved + 1)
        run.ranks[2].kill()
        assert run.codes() == [3, 3, -signal.SIGKILL]
        assert "rank 2 is lost" in run.errors()
    saved = max(report["samples"] for report in run.reports if report.get("saved"))
    assert run.reports[-1]["samples"] - saved <= 3 * STEP * (0.7 / 0.02 + 2)
    with Run(tmp_path, run=2) as again:
        assert again.trained(1)["samples"] == saved + STEP


@pytest.mark.slow
def test_the_others_end_when_rank_0_is_killed(tmp_path):
    with Run(tmp_path, size=3) as run:
        run.trained(1)
        run.ranks[0].kill()
        assert run.codes() == [-signal.SIGKILL, 3, 3]


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_rank_that_stands_still_ends_the_others_and_itself_when_it_wakes(tmp_path, stopped):
    with Run(tmp_path, size=3) as run:
        run.trained(1)
        run.ranks[stopped].send_signal(signal.SIGSTOP)
        assert [rank.wait(30) for rank in run.ranks if rank is not run.ranks[stopped]] == [3, 3]
        run.ranks[stopped].send_signal(signal.SIGCONT)
        assert run.codes() == [3, 3, 3]


@pytest.mark.slow
@pytest.mark.parametrize("starting", [True, False])
def test_a_rank_whose_agent_is_gone_exits_without_saving(tmp_path, starting):
    with Run(tmp_path, *NUMPY, "--start-s", "60" if starting else "0") as run:
        if not starting:
            run.trained(1)
        run.ranks[0].stdin.close()
        assert run.ranks[0].wait(5) == 1
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "SIGTERM"])
@pytest.mark.parametrize(("options", "size"), [(("--start-s", "60"), 1), ((), 2)], ids=["sleeping", "waiting"])
def test_a_rank_that_is_told_before_its_first_step_exits_at_once(tmp_path, how, options, size):
    with Run(tmp_path, *NUMPY, *options, size=size, ranks=[0]) as run:
        time.sleep(0.5)
        if how == "stop":
            run.tell(0)
        else:
            run.ranks[0].send_signal(signal.SIGTERM)
        assert run.ranks[0].wait(5) == 0
    assert not (tmp_path / "checkpoint").exists()


def test_a_stranger_on_the_port_changes_nothing(tmp_path):
    with Run(tmp_path, size=3, ranks=[0, 1]) as run:  # they wait for rank 2
        strangers = []
        while len(strangers) < 3:
            try:
                strangers.append(socket.create_connection(("127.0.0.1", run.port), 1))
            except OSError:
                time.sleep(0.05)
        strangers[1].sendall(b"\0\0\0\2" + b"x" * 48)  # rank 2 with a wrong proof
        strangers[2].sendall(b"GET / HTTP/1.1\r\n" + b"x" * 100_000)
        time.sleep(1)  # were a stranger taken for rank 2, they would begin without it
        with Run(tmp_path, size=3, ranks=[2], MASTER_PORT=run.port) as third:
            assert run.trained(1)["samples"] == 3 * STEP
            run.tell(1)
            assert run.codes() + third.codes() == [0, 0, 0]
        assert "dropped a connection" in run.errors()
        for stranger in strangers:
            stranger.close()


@pytest.mark.slow
def test_ranks_wait_longer_for_a_slow_start_than_for_a_step(tmp_path):
    with Run(tmp_path, size=3, ranks=[0, 1]) as run:
        time.sleep(11)
        with Run(tmp_path, size=3, ranks=[2], MASTER_PORT=run.port) as late:
            assert run.trained(1)["samples"] == 3 * STEP
            late.tell(0)
            assert run.codes() + late.codes() == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("break_it", [lambda data: data[:-9], lambda data: b"x" * len(data), lambda data: b""])
def test_a_broken_checkpoint_is_refused_and_kept(tmp_path, break_it):
    trained_once(tmp_path)
    path = tmp_path / "checkpoint"
    broken = break_it(path.read_bytes())
    path.write_bytes(broken)
    with Run(tmp_path, run=2) as run:
        assert run.codes() == [4]
        assert "cut, damaged or of another model" in run.errors()
    assert path.read_bytes() == broken


def test_one_wrong_bit_of_a_checkpoint_is_found(tmp_path):
    trained_once(tmp_path)
    data = bytearray((tmp_path / "checkpoint").read_bytes())
    data[100] ^= 1
    (tmp_path / "checkpoint").write_bytes(data)
    with Run(tmp_path, run=2) as run:
        assert run.codes() == [4]


@pytest.mark.slow
def test_an_earlier_run_does_not_replace_the_checkpoint_of_a_later_one(tmp_path):
    samples = trained_once(tmp_path, run=2)
    data = (tmp_path / "checkpoint").read_bytes()
    with Run(tmp_path, run=1) as run:
        assert run.trained(1)["samples"] == samples + STEP
        run.tell(0)
        assert run.codes() == [3]
        assert "of a later run" in run.errors()
    assert (tmp_path / "checkpoint").read_bytes() == data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("BFREPLAY_SECRET", "", "BFREPLAY_SECRET is ''"),
        ("WORLD_SIZE", "two", "WORLD_SIZE is 'two'"),
        ("BFREPLAY_SAVE_EVERY_S", "nan", "BFREPLAY_SAVE_EVERY_S is 'nan'"),
    ],
)
def test_a_wrong_environment_is_refused_by_name(tmp_path, name, value, message):
    with Run(tmp_path, **{name: value}) as run:
        assert run.codes() == [2]
        assert message in run.errors()


@pytest.mark.slow
def test_a_port_in_use_is_refused(tmp_path):
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        with Run(tmp_path, MASTER_PORT=other.getsockname()[1]) as run:
            assert run.codes() == [2]
            assert "choose another port" in run.errors()


@pytest.fixture
def jax():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: the JAX trainer is not tried")


@pytest.mark.slow
@pytest.mark.usefixtures("jax")
def test_jax_goes_on_with_the_checkpoint_of_numpy_and_stops(tmp_path):
    samples = trained_once(tmp_path)
    with Run(tmp_path, "jax_trainer.py", "--batch", "16", size=2, run=2) as run:
        assert run.trained(1)["samples"] == samples + 2 * STEP
        run.tell(1)
        assert run.codes() == [0, 0]


@pytest.mark.slow
@pytest.mark.usefixtures("jax")
@pytest.mark.parametrize("after_s", [0.2, 0.5, 1.0, 1.5])
def test_jax_that_is_told_during_its_start_exits_at_once(tmp_path, after_s):
    with Run(tmp_path, "jax_trainer.py", size=2, ranks=[0]) as run:
        time.sleep(after_s)
        run.ranks[0].send_signal(signal.SIGTERM)
        assert run.ranks[0].wait(5) == 0
