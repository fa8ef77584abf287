"""When loops are compiled: beside a run, before it, or never; and the process that compiles beside it."""

from __future__ import annotations

import filecmp
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bfreplay._compiled import IS_COMPILED
from bfreplay._compiling import sole_compiler
from bfreplay.cli import main

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not IS_COMPILED and "BFREPLAY_REQUIRE_SHARED" not in os.environ, reason="numba is missing or switched off"
    ),
]

_LOOPS = """
import numpy as np
from bfreplay._compiled import compiled
@compiled
def scaled(value, scale=2.0):
    return value * scale
@compiled
def total(values, start=0.5):
    result = start
    for value in values:
        result += scaled(value)
    return result
@compiled
def broken(value):
    return [value, "text"]
"""
_BEGIN = """
import numpy as np
from bfreplay import _compiled, _compiling
import loops
def show():
    print(loops.total(np.arange(3.0)), "compiled" if loops.total.overloads else "interpreted")
with _compiling.notice_of_compiling(lambda is_interpreted: print("notice", is_interpreted)):
    ...
"""


@pytest.fixture
def run(tmp_path):
    """Run a script that goes on from ``_BEGIN``, in a process of its own; returns the lines that it prints."""
    (tmp_path / "loops.py").write_text(_LOOPS)

    def in_process(script, mode="background"):
        process = start(script, mode)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert errors == ""
        return output.splitlines()

    def start(script, mode="background"):
        file = tmp_path / "script.py"
        file.write_text(_BEGIN.replace("    ...\n", "".join(f"    {line}\n" for line in script.splitlines())))
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path / "compiled"),
            "PYTHONPATH": str(ROOT),
            "BFREPLAY_COMPILE": mode,
        }
        command = [sys.executable, str(file)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    in_process.start = start
    return in_process


_WAIT = "_compiling._background.finish(); _compiling._background.process.wait(); import time; time.sleep(0.1)"


def test_a_loop_is_interpreted_until_a_process_beside_has_compiled_it_and_used_from_then_on(run):
    """``total`` takes its default from numba, and calls another loop."""
    lines = run(f"show()\nshow()\n{_WAIT}\nshow()")
    assert lines == ["notice True", "6.5 interpreted", "6.5 interpreted", "6.5 compiled"]
    assert run("show()", mode="never") == ["6.5 compiled"]


def test_waiting_compiles_before_the_first_use(run):
    assert run("show()\nprint(_compiling._background.process)", mode="wait") == ["notice False", "6.5 compiled", "None"]


def test_without_compiling_all_is_interpreted_and_nothing_is_kept(run, tmp_path):
    assert run("_compiling.expect_rows(10**9)\nshow()\nprint(_compiling._background.process)", mode="never") == [
        "6.5 interpreted",
        "None",
    ]
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.parametrize(
    "much",
    ["_compiling.expect_rows(10**6)", "show(); _compiling._INTERPRETED_CPU_S = -1.0"],
    ids=["expected", "met"],
)
def test_much_work_waits_for_the_compiler(run, much):
    assert run(f"{much}\nshow()")[-1] == "6.5 compiled"


def test_compiling_first_waits_inside_its_block_only(run):
    lines = run("loops.scaled(1.0)\nwith _compiling.compiling_first():\n    show()\nprint(loops.broken(1))")
    assert lines == ["notice True", "notice False", "6.5 compiled", "[1, 'text']"]


def test_a_killed_compiler_leaves_nothing_that_hinders_the_next(run):
    assert run("show()\n_compiling._background.process.kill()\nshow()")[1:] == ["6.5 interpreted"] * 2
    assert run(f"show()\n{_WAIT}\nshow()")[1:] == ["6.5 interpreted", "6.5 compiled"]


def test_two_first_runs_at_once_both_answer_and_one_compiles(run):
    ends = [run.start(f"show()\n{_WAIT}\nprint(_compiling._background.process.returncode)") for _ in range(2)]
    for process in ends:
        output, errors = process.communicate(timeout=120)
        assert (output.splitlines(), errors) == (["notice True", "6.5 interpreted", "0"], "")
    assert run("show()", mode="never") == ["6.5 compiled"]


def test_a_forked_process_leaves_the_compiler_to_its_parent(run):
    fork = "import os\nprint(end='', flush=True)\nchild = os.fork()\n"
    answer = "print(_compiling._background.process, loops.broken(1), flush=True)"
    lines = run(f"show()\n{fork}if child == 0:\n    {answer}\n    os._exit(0)\nos.waitpid(child, 0)\n{_WAIT}\nshow()")
    assert lines == ["notice True", "6.5 interpreted", "None [1, 'text']", "6.5 compiled"]


def test_a_loop_that_cannot_be_compiled_is_interpreted_without_a_word_and_shows_its_error_when_it_is_waited_for(run):
    assert run(f"print(loops.broken(1))\n{_WAIT}\nprint(loops.broken(1))")[1:] == ["[1, 'text']"] * 2
    process = run.start("print(loops.broken(1))", mode="wait")
    assert "Traceback" in process.communicate(timeout=120)[1]


def test_where_no_folder_is_writable_small_work_is_interpreted_and_much_is_compiled(run, tmp_path):
    nowhere = (
        "import importlib, numba.core.caching as c\nc.CacheImpl._locator_classes = []\nimportlib.reload(_compiled)\n"
    )
    lines = run(f"{nowhere}importlib.reload(loops)\nshow()\n_compiling.expect_rows(10**6)\nshow()")
    assert lines == ["notice True", "6.5 interpreted", "notice False", "6.5 compiled"]
    assert not list(tmp_path.rglob("*.nbc"))


def test_python_collects_less_often_only_while_it_compiles(tmp_path):
    before = gc.get_threshold()
    with sole_compiler(tmp_path):
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_an_unknown_mode_is_refused_with_those_there_are(monkeypatch):
    monkeypatch.setenv("BFREPLAY_COMPILE", "later")
    answer = CliRunner().invoke(main, ["solvers"])
    assert answer.exit_code == 2
    assert "later" in answer.output
    assert "background, wait, never" in answer.output


def test_a_first_run_on_a_bare_machine_gives_the_bytes_of_a_later_one(tmp_path, monkeypatch):
    command = [sys.executable, "-m", "bfreplay", "replay", "sample", "--jobs", "sample", "--out"]
    window = ["--window", "2024-07-01", "2024-07-02"]
    bare = {**os.environ, "BFREPLAY_COMPILE": "never", "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    for folder, environment in (("cold", bare), ("warm", os.environ)):
        done = subprocess.run([*command, str(tmp_path / folder), *window], env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "compiled").rglob("*.nbc"))
    names = sorted(path.name for path in (tmp_path / "cold").iterdir())
    same, _, _ = filecmp.cmpfiles(tmp_path / "cold", tmp_path / "warm", names, shallow=False)
    assert sorted({*names} - {*same}) == ["session.json", "timings.parquet"]
