"""Worker processes that die, and a parent that dies before them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.sweep.local_processes import MOST_DEATHS, Done, ProcessExecutor, _safe_path
from tests.experiments.sweep.small_sweeps import is_alive, wait_until

ROOT = Path(__file__).resolve().parents[3]


def note_and_wait(task: tuple[Path, str]) -> str:
    """Note the process under the task's name, and wait while there is a file called as the task."""
    folder, name = task
    with (folder / f"{name}.pids").open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    while (folder / name).exists():
        time.sleep(0.02)
    print("said by a worker")
    return name.upper()


def die(task: int) -> int:
    """End this process for some tasks."""
    if task > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if task == 1:
        os._exit(7)
    return task


def fail(task: int) -> int:
    """Raise what is a defect."""
    raise RuntimeError(f"task {task}")


def _pids(folder: Path, name: str) -> list[int]:
    file = folder / f"{name}.pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_own_task_only_and_that_is_done_again(tmp_path, capfd):
    (tmp_path / "a").touch()
    executor = ProcessExecutor(2)
    tasks = {name: (tmp_path, name) for name in "abcd"}
    answers = executor.run_tasks(note_and_wait, tasks)
    done = [next(answers), next(answers), next(answers)]  # the other worker does the rest
    assert sorted(each.key for each in done) == ["b", "c", "d"]
    wait_until(lambda: _pids(tmp_path, "a"), "a was begun")
    os.kill(_pids(tmp_path, "a")[0], signal.SIGKILL)
    (tmp_path / "a").unlink()
    assert list(answers) == [Done("a", "A")]
    assert [len(_pids(tmp_path, name)) for name in "abcd"] == [2, 1, 1, 1]
    assert len({pid for name in "bcd" for pid in _pids(tmp_path, name)}) == 1
    alive = {pid for name in "abcd" for pid in _pids(tmp_path, name) if is_alive(pid)}
    assert alive
    executor.close()
    executor.close()
    assert not any(map(is_alive, alive))
    assert capfd.readouterr().out == ""  # a worker's stdout is not ours


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_given_up_and_says_how(tmp_path):
    executor = ProcessExecutor(1)
    done = {each.key: each for each in executor.run_tasks(die, {"good": 0, "exit": 1, "kill": 2})}
    executor.close()
    assert done["good"] == Done("good", 0)
    assert done["exit"] == Done("exit", died="exit code 7")
    assert done["kill"] == Done("kill", died="ended by SIGKILL")
    assert MOST_DEATHS == 3


def test_what_work_raises_is_raised_here():
    executor = ProcessExecutor(1)
    with pytest.raises(RuntimeError, match="task 5"):
        list(executor.run_tasks(fail, {"a": 5}))
    executor.close()


def test_a_number_of_processes_that_cannot_be_is_refused():
    with pytest.raises(InputError, match="processes is below 1"):
        ProcessExecutor(0)
    assert ProcessExecutor().n_workers >= 1


@pytest.mark.slow
def test_workers_end_by_themselves_when_their_parent_is_killed(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    script = tmp_path / "parent.py"
    script.write_text(
        "from pathlib import Path\n"
        "from bfreplay.experiments.sweep.local_processes import ProcessExecutor\n"
        "from tests.experiments.sweep.test_local_processes import note_and_wait\n"
        "if __name__ == '__main__':\n"
        "    here = Path(__file__).parent\n"
        "    list(ProcessExecutor(2).run_tasks(note_and_wait, {name: (here, name) for name in 'ab'}))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    wait_until(lambda: _pids(tmp_path, "a") and _pids(tmp_path, "b"), "both workers are at work")
    workers = _pids(tmp_path, "a") + _pids(tmp_path, "b")
    assert all(map(is_alive, workers))
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(map(is_alive, workers)), "the workers have ended")


def test_threads_that_start_workers_at_once_leave_the_search_path_as_the_user_set_it(monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    first_left, second_entered = threading.Event(), threading.Event()
    found = []

    def enter_second():
        with _safe_path() as given:
            second_entered.set()
            first_left.wait()
            found.append(given)

    second = threading.Thread(target=enter_second)
    with _safe_path():
        second.start()
        second_entered.wait(0.2)
    first_left.set()
    second.join()
    assert found == [None]
    assert "PYTHONSAFEPATH" not in os.environ


def _run_script(folder, *lines):
    script = folder / "script.py"
    script.write_text("\n".join(lines))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)


_EXECUTOR = "from bfreplay.experiments.sweep.local_processes import ProcessExecutor"


def test_a_script_needs_no_guard(tmp_path):
    done = _run_script(
        tmp_path,
        _EXECUTOR,
        "print([done.answer for done in ProcessExecutor(1).run_tasks(abs, {'a': -7})], __file__)",
    )
    assert done.stdout == f"[7] {tmp_path / 'script.py'}\n", done.stderr


def test_a_script_whose_own_class_is_sent_to_workers_is_told_that_it_needs_a_guard(tmp_path):
    done = _run_script(
        tmp_path,
        _EXECUTOR,
        "class Own(int): pass",
        "print(list(ProcessExecutor(1).run_tasks(abs, {'a': Own(-1)})))",
    )
    assert done.returncode != 0
    assert "if __name__ == '__main__':" in done.stderr
    assert BfreplayError.__name__ in done.stderr


def test_a_guarded_script_may_send_its_own_class_to_workers(tmp_path):
    done = _run_script(
        tmp_path,
        _EXECUTOR,
        "class Own(int): pass",
        "if __name__ == '__main__':",
        "    print([done.answer for done in ProcessExecutor(1).run_tasks(abs, {'a': Own(-7)})])",
    )
    assert done.stdout == "[7]\n", done.stderr


@pytest.mark.slow
def test_a_sweep_in_a_script_needs_no_guard(tmp_path):
    done = _run_script(
        tmp_path,
        "import bfreplay",
        "spec = {'run': {'events': 'sample', 'jobs': 'sample', 'max_parallel': 2}, 'vary': {'t_fwd': [60]}}",
        f"print(len(bfreplay.sweep(spec, {str(tmp_path / 'out')!r}, processes=1).table))",
    )
    assert done.stdout == "1\n", done.stderr
