"""The real Slurm of the example: it runs jobs, survives what kills its starter, and leaves no process."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from tests.live.conftest import SCRIPT

pytestmark = pytest.mark.slow


def submit(slurm, *options):
    user = f"--uid={slurm.cluster.settings['user']}"
    place = ["-D", str(slurm.folder / "work"), "-o", "/dev/null"]
    return slurm.cluster.ask("sbatch", "--parsable", user, *place, *options).strip()


def test_a_job_is_seen_on_its_nodes_and_accounted(real_slurm):
    cluster = real_slurm.cluster
    job = submit(real_slurm, "-N2", "-w", "n[03-04]", "--wrap", "sleep 3")
    cluster.wait("the job runs", lambda: cluster.states()["n03"] == cluster.states()["n04"] == "ALLOCATED", 30)
    assert cluster.states()["n05"] == "IDLE"
    cluster.wait("the job has ended", lambda: cluster.states()["n03"] == cluster.states()["n04"] == "IDLE", 30)
    row = ("sacct", "-nXP", "-j", job, "-o", "state,nodelist")
    cluster.wait("it is accounted", lambda: cluster.ask(*row).strip() == "COMPLETED|n[03-04]", 30)


def test_the_jobs_are_of_an_ordinary_user(real_slurm):
    job = submit(real_slurm, "--wrap", "sleep 1")
    assert f"UserId={real_slurm.cluster.settings['user']}(" in real_slurm.cluster.ask("scontrol", "show", "job", job)


def test_a_load_notes_each_operation_and_its_accounting_is_read(own_slurm, tmp_path):
    own_slurm.start(12, "--power-save=n11,n12", "--suspend-s=100000")
    line = [sys.executable, SCRIPT.with_name("load.py"), "oversubscribed", "--minutes=0.5", "--dir", own_slurm.folder]
    line += ["--log", tmp_path / "load.jsonl", "--export", tmp_path / "accounting"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    actions = [json.loads(row)["action"] for row in (tmp_path / "load.jsonl").read_text().splitlines()]
    assert (actions[0], actions[-1]) == ("begin", "end")
    assert {"submit", "requeue", "drain", "maintain", "node dies", "power down"} < set(actions)
    files = [str(tmp_path / "accounting" / name) for name in ("jobs.psv", "outages.psv", "resv.psv")]
    events = tmp_path / "events.csv"
    ingested = CliRunner().invoke(main, ["ingest", "slurm", *files, "--tz", "UTC", "--full-window", "-o", str(events)])
    assert ingested.exit_code == 0, ingested.output
    assert {"idle", "busy"} <= {row.split(",")[2] for row in events.read_text().splitlines()}


def test_a_second_start_in_the_same_folder_is_refused(real_slurm):
    done = real_slurm.run("start", "--nodes=3", "--port-base=30100")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a cluster runs in" in done.stderr
    assert "`stop` it first" in done.stderr
    assert len(real_slurm.cluster.nodes()) == 12


def test_a_port_that_is_in_use_is_named(real_slurm, own_slurm):
    done = own_slurm.run("start", f"--port-base={real_slurm.port_base}")
    assert done.returncode == 1
    assert f"port {real_slurm.port_base} of 127.0.0.1 is in use; give another --port-base" in done.stderr


def test_a_folder_that_the_jobs_user_may_not_enter_is_refused(own_slurm):
    own_slurm.folder.chmod(0o700)
    done = own_slurm.run("start", "--nodes=1")
    assert done.returncode == 1
    assert f"batchu, whose jobs run, may not enter {own_slurm.folder}: chmod o+x" in done.stderr


@pytest.mark.parametrize("name", ["my cluster", "x" * 81])
def test_a_path_that_slurm_or_a_socket_could_not_have_is_refused(own_slurm, name):
    own_slurm.folder.joinpath(name).mkdir()
    line = [sys.executable, SCRIPT, "start", "--dir", own_slurm.folder / name, "--nodes=1"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "give a path of at most 80 characters" in done.stderr


def test_stop_finds_a_cluster_by_another_path_to_its_folder(own_slurm, tmp_path):
    own_slurm.start(1)
    (tmp_path / "link").symlink_to(own_slurm.folder)
    line = [sys.executable, SCRIPT, "stop", "--dir", tmp_path / "link"]
    assert subprocess.run(line, capture_output=True, timeout=60).returncode == 0
    assert own_slurm.cluster.processes() == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "MinJobAge"], "--set MinJobAge: expected KEY=VALUE"),
        (["--nodes=0"], "expected at least one node"),
        (["--port-base=65530"], "a port for each"),
    ],
)
def test_options_that_no_slurm_could_have_are_refused(own_slurm, options, message):
    done = own_slurm.run("start", *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert [path.name for path in own_slurm.folder.iterdir()] == ["lock"]


def test_a_folder_with_other_files_is_left_alone(own_slurm):
    (own_slurm.folder / "thesis.tex").write_text("draft")
    done = own_slurm.run("start")
    assert done.returncode == 1
    assert "holds files of something else" in done.stderr


def test_nodes_die_return_come_and_go(own_slurm):
    own_slurm.start(3)
    cluster = own_slurm.cluster
    assert own_slurm.run("kill-node", "n02").returncode == 0
    assert cluster.pid_of("slurmd-n02") is None
    assert cluster.pid_of("slurmd-n01")
    assert own_slurm.run("restore-node", "n02").returncode == 0
    assert own_slurm.run("add-node").stdout == "n04\n"
    assert own_slurm.run("remove-node", "n01").returncode == 0
    cluster.wait("n02 to n04 are idle", lambda: cluster.states() == dict.fromkeys(["n02", "n03", "n04"], "IDLE"), 60)


def test_the_controller_stops_and_returns_alone(own_slurm):
    own_slurm.start(2)
    assert own_slurm.run("stop-controller").returncode == 0
    assert not own_slurm.cluster.is_up()
    assert own_slurm.cluster.pid_of("slurmd-n01")
    assert own_slurm.run("start-controller").returncode == 0
    assert own_slurm.cluster.is_up()


def test_stop_ends_jobs_that_do_not_listen(own_slurm):
    own_slurm.start(2)
    submit(own_slurm, "--wrap", 'trap "" TERM; while true; do sleep 1; done')
    cluster = own_slurm.cluster
    cluster.wait("the job runs", lambda: list(cluster.processes().values()).count("job") > 2, 30)
    assert own_slurm.run("stop").returncode == 0
    assert cluster.processes() == {}


@pytest.mark.parametrize("part", ["mariadbd", "slurmctld"])
def test_a_starter_that_is_killed_leaves_nothing_that_stop_does_not_end(own_slurm, part):
    line = [sys.executable, SCRIPT, "start", "--dir", own_slurm.folder, "--nodes=2"]
    starter = subprocess.Popen([*line, f"--port-base={own_slurm.port_base}"], stdout=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while own_slurm.cluster.pid_of(part) is None and time.monotonic() < limit:
        time.sleep(0.02)
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    assert own_slurm.cluster.processes()
    assert own_slurm.run("stop").returncode == 0
    assert own_slurm.cluster.processes() == {}
    own_slurm.start(2)
    assert own_slurm.cluster.states() == {"n01": "IDLE", "n02": "IDLE"}
