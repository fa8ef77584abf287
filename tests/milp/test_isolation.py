"""A crashing, hanging, talking or raising back end costs one answer and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.solution import ProcessStatus, SolverStatus
from tests.milp.small_problems import problem_of_two

FAULTY = "tests.milp.faulty_backends:"
MODEL = formulation_of("choices").build(problem_of_two())
SHORT = SolveOptions(0.05)
LONG = SolveOptions(30.0)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone_soon(pid: int) -> bool:
    for _ in range(12_000):
        if not is_alive(pid):
            return True
        time.sleep(0.01)
    return False


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_one_worker_answers_one_decision_after_the_other():
    with IsolatedBackend("cbc") as isolated:
        for _ in range(3):
            ran = isolated.solve(MODEL, LONG)
            assert ran.process_status is ProcessStatus.OK
            assert ran.answer.solver_status is SolverStatus.OPTIMAL
            assert ran.answer.objective == pytest.approx(12.0)
            assert ran.elapsed_s > 0
        assert isolated.starts == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("Aborts", "ended by SIGABRT"),
        ("KillsItself", "ended by SIGKILL"),
        ("Segfaults", "ended by SIGSEGV"),
        ("Exits", "exited with code 7; it said last: heap corruption detected"),
    ],
)
def test_a_crash_is_a_status_that_says_how(fault, said):
    with IsolatedBackend(FAULTY + fault) as isolated:
        ran = isolated.solve(MODEL, LONG)
        assert ran.process_status is ProcessStatus.CRASHED
        assert ran.answer is None
        assert said in ran.message
        assert isolated.worker_pid is None


@pytest.mark.parametrize("fault", ["Hangs", "HangsHoldingTheInterpreterLock"])
def test_a_hang_ends_at_our_own_deadline_with_a_dead_worker(fault):
    with IsolatedBackend(FAULTY + fault, grace_s=0.1) as isolated:
        isolated._ready_worker()
        pid = isolated.worker_pid
        ran = isolated.solve(MODEL, SHORT)
        assert ran.process_status is ProcessStatus.TIMED_OUT
        assert "no answer after 0.15 s" in ran.message
        assert not is_alive(pid)


def test_the_worker_is_replaced_at_the_next_solve():
    with IsolatedBackend(FAULTY + "CrashesEverySecondTime") as isolated:
        statuses = [isolated.solve(MODEL, LONG).process_status for _ in range(4)]
        assert statuses == [ProcessStatus.OK, ProcessStatus.CRASHED] * 2
        assert isolated.starts == 2


def test_ctrl_c_during_a_solve_goes_on_and_its_late_answer_comes_to_no_other_question():
    easier = replace(MODEL, objective=MODEL.objective / 2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with IsolatedBackend(FAULTY + "InterruptsItsParent") as isolated:
            isolated.solve(MODEL, LONG)
            pid = isolated.worker_pid
            with pytest.raises(KeyboardInterrupt):
                isolated.solve(MODEL, LONG)
            assert not is_alive(pid)
            assert isolated.solve(easier, LONG).answer.objective == pytest.approx(6.0)
            assert isolated.starts == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_killed_between_two_decisions_is_replaced_unseen():
    with IsolatedBackend("cbc") as isolated:
        isolated.solve(MODEL, LONG)
        os.kill(isolated.worker_pid, signal.SIGKILL)
        isolated._worker.process.wait(10)  # its main thread may be gone while another one is still ending
        assert isolated.solve(MODEL, LONG).process_status is ProcessStatus.OK
        assert isolated.starts == 2


def test_an_exception_is_a_message_and_the_worker_lives_on():
    with IsolatedBackend(FAULTY + "Raises") as isolated:
        for _ in range(2):
            ran = isolated.solve(MODEL, LONG)
            assert (ran.process_status, ran.answer) == (ProcessStatus.OK, None)
            assert ran.message == "ValueError: no such luck"
        assert isolated.starts == 1


def test_a_refusal_is_told_from_a_failure():
    with IsolatedBackend(FAULTY + "Refuses") as isolated:
        ran = isolated.solve(MODEL, LONG)
        assert ran.process_status is ProcessStatus.REFUSED
        assert ran.message == "2,001 columns, 2,000 allowed"


def test_an_answer_of_the_wrong_type_is_a_failure():
    with IsolatedBackend(FAULTY + "ReturnsNonsense") as isolated:
        ran = isolated.solve(MODEL, LONG)
        assert ran.answer is None
        assert "returned a str" in ran.message


def test_chatter_on_both_outputs_does_not_disturb_the_protocol(capfd):
    with IsolatedBackend(FAULTY + "Chatters") as isolated:
        for _ in range(2):
            assert isolated.solve(MODEL, LONG).answer.objective == pytest.approx(12.0)
    assert capfd.readouterr() == ("", "")


def test_a_memory_cap_makes_a_hungry_solve_fail_alone():
    with IsolatedBackend(FAULTY + "EatsMemory", memory_limit_bytes=1 << 32) as isolated:
        ran = isolated.solve(MODEL, LONG)
        assert ran.answer is None
        assert "MemoryError" in ran.message


def test_a_back_end_that_cannot_start_is_a_crash_that_says_why():
    with IsolatedBackend(FAULTY + "CannotStart") as isolated:
        for _ in range(2):
            ran = isolated.solve(MODEL, LONG)
            assert ran.process_status is ProcessStatus.CRASHED
            assert "licence server unreachable" in ran.message
        assert isolated.worker_pid is None


def test_closing_twice_is_harmless_and_leaves_no_process_and_no_file():
    before = open_files()
    isolated = IsolatedBackend("cbc")
    isolated.close()
    isolated.solve(MODEL, LONG)
    pid = isolated.worker_pid
    isolated.close()
    isolated.close()
    assert not Path(f"/proc/{pid}").exists()  # reaped: not even a zombie
    assert open_files() == before


@pytest.mark.slow
def test_crashes_leave_no_file_open():
    with IsolatedBackend(FAULTY + "Aborts") as isolated:
        isolated.solve(MODEL, LONG)
        before = open_files()
        for _ in range(3):
            isolated.solve(MODEL, LONG)
        assert open_files() == before


def test_a_forgotten_worker_ends_with_its_owner():
    isolated = IsolatedBackend("cbc")
    isolated.solve(MODEL, LONG)
    pid = isolated.worker_pid
    del isolated
    assert gone_soon(pid)


SCRIPT = """
import os, signal, sys, time
import numpy as np
from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.isolation import IsolatedBackend
from tests.milp.small_problems import problem_of_two
isolated = IsolatedBackend({backend!r})
isolated._ready_worker()
print(isolated.worker_pid, flush=True)
model = formulation_of("choices").build(problem_of_two())
{rest}
"""
"""Without a ``__main__`` guard, on purpose."""


def script(tmp_path: Path, backend: str, rest: str) -> subprocess.Popen:
    path = tmp_path / "user_script.py"
    path.write_text(SCRIPT.format(backend=backend, rest=rest))
    root = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        start_new_session=True,
    )


def test_a_script_without_a_main_guard_works_and_leaves_nothing_behind(tmp_path):
    with script(tmp_path, "cbc", "print(isolated.solve(model, SolveOptions(30.0)).answer.objective)") as process:
        out, _ = process.communicate(timeout=600)
    pid, objective = out.split()
    assert process.returncode == 0
    assert float(objective) == pytest.approx(12.0)
    assert not is_alive(int(pid))


@pytest.mark.often("9-HangsHoldingTheInterpreterLock")
@pytest.mark.parametrize(
    ("end", "fault"),
    [
        (signal.SIGINT, "Hangs"),
        (signal.SIGTERM, "HangsHoldingTheInterpreterLock"),
        (signal.SIGKILL, "HangsHoldingTheInterpreterLock"),
        pytest.param(signal.SIGINT, "HangsHoldingTheInterpreterLock", marks=pytest.mark.thorough),
        pytest.param(signal.SIGTERM, "Hangs", marks=pytest.mark.thorough),
        pytest.param(signal.SIGKILL, "Hangs", marks=pytest.mark.thorough),
    ],
)
def test_the_worker_does_not_outlive_an_interrupted_or_killed_parent(tmp_path, fault, end):
    with script(tmp_path, FAULTY + fault, "isolated.solve(model, SolveOptions(1000.0))") as process:
        pid = int(process.stdout.readline())
        time.sleep(0.2)  # let it reach the solve; the outcome must be the same if it does not
        process.send_signal(end)
        process.wait(timeout=600)
    assert gone_soon(pid)


@pytest.mark.slow
def test_the_worker_ends_with_a_parent_that_started_it_from_another_thread(tmp_path):
    rest = (
        "isolated.close()\nimport threading\nthread = threading.Thread(target=isolated._ready_worker)\nthread.start()\n"
    )
    rest += "thread.join()\nprint(isolated.worker_pid, flush=True)\nisolated.solve(model, SolveOptions(1000.0))"
    with script(tmp_path, FAULTY + "Hangs", rest) as process:
        process.stdout.readline()
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.kill()
    assert gone_soon(pid)


@pytest.mark.slow
def test_a_forked_child_starts_a_worker_of_its_own():
    with IsolatedBackend("cbc") as isolated:
        isolated.solve(MODEL, LONG)
        mine = isolated.worker_pid
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            ran = isolated.solve(MODEL, LONG)
            right = ran.answer is not None and bool(np.isclose(ran.answer.objective, 12.0))
            os.write(write, f"{int(right)} {int(isolated.worker_pid != mine)}".encode())
            isolated.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 100) == b"1 1"
        os.close(read)
        os.close(write)
        assert isolated.worker_pid == mine
        assert isolated.solve(MODEL, LONG).answer.objective == pytest.approx(12.0)
        assert isolated.starts == 1


def _processes_in_group(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                group = os.getpgid(int(entry.name))
            except ProcessLookupError:
                continue
            if group == leader:
                found.append(int(entry.name))
    return found


def _group_gone_soon(leader: int) -> bool:
    for _ in range(2_400):
        if not _processes_in_group(leader):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_a_solver_that_runs_as_a_process_of_its_own_is_killed_with_its_worker_and_leaves_no_files():
    with IsolatedBackend("tests.milp.faulty_backends:RunsAnotherProgram", grace_s=0.5) as isolated:
        isolated.solve(MODEL, SolveOptions(30.0))  # tells that it works
        pid = isolated.worker_pid
        scratch = Path(isolated.solve(MODEL, SolveOptions(30.0)).answer.message)
        assert scratch.exists()
        assert len(_processes_in_group(pid)) >= 2
        hung = isolated.solve(MODEL, SolveOptions(0.2))
        assert hung.process_status is ProcessStatus.TIMED_OUT
    assert _group_gone_soon(pid)
    assert not scratch.exists()


@pytest.mark.slow
def test_a_solver_that_runs_as_a_process_of_its_own_does_not_outlive_a_killed_parent(tmp_path):
    rest = "print(isolated.solve(model, SolveOptions(30.0)).answer.message, flush=True)\n"
    rest += "isolated.solve(model, SolveOptions(0.2))"  # hangs; the grace is long enough for what follows
    with script(tmp_path, FAULTY + "RunsAnotherProgram", rest) as process:
        pid = int(process.stdout.readline())
        scratch = Path(process.stdout.readline().strip())
        assert scratch.exists()
        assert len(_processes_in_group(pid)) >= 2
        time.sleep(0.2)  # let it reach the second solve; the outcome must be the same if it does not
        process.kill()
        process.wait(timeout=600)
    assert _group_gone_soon(pid)
    assert not scratch.exists()


def test_an_interpreter_that_is_not_there_is_a_status():
    with IsolatedBackend("cbc", python="/no/such/python") as isolated:
        ran = isolated.solve(MODEL, SolveOptions(1.0))
    assert ran.process_status is ProcessStatus.CRASHED
    assert "/no/such/python: No such file" in ran.message


def test_another_interpreter_keeps_its_own_packages():
    """The same interpreter by another path counts as another one; it is told of the project, not of our packages."""
    alias = Path(sys.executable).parent / ".." / "bin" / Path(sys.executable).name
    with IsolatedBackend("tests.milp.faulty_backends:TellsItsPath", python=alias) as isolated:
        told = isolated.solve(MODEL, SolveOptions(5.0)).answer.message.split(os.pathsep)
    assert str(Path(__file__).resolve().parents[2]) in told
