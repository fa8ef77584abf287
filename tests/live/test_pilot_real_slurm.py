"""Three minutes of a real Slurm: elastic trainings on its idle nodes, and what a replay of the minutes predicts."""

import importlib
import json
import shutil
import subprocess
import sys
import sysconfig

import pytest

from bfreplay import ElasticJob, JobSet, TabulatedCurve, write_jobs
from tests.live.conftest import SCRIPT

pytestmark = pytest.mark.slow

EXAMPLE = SCRIPT.parent
START_S = 3.5
"""A start of three seconds, and what processes take besides on a busy machine."""


def python_for(user):
    """Return a Python with this one's packages that the user may run."""
    for python in (sys.executable, "/usr/bin/python3"):
        words = ["runuser", "-u", user, "--", "env", f"PYTHONPATH={sysconfig.get_path('purelib')}", python]
        version = "import sys, numpy, numba; print(sys.version_info[:2])"
        done = subprocess.run([*words, "-c", version], capture_output=True, text=True, check=False, cwd="/")
        if done.stdout.strip() == str(sys.version_info[:2]):
            return python
    return None


def law_of(rate, serial, min_nodes, max_nodes, name):
    nodes = range(max_nodes + 1)
    values = [rate * n / (1 + serial * (n - 1)) if n else 0.0 for n in nodes]
    pause = dict.fromkeys(("scale_up_cost_s", "scale_down_cost_s", "start_cost_s"), START_S)
    return ElasticJob(
        name,
        0,
        min_nodes,
        max_nodes,
        throughput=TabulatedCurve(nodes, values),
        work_samples=float("inf"),
        restart="pause",
        work_saved_every_s=10.0,
        saves="on-resize",
        **pause,
    )


@pytest.fixture
def fidelity(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("fidelity")


def test_jobs_train_on_idle_nodes_about_as_much_as_a_replay_predicts(own_slurm, tmp_path, fidelity, capsys):
    user = "batchu"
    python = python_for(user)
    if python is None:  # the worker's Python is closed to others here, as below /root
        user, python = "root", sys.executable
    own_slurm.start(12, f"--user={user}")
    folder = own_slurm.folder  # the ordinary user may not enter pytest's own
    trainings = {"A": (600, 0.03, 1, 8), "B": (900, 0.2, 1, 6)}
    text = ""
    for name, (rate, serial, *bounds) in trainings.items():
        words = [python, str(EXAMPLE / "numpy_trainer.py"), "--rate", str(rate), "--serial", str(serial)]
        text += f"[jobs.{name}]\ntrainer = {json.dumps([*words, '--start-s', '3'])}\n"
        text += f"min_nodes = {bounds[0]}\nmax_nodes = {bounds[1]}\nsave_every_s = 10\n"
    (folder / "training.toml").write_text(text)
    write_jobs(JobSet([law_of(*values, name) for name, values in trainings.items()]), folder / "jobs.csv")
    run = ["run", "--dir", str(folder), "--out", str(folder / "rep"), "--minutes=2", "--seed=3", f"--python={python}"]
    inputs = ["--training", str(folder / "training.toml"), "--measured", str(folder / "jobs.csv")]
    assert fidelity.main([*run, *inputs]) == 0, capsys.readouterr().err
    figures = tmp_path / "figures.json"
    assert fidelity.main(["table", str(folder / "rep"), "--join-s=1", "--json", str(figures)]) == 0
    shown = capsys.readouterr().out
    (repetition,) = json.loads(figures.read_text())["repetitions"]
    trained, predicted = repetition["trained"], repetition["predicted"]["followed/min-age"]
    assert min(trained.values()) > 0, shown
    # a machine of two busy cores: a rule that is left out, such as the pause, shows by more than this
    assert sum(predicted.values()) == pytest.approx(sum(trained.values()), rel=0.15), shown
    n_told, n_gone = repetition["told"]
    assert n_told == n_gone > 0, shown
    assert all(start["samples"] <= start["allowed"] for start in repetition["went_back"]), shown
    starts = fidelity.batch_starts([folder / "rep"])
    assert len(starts) >= 2
    assert max(starts.values()) <= 10, shown  # GraceTime and 5 s
    shutil.rmtree(folder / "rep")
