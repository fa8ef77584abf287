"""What is wrong on this machine, in one line, without loading anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bfreplay.errors import InputError
from bfreplay.milp.backends import BACKENDS, backend_of, version_of
from bfreplay.milp.backends import backend as module
from bfreplay.versions import versions

DOCS = Path(__file__).parents[3] / "docs"


def install(monkeypatch, **versions: str) -> None:
    """Pretend that these versions are installed, and nothing else."""

    def version(package: str) -> str:
        if package not in versions:
            raise module.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(module, "version", version)


@pytest.mark.parametrize("found", ["13", "13.0.3", "13.9", "13.1.dev0"])
def test_a_version_between_the_limits_will_do(monkeypatch, found):
    install(monkeypatch, gurobipy=found)
    assert module.unmet("gurobipy", ">=13,<14", why="w", fix="f") == ""


@pytest.mark.parametrize("found", ["9.5.2", "12.0.3", "13rc1", "14.0", "dev"])
def test_a_version_outside_is_named_with_reason_and_fix(monkeypatch, found):
    install(monkeypatch, gurobipy=found)
    assert module.unmet("gurobipy", ">=13,<14", why="w", fix="f") == f"gurobipy {found} is not known to be sound (w); f"


@pytest.mark.parametrize(
    ("name", "package", "fix"),
    [
        ("cbc", "mip", "pip install 'mip>=1.17,<2' 'cbcbox>=2.914,<2.929'"),
        ("pulp-cbc", "pulp", "pip install 'pulp>=3.3,<4'"),
        ("highs", "highspy", "pip install 'highspy>=1.13,!=1.14.0,<2'"),
        ("gurobi", "gurobipy", "pip install 'bfreplay[gurobi]'"),
        ("scip", "pyscipopt", "pip install 'bfreplay[scip]'"),
        ("cp-sat", "ortools", "pip install 'bfreplay[cp-sat]'"),
    ],
)
def test_a_missing_package_is_named_with_the_fix(monkeypatch, name, package, fix):
    install(monkeypatch)
    assert backend_of(name).available().startswith(f"{package} is not installed; {fix}")


@pytest.mark.parametrize("name", BACKENDS.built_in)
def test_what_a_back_end_needs_is_in_every_run_record_and_the_back_end_in_the_list_of_the_docs(monkeypatch, name):
    install(monkeypatch)
    assert backend_of(name).available().split()[0] in versions()
    assert f"\n| `{name}` |" in DOCS.joinpath("solvers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("mip", "cbcbox"), [("2.0.0", "2.935"), ("1.17.5", "2.935"), ("1.15.0", "2.927"), ("1.17.5", "2.929"), ("dev", "x")]
)
def test_builds_of_cbc_that_are_known_to_be_unsound_are_refused_with_the_fix(monkeypatch, mip, cbcbox):
    install(monkeypatch, mip=mip, cbcbox=cbcbox)
    assert "pip install 'mip>=1.17,<2' 'cbcbox>=2.914,<2.929'" in backend_of("cbc").available()


def test_a_gurobi_whose_licence_has_expired_is_refused_with_the_reason(monkeypatch):
    install(monkeypatch, gurobipy="11.0.3")
    assert "the licence that comes with older ones has expired" in backend_of("gurobi").available()


@pytest.mark.parametrize(
    ("found", "is_sound"), [("1.12.0", False), ("1.13.1", True), ("1.14.0", False), ("1.15.1", True)]
)
def test_the_release_of_highs_that_calls_wrong_answers_optimal_is_refused_with_the_reason(monkeypatch, found, is_sound):
    install(monkeypatch, highspy=found)
    said = backend_of("highs").available()
    assert (said == "") == is_sound
    assert ("1.14.0 calls wrong answers optimal" in said) != is_sound


def test_a_pulp_that_brings_no_cbc_is_refused_with_the_reason(monkeypatch):
    install(monkeypatch, pulp="4.2.0")
    assert "PuLP 4 brings no CBC" in backend_of("pulp-cbc").available()


def test_every_back_end_is_listed_without_loading_libraries_that_exclude_each_other_or_take_long():
    """OR-Tools beside python-mip's CBC, or beside HiGHS, in one process: the second to come cannot be loaded.

    Nor is numba loaded, which would treble the time that the process of a back end takes to start.
    """
    script = """
import sys
from pathlib import Path
from bfreplay.milp.backends import BACKENDS, backend_of, version_of, why_not
for name in BACKENDS.built_in:
    print(name, "|", why_not(backend_of(name)), "|", version_of(backend_of(name)))
assert not {"mip.cbc", "highspy", "ortools", "numba"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split(" | ")[0] for line in done.stdout.splitlines()] == list(BACKENDS.built_in)


@pytest.mark.parametrize(
    ("name", "loaded"),
    [("cp-sat", "mip.cbc"), ("cp-sat", "highspy"), ("cbc", module.OR_TOOLS[0]), ("highs", module.OR_TOOLS[0])],
)
def test_a_solver_is_not_loaded_beside_another_build_of_its_libraries(monkeypatch, name, loaded):
    from bfreplay.milp.backends import SolveOptions
    from bfreplay.testing.models import linear

    for each in ("mip.cbc", "highspy", *module.OR_TOOLS):
        monkeypatch.delitem(sys.modules, each, raising=False)
    monkeypatch.setitem(sys.modules, loaded, module)
    with pytest.raises(RuntimeError, match=rf"has loaded {loaded}.*isolated=True"):
        backend_of(name).solve(linear([1]), SolveOptions(1.0))


class Silent:
    """A back end that tells no version."""


class Raises:
    def version(self) -> str:
        raise OSError("no library")


def test_a_back_end_need_not_tell_its_version_and_one_that_fails_to_is_no_end_of_a_table():
    assert version_of(Silent()) == ""
    assert version_of(Raises()).startswith("version() failed: OSError: no library")


def test_an_unknown_back_end_is_refused_with_what_exists():
    with pytest.raises(InputError, match="did you mean 'cbc'"):
        backend_of("cbc_mip")
