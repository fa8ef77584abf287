"""A real Slurm, started by the example that ships with the repository."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "examples" / "real-slurm" / "cluster.py"


class RealSlurm:
    """A Slurm below one folder; `run` performs a command of the example's script as a user would."""

    def __init__(self, cluster_module: ModuleType) -> None:
        self.module = cluster_module
        # not pytest's own folder: that is closed to the ordinary user whose jobs run
        self.folder = Path(tempfile.mkdtemp(prefix="real-slurm-"))
        self.folder.chmod(0o755)
        first = 21000 + os.getpid() % 40 * 200
        bases = [*range(first, 30000, 200), *range(21000, first, 200)]
        self.port_base = next(base for base in bases if not any(map(cluster_module.answers, range(base, base + 40))))

    @property
    def cluster(self):
        return self.module.Cluster(self.folder)

    def run(self, command: str, *options: str, limit_s: float = 180) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, SCRIPT, command, "--dir", self.folder, *options]
        return subprocess.run(line, capture_output=True, text=True, timeout=limit_s, check=False)

    def start(self, n_nodes: int, *options: str) -> None:
        done = self.run("start", f"--nodes={n_nodes}", f"--port-base={self.port_base}", *options)
        if done.returncode:
            pytest.fail(f"the real Slurm did not start: {done.stderr}")

    def discard(self) -> None:
        done = self.run("stop")
        assert done.returncode == 0, done.stderr
        shutil.rmtree(self.folder)


@pytest.fixture(scope="session")
def cluster_module() -> ModuleType:
    """The example's module; tests that need a Slurm skip, by name, where this machine cannot run one.

    In CI, which installs the packages, BFREPLAY_REQUIRE_SLURM makes that an error.
    """
    spec = importlib.util.spec_from_file_location("real_slurm_cluster", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.check_machine("batchu")
    except module.ClusterError as error:
        message = f"there is no real Slurm to follow: {error}"
        if os.environ.get("BFREPLAY_REQUIRE_SLURM"):
            pytest.fail(message)
        pytest.skip(message)
    return module


@pytest.fixture(scope="session")
def real_slurm(cluster_module) -> Iterator[RealSlurm]:
    """A Slurm of 12 nodes, shared by all tests; power saving may take the last two when it is told to."""
    slurm = RealSlurm(cluster_module)
    try:
        slurm.start(12, "--power-save=n11,n12", "--suspend-s=100000")
        yield slurm
    finally:
        slurm.discard()


@pytest.fixture
def own_slurm(cluster_module) -> Iterator[RealSlurm]:
    """A Slurm that a test starts and stops itself."""
    slurm = RealSlurm(cluster_module)
    yield slurm
    slurm.discard()
