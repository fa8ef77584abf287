"""Every command and every Python snippet in the docs is run."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

import bfreplay
from bfreplay.cli import main
from bfreplay.replay.intervals import ALLOCATIONS, NODES
from bfreplay.replay.tables import TIMINGS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# run from top to bottom, with the programs that they show; of the others every block by itself
TO_FOLLOW = {
    ROOT / "docs" / "tutorial.md": {"bfreplay"},
    ROOT / "docs" / "how-to-admins.md": {"bfreplay"},
    ROOT / "docs" / "how-to-developers.md": {"bfreplay"},
    ROOT / "docs" / "how-to-hpo.md": {"bfreplay"},
    ROOT / "docs" / "algorithm-developers.md": {"python", "bfreplay", "pip"},
    ROOT / "docs" / "campaigns.md": {"python", "bfreplay"},
    ROOT / "docs" / "crossing.md": {"bfreplay"},
    ROOT / "docs" / "curves.md": {"bfreplay"},
    ROOT / "docs" / "elasticflow.md": {"bfreplay"},
    ROOT / "docs" / "explain.md": {"python", "bfreplay"},
    ROOT / "docs" / "gavel.md": {"bfreplay"},
    ROOT / "docs" / "objectives.md": {"python", "bfreplay"},
    ROOT / "docs" / "optuna.md": {"python", "bfreplay"},
    ROOT / "docs" / "own-proposer.md": {"bfreplay"},
    ROOT / "docs" / "pictures.md": {"python", "bfreplay"},
    ROOT / "docs" / "regret.md": {"bfreplay"},
    ROOT / "docs" / "shockwave.md": {"bfreplay"},
    ROOT / "docs" / "sweeps.md": {"python", "bfreplay"},
    ROOT / "docs" / "your-log.md": {"python", "bfreplay"},
    ROOT / "docs" / "tables-of-jobs.md": {"bfreplay"},
}
# pages whose output is held to the digit; elsewhere decimals may differ
TO_THE_DIGIT = [page for page in TO_FOLLOW if page.name == "tutorial.md" or page.name.startswith("how-to-")]
# `bfreplay` in processes of its own, as a user starts it; on the other pages in this one, which has imported everything
IN_PROCESSES = "README.md-"
# long, for `make test-all`; what they show is tried elsewhere too, on less: a search with `finish` in README.md, `tune`
# in tests of its own, the lab and comparisons on the page of developers, an objective of one's own on the page about
# objectives, Gavel's policies on a cluster on that about policies, plain replays of the sample in README.md and the
# tutorial; contracts, `regret`, `plot`, policies that look ahead and all that `explain` says in tests of their own
THOROUGH = (
    "how-to-admins.md",
    "how-to-hpo.md",
    "tuning.md-0",
    "tuning.md-2",
    "crossing.md",
    "regret.md",
    "gavel.md",
    "shockwave.md",
    "elasticflow.md",
    "algorithm-developers.md",
    "pictures.md",
    "forward-time.md-1",
    "learning-curves.md-0",
    "campaigns.md",
    "sweeps.md",
    "python.md-0",
    "comparing-runs.md-2",
    "formulation-lab.md-0",
    "runs.md-0",
    "policies.md-0",
    "explain.md",
)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"(?:`([\w.]+)`(?:, complete)?:\n\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[object]:
    found = []
    for page in PAGES:
        if page in TO_FOLLOW:
            continue
        for n, (kind, text) in enumerate(_BLOCK.findall(page.read_text())):
            if kind == language:
                found.append(_param(text, f"{page.name}-{n}"))
    return found


def _param(value, name: str) -> object:
    return pytest.param(value, id=name, marks=[pytest.mark.thorough] if name in THOROUGH else [])


@pytest.mark.often("python.md-1", "python.md-2", "solvers.md-1")
@pytest.mark.parametrize("text", _blocks("python"))
def test_python_snippets_run(text, tmp_path):
    _run_here(shlex.join(["python", "-c", text]), tmp_path)


@pytest.mark.often("README.md-0", "public-logs.md-0")
@pytest.mark.parametrize("text", _blocks("sh"))
def test_commands_run(text, tmp_path, request):
    run = _run if request.node.callspec.id.startswith(IN_PROCESSES) else _run_here
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["bfreplay"]:
            run(shlex.join(words), tmp_path)
        else:
            assert words[:1] in ([], ["make"], ["source"]), f"this line is not tested: {line}"


@pytest.mark.often("own-proposer.md", "tables-of-jobs.md", "your-log.md")
@pytest.mark.parametrize("page", [_param(page, page.name) for page in TO_FOLLOW])
def test_a_page_can_be_followed_from_top_to_bottom(page, tmp_path):
    """Blocks under a file's name become that file, commands are run, and what is shown of their output is said.

    Examples that the page links to lie in the reader's folder.
    """
    ran = []
    for name in set(re.findall(r"\]\(\.\./examples/([\w.-]+)\)", page.read_text())):
        (tmp_path / name).write_bytes((ROOT / "examples" / name).read_bytes())
    for file, kind, text in _STEP.findall(page.read_text()):
        if file:
            (tmp_path / file).write_text(text)
        elif kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", text, re.MULTILINE):
                read = str.strip if page in TO_THE_DIGIT else _without_times
                said = [read(line) for line in _run_here(command, tmp_path).splitlines()]
                assert [line for line in shown.splitlines() if read(line) not in said] == [], said
                ran.append(command)
        elif kind == "sh":
            for command in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
                _run_here(command, tmp_path)
                ran.append(command)
        elif kind == "python":
            _run_here(shlex.join(["python", "-c", text]), tmp_path)
            ran.append("python")
        else:
            assert kind == "text", f"nobody runs this block:\n{text}"
    assert {command.split()[0] for command in ran} == TO_FOLLOW[page]
    written = re.findall(r" (?:-o|--picture) (\S+)", "\n".join(ran))
    written += re.findall(r"`(lab/[\w-]+\.\w+)`", page.read_text())
    assert [file for file in written if not (tmp_path / file).stat().st_size] == []


def _run(command: str, folder: Path) -> str:
    """Standard output of a command of the page, run in ``folder``."""
    words = shlex.split(command)
    if words == ["pip", "install", "-e", "."]:
        return _installed(folder)
    programs = {"python": [sys.executable], "bfreplay": [sys.executable, "-P", "-m", "bfreplay.cli"]}
    site = folder / "site"
    path = [str(ROOT), str(site), str(folder)] if site.exists() else [str(ROOT)]
    done = subprocess.run(
        [*programs[words[0]], *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _run_here(command: str, folder: Path) -> str:
    """The same, but in this process, without what an earlier command has imported from ``folder``."""
    program, *words = shlex.split(command)
    if program == "bfreplay":
        with chdir(folder), _modules_forgotten(folder):
            done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"
        return done.stdout
    if words[0] != "-c":
        return _run(command, folder)
    snippet = ModuleType("__main__")
    with chdir(folder), _modules_forgotten(folder), pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "__main__", snippet)
        sys.path.insert(0, str(folder))
        exec(compile(words[1], "-c", "exec"), snippet.__dict__)
    return ""


@contextmanager
def _modules_forgotten(folder: Path) -> Iterator[None]:
    path = [*sys.path]
    importlib.invalidate_caches()
    if (folder / "site").exists():
        sys.path[:0] = [str(folder / "site"), str(folder)]
    try:
        yield
    finally:
        sys.path[:] = path
        for name, module in [*sys.modules.items()]:
            if folder in Path(getattr(module, "__file__", None) or "/").parents:
                del sys.modules[name]


def _installed(folder: Path) -> str:
    """What an editable install leaves of a package, without a network: its name and its entry points."""
    package = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    about = folder / "site" / f"{package['name']}-{package['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Name: {package['name']}\nVersion: {package['version']}\n")
    lines = []
    for group, points in package["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {location}" for name, location in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return ""


def _without_times(line: str) -> str:
    return re.sub(r"\d+\.\d+s?\b", "N", line).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not target.startswith("https://"):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_example_of_the_package_docstring_runs():
    done = doctest.testmod(bfreplay)
    assert done.failed == 0
    assert done.attempted > 0


@pytest.mark.parametrize("text", _blocks("toml"))
def test_job_files_in_the_docs_can_be_loaded(text, tmp_path):
    (tmp_path / "jobs.toml").write_text(text)
    assert len(bfreplay.load_jobs(tmp_path / "jobs.toml")) == 20


@pytest.mark.parametrize("script", [_param(path, path.name) for path in sorted((ROOT / "examples").glob("*.py"))])
def test_examples_run(script, tmp_path, capsys):
    with chdir(tmp_path), _modules_forgotten(script.parent):
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")
    assert re.search(r"\d", capsys.readouterr().out), "an example shows numbers"


def test_every_column_and_summary_key_is_documented(tmp_path):
    page = (ROOT / "docs" / "run-tables.md").read_text()
    assert re.findall(r"<!-- columns of (\w+) -->", page) == [
        "decisions",
        "jobs",
        "reports",
        "losses",
        "pool",
        "idle_intervals",
        "batch_delays",
    ]
    names = {name for schema in (TIMINGS, ALLOCATIONS, NODES) for name in schema.names}
    log, jobs = (bfreplay.load_events(bfreplay.sample_events_path()), bfreplay.load_jobs(bfreplay.sample_jobs_path()))
    hour = log.between(log.window_start_us, log.window_start_us + 3_600_000_000)
    summary = bfreplay.replay_log(hour, jobs).summary.to_json()
    names |= set(summary) | set(summary["efficiency"]) | {k for k in summary["ledger"] if not k.endswith("_node_us")}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
