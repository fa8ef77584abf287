"""Commands that answer, hang, fail or print nonsense, and what a poll makes of them."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.errors import InputError
from bfreplay.live.sources import CommandSource, NoAnswerError, SlurmSource, run_command

T = 1_700_000_000
S = 1_000_000

NODES = (
    "NodeName=n1 Arch=x86_64 State=IDLE+PLANNED Partitions=batch,idle LastBusyTime=1699999990\n"
    "NodeName=n2 Arch=x86_64 State=ALLOCATED Partitions=batch LastBusyTime=1699999000\n"
)
JOBS = "7|batch|RUNNING|1699999995|1700086395|n2\n"


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put commands of a test before all others: name and shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def add(**scripts: str) -> None:
        for name, script in scripts.items():
            file = folder / name
            file.write_text(f"#!/bin/sh\n{script}\n")
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

    return add


def slurm(timeout_s: float = 5.0, **options) -> SlurmSource:
    return SlurmSource(StateTable.default(), timeout_s, lambda: T * S, **options)


def echo(text: str) -> str:
    return f"cat <<'END'\n{text}END"


def test_a_poll_has_the_nodes_and_the_jobs_on_them(commands):
    commands(scontrol=echo(NODES), squeue=echo(JOBS))
    snapshot = slurm().poll()
    assert snapshot.time_us == T * S
    assert {node: reading.state for node, reading in snapshot.nodes.items()} == {
        "n1": NodeState.PLANNED,
        "n2": NodeState.BUSY,
    }
    (job,) = snapshot.jobs
    assert (job.job_id, job.nodes, job.start_us, job.end_us) == ("7", ("n2",), 1_699_999_995 * S, None)


def test_slurm_is_asked_for_times_that_need_no_zone(commands):
    commands(scontrol=echo(NODES), squeue='echo "7|batch|RUNNING|1|2|n2" && test "$SLURM_TIME_FORMAT" = %s')
    assert slurm().poll().jobs


def test_the_cluster_has_the_name_of_its_configuration(commands):
    commands(scontrol=echo("Configuration data as of 2024\nClusterName             = tiny\n"))
    assert slurm().cluster() == "tiny"


@pytest.mark.parametrize(
    ("squeue", "words"),
    [
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "Unable to contact"),
        ("exit 3", "exit code 3"),
        ("echo nonsense", "cannot be read"),
        (r"printf '7|batch|RUNNING|1|2|n'", "cut"),
        (r"printf '\377\n'", "not UTF-8"),
    ],
)
def test_an_answer_that_is_none_is_no_answer(commands, squeue, words):
    commands(scontrol=echo(NODES), squeue=squeue)
    with pytest.raises(NoAnswerError, match=words):
        slurm().poll()


def test_nodes_that_are_no_nodes_are_no_answer(commands):
    commands(scontrol="echo 'slurm_load_node error'", squeue=echo(JOBS))
    with pytest.raises(NoAnswerError, match="scontrol show node -o: slurm_load_node error"):
        slurm().poll()


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path, commands):
    mark = tmp_path / "alive"
    commands(squeue=f"(sleep 2; touch {mark}) & sleep 60")
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.3 s"):
        slurm(0.3).poll()
    time.sleep(2.2)
    assert not mark.exists()


def test_what_a_command_leaves_behind_with_its_output_open_is_ended_too(tmp_path, commands):
    mark = tmp_path / "alive"
    commands(squeue=f"(sleep 2; touch {mark}) & exit 0")
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.3 s"):
        slurm(0.3).poll()
    time.sleep(2.2)
    assert not mark.exists()


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_command_that_prints_without_end_is_ended(commands, stream):
    commands(thing=f"yes >&{stream}")
    with pytest.raises(NoAnswerError, match="thing: it prints more than 1 MiB"):
        run_command(["thing"], 60.0, longest=2**20)


def test_a_command_that_closes_its_output_and_hangs_is_ended(commands):
    commands(thing="exec >&- 2>&-; sleep 60")
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.3 s"):
        run_command(["thing"], 0.3)


def test_an_answer_that_cannot_be_read_is_shown_with_its_line(commands):
    commands(states="echo n1 idle; echo 401 Unauthorized by proxy")
    with pytest.raises(NoAnswerError, match="line 2: 401 Unauthorized by proxy"):
        CommandSource(["states"], StateTable.default(), 5.0, lambda: T * S).poll()


@pytest.mark.parametrize("start", ["", "setsid "])
def test_a_command_that_leaves_another_one_behind_does_not_hold_up_the_next_poll(tmp_path, commands, start):
    commands(states=f"{start}sleep 30 &\necho $! > {tmp_path}/pid\necho n1 idle")
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.5 s"):
        run_command(["states"], 0.5)
    pid = int((tmp_path / "pid").read_text())
    if start:  # it left the group of the command
        os.kill(pid, 9)
    else:
        deadline = time.monotonic() + 20
        while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_command_that_is_not_there_is_no_answer(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoAnswerError, match="squeue"):
        slurm().poll()


def test_what_a_command_prints_of_itself_is_shown_without_control_characters(commands):
    commands(thing="printf 'bad\\033[31m\\n' >&2; exit 1")
    with pytest.raises(NoAnswerError) as caught:
        run_command(["thing"], 5.0)
    assert "\033" not in str(caught.value)


def test_a_command_of_the_site_is_asked_in_any_form(commands):
    commands(states=echo("n1 idle 1699999990\nn2 job-exclusive\n"))
    snapshot = CommandSource(["states"], StateTable.default(), 5.0, lambda: T * S).poll()
    assert snapshot.jobs is None
    assert [(reading.state, reading.since_us) for reading in snapshot.nodes.values()] == [
        (NodeState.IDLE, 1_699_999_990 * S),
        (NodeState.BUSY, None),
    ]


SACCT = """if [ "$1" = -e ]; then echo "JobIDRaw State Start End NodeList NNodes Restarted"; exit; fi
test "$SLURM_TIME_FORMAT" = standard -a "$TZ" = UTC || exit 9
cat <<'END'
JobIDRaw|State|Start|End|NNodes|NodeList
7|COMPLETED|2023-11-14T22:13:30|2023-11-14T22:13:40|1|n2
END"""
SACCTMGR = """test "$3" = event || exit 0
cat <<'END'
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
tiny|n1|2023-11-14T22:13:25|2023-11-14T22:13:28|DOWN|broken|root
END"""


def test_a_gap_is_asked_of_accounting_in_utc(commands, monkeypatch):
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    commands(sacct=SACCT, sacctmgr=SACCTMGR)
    log = slurm().accounted(T * S, (T + 60) * S, ["n1", "n2"])
    rows = [(str(row.time)[11:19], row.node, row.state) for row in log.to_frame().itertuples()]
    assert rows == [
        ("22:13:20", "n1", "idle"),
        ("22:13:20", "n2", "idle"),
        ("22:13:25", "n1", "down"),
        ("22:13:28", "n1", "idle"),
        ("22:13:30", "n2", "busy"),
        ("22:13:40", "n2", "idle"),
    ]


def test_jobs_of_partitions_that_lend_make_no_node_busy_in_a_gap(commands):
    more = "8|COMPLETED|2023-11-14T22:13:31|2023-11-14T22:13:50|1|n1|idle\nEND"
    table = SACCT.replace("NodeList\n", "NodeList|Partition\n").replace("|n2\nEND", f"|n2|batch\n{more}")
    commands(sacct=table.replace("NodeList NNodes", "NodeList Partition NNodes"), sacctmgr="exit 0")
    for lends, states in (((), {"n1", "n2"}), (("idle", "other"), {"n2"}), (("id",), {"n1", "n2"})):
        source = SlurmSource(StateTable.default(), 5.0, lambda: T * S, lends)
        log = source.accounted(T * S, (T + 60) * S, ["n1", "n2"]).to_frame()
        assert set(log.node[log.state == "busy"]) == states


def test_accounting_without_a_job_tells_nothing(commands):
    commands(
        sacct=SACCT.replace("7|", "").replace("COMPLETED|2023-11-14T22:13:30|2023-11-14T22:13:40|1|n2\n", ""),
        sacctmgr=SACCTMGR,
    )
    with pytest.raises(NoAnswerError, match="sacct shows no jobs"):
        slurm().accounted(T * S, (T + 60) * S, ["n1", "n2"])


def test_accounting_that_shows_outages_alone_is_said_in_a_few_words(commands):
    commands(sacct=SACCT.replace("7|COMPLETED|2023-11-14T22:13:30|2023-11-14T22:13:40|1|n2\n", ""), sacctmgr=SACCTMGR)
    with pytest.raises(NoAnswerError, match=r"^sacct shows no jobs: there are none, or others' jobs are hidden$"):
        slurm().accounted(T * S, (T + 60) * S, ["n1", "n2"])


def test_a_table_of_states_of_the_user_decides(tmp_path, commands):
    text = StateTable.default().to_text().replace('state = "planned"', 'state = "idle"')
    file = tmp_path / "states.toml"
    file.write_text(text)
    commands(scontrol=echo(NODES), squeue=echo(JOBS))
    source = SlurmSource(StateTable.load(file), 5.0, lambda: T * S)
    assert source.poll().nodes["n1"].state == NodeState.IDLE


def test_a_table_of_states_that_is_none_is_refused(tmp_path):
    file = tmp_path / "states.toml"
    file.write_text("[[row]]\nstate = 'asleep'\nwords = 'idle'\n")
    with pytest.raises(InputError, match="no such state"):
        StateTable.load(file)
