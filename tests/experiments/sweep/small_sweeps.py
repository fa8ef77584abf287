"""A log of an hour, two jobs, and a policy that notes every run and can be held up: what sweeps are tried on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.local_processes import Done

ROOT = Path(__file__).resolve().parents[3]
EVENTS = """time,node,idle
2024-05-01T00:00:00,n1,true
2024-05-01T00:00:00,n2,true
2024-05-01T00:10:00,n2,false
2024-05-01T00:20:00,n3,true
2024-05-01T01:00:00,n3,false
"""
JOBS = """name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve
small,1,2,10,5,50000,0:0 1:10 2:18
large,1,4,10,5,1e9,0:0 1:20 2:38 4:60
"""
# notes each run, waits while there is a file hold-T_FWD, and fails where there is one fail-T_FWD
NOTING = """
import os, time
from pathlib import Path
from bfreplay.policies import EqualSharePolicy

HERE = Path(__file__).parent


class Noting(EqualSharePolicy):
    name = "noting"

    def __init__(self, t_fwd_s):
        self.t_fwd_s, self.begun = t_fwd_s, False

    @classmethod
    def from_options(cls, *, t_fwd_s, solver):
        return cls(t_fwd_s)

    def describe(self):
        return {"name": self.name, "t_fwd_s": self.t_fwd_s}

    def decide(self, state):
        if not self.begun:
            self.begun = True
            with open(HERE / "begun.txt", "a") as notes:
                notes.write(f"{self.t_fwd_s:g} {os.getpid()}\\n")
            while (HERE / f"hold-{self.t_fwd_s:g}").exists():
                time.sleep(0.02)
            if (HERE / f"fail-{self.t_fwd_s:g}").exists():
                raise ValueError(f"no luck with {self.t_fwd_s:g}")
            if (HERE / f"die-{self.t_fwd_s:g}").exists():
                os.kill(os.getpid(), 9)
        return super().decide(state)
"""
SPEC = """
[run]
events = "events.csv"
jobs = "jobs.csv"
policy = "noting:Noting"
efficiency = false
bound = false

[vary]
t-fwd = [10, 20, 30, 40]
"""
ALL_ONCE = {"10": 1, "20": 1, "30": 1, "40": 1}
"""What ``n_begun`` is when every run was begun once."""


def write_files(folder: Path) -> Path:
    """The log, the jobs, the policy and the spec of four runs; returns the folder."""
    for name, text in (("events.csv", EVENTS), ("jobs.csv", JOBS), ("noting.py", NOTING), ("sweep.toml", SPEC)):
        (folder / name).write_text(text)
    return folder


def start_sweep(folder: Path, out: str, *options: str) -> subprocess.Popen:
    """``bfreplay sweep`` of the files in ``folder``, as a user types it there."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "bfreplay.cli", "sweep", "sweep.toml", "--allow-code", "--out", out, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def sweep_to_the_end(folder: Path, out: str, *options: str) -> subprocess.CompletedProcess:
    """The same, waited for."""
    process = start_sweep(folder, out, *options)
    said, complained = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def sweep_here(folder: Path, out: str, *options: str) -> Result:
    """The same in this process, whose workers are others all the same."""
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])  # the command puts the folder there
        patch.delitem(sys.modules, "noting", raising=False)  # the one of another test
        return CliRunner().invoke(main, ["sweep", "sweep.toml", "--allow-code", "--out", out, *options])


def table_of(folder: Path, out: str) -> bytes:
    """The file of its results."""
    return (folder / out / "results.parquet").read_bytes()


def options(folder: Path, **changed: Any) -> RunOptions:
    """A run on the files that ``write_files`` wrote, by equal share, which is quick."""
    given = {"events": folder / "events.csv", "jobs": folder / "jobs.csv", "policy": "equal-share", "bound": False}
    return RunOptions(**{**given, **changed})


def begun(folder: Path) -> list[tuple[str, int]]:
    """T_fwd and process of every run that the policy noted, in order."""
    file = folder / "begun.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(t_fwd, int(pid)) for t_fwd, pid in map(str.split, lines)]


def n_begun(folder: Path) -> dict[str, int]:
    """How often each run was begun."""
    return dict(Counter(t_fwd for t_fwd, _ in begun(folder)))


def wait_until(holds: Callable[[], Any], what: str) -> None:
    """Wait for another process; fail after two minutes."""
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"in two minutes it has not come true that {what}")


def is_alive(pid: int) -> bool:
    """Whether the process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Inline:
    """An executor that works here and now."""

    n_workers = 1

    def __init__(self, *_: object) -> None:
        pass

    def run_tasks(self, work: Callable[[Any], Any], tasks: Mapping[str, Any]) -> Iterator[Done[Any]]:
        for key in reversed(tasks):  # the order must not matter
            yield Done(key, work(tasks[key]))

    def close(self) -> None:
        pass
