"""A real Slurm on this machine, for tests and for trying: every daemon below one folder, on 127.0.0.1 only.

python cluster.py start --dir D --nodes 12        then: eval "$(python cluster.py env --dir D)"; sinfo; ...
python cluster.py stop --dir D                    README.md beside this file has the other commands and the traps.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PACKAGES = "slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins mariadb-server munge"
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "scontrol", "sacctmgr", "sbatch", "mariadbd", "mysql_install_db", "munged")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "BFREPLAY_REAL_SLURM"  # in the environment of every daemon and of its children: how `stop` finds them
DATABASE_OPTIONS = ("--innodb-buffer-pool-size=64M", "--performance-schema=OFF", "--innodb-flush-log-at-trx-commit=2")

SLURM_CONF = """\
ClusterName=real
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/run/munge.socket
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/run/slurmctld.own
SlurmdPidFile={dir}/run/slurmd-%n.own
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={dir}/run/munge.socket
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/none
"""
POWER_CONF = """\
SuspendProgram={dir}/suspend
ResumeProgram={dir}/resume
SuspendTime={suspend_s}
SuspendTimeout=5
ResumeTimeout=30
SuspendExcNodes={awake}
"""
SLURMDBD_CONF = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/run/munge.socket
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=root
StorageLoc=accounts
LogFile={dir}/log/slurmdbd.log
PidFile={dir}/run/slurmdbd.own
"""


class ClusterError(Exception):
    """What a user can read and act upon."""


class Cluster:
    """One Slurm below one folder; `settings` is what its configuration files are written from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.run = self.folder / "run"
        self.conf = self.folder / "slurm.conf"
        self.kept = self.folder / "cluster.json"
        self.settings: dict = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
            "PATH": SEARCHED,
            "SLURM_CONF": str(self.conf),
        }

    # -- processes ---------------------------------------------------------------------------------------------------

    def spawn(self, name: str, command: list[str], user: str | None = None) -> None:
        """Start a daemon in a session of its own; its process id and start time go into a file."""
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**self.env, MARK: str(self.folder)},
                cwd=self.folder,
                start_new_session=True,
                user=user,
                group=user and pwd.getpwnam(user).pw_gid,
                extra_groups=[] if user else None,
            )
        (self.run / f"{name}.pid").write_text(f"{process.pid} {started_at(process.pid)}\n")

    def pid_of(self, name: str) -> int | None:
        """Return the process id of a daemon that runs, else None; a number that went to another process is not it."""
        try:
            pid, start = (self.run / f"{name}.pid").read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if started_at(int(pid)) == start else None

    def running(self) -> list[str]:
        """Return the names of the daemons that run."""
        return [path.stem for path in sorted(self.run.glob("*.pid")) if self.pid_of(path.stem)]

    def end(self, *names: str, first: int = signal.SIGTERM, limit_s: float = 10) -> None:
        """End daemons by their process ids: TERM, and KILL for those that do not hear."""
        pids = [pid for pid in map(self.pid_of, names) if pid]
        end_processes(pids, first, limit_s)
        for name in names:
            (self.run / f"{name}.pid").unlink(missing_ok=True)

    def left_behind(self) -> list[int]:
        """Return processes of this cluster that no file names: steps of jobs, daemons of a starter that was killed."""
        return [pid for pid in all_processes() if self._is_ours(environment_of(pid)) and pid != os.getpid()]

    def _is_ours(self, env: dict[str, str]) -> bool:
        of_a_job = "SLURMD_NODENAME" in env and env.get("SLURM_CONF") == str(self.conf)
        return env.get(MARK) == str(self.folder) or of_a_job

    # -- Slurm's own commands ----------------------------------------------------------------------------------------

    def ask(self, *command: str, limit_s: float = 5, check: bool = True) -> str:
        """Return the output of one of Slurm's commands; none waits longer than its limit."""
        try:
            done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=limit_s, cwd="/")
        except subprocess.TimeoutExpired:
            if check:
                raise ClusterError(f"{' '.join(command)}: no answer in {limit_s:g} s") from None
            return ""
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def wait(self, what: str, ready: Callable[[], object], limit_s: float) -> None:
        """Wait until `ready` is true, at most `limit_s`; then say where the logs are."""
        limit = time.monotonic() + limit_s
        while not ready():
            if time.monotonic() > limit:
                raise ClusterError(f"{what}: not after {limit_s:g} s; see {self.folder}/log")
            time.sleep(0.1)

    # -- configuration -----------------------------------------------------------------------------------------------

    def write_conf(self) -> None:
        """Write all configuration files from the settings; a reader never sees half of one."""
        s, port = self.settings, self.settings["port_base"]
        places = {"dir": self.folder, "port": port, "dbd_port": port + 1, "sql_port": port + 2}
        text = SLURM_CONF.format(**places)
        numbers = s["numbers"] + s["unreachable"]
        if s["power_save"]:
            awake = ",".join(node_name(k, s) for k in numbers if node_name(k, s) not in s["power_save"])
            text += POWER_CONF.format(**places, awake=awake, suspend_s=s["suspend_s"])
        for name, value in s["set"].items():
            text = re.sub(rf"(?m)^{name}=.*\n", "", text) + f"{name}={value}\n"
        for first, last in spans(numbers):
            names = f"[{node_name(first, s)[1:]}-{node_name(last, s)[1:]}]"
            text += f"NodeName=n{names} NodeHostname=localhost NodeAddr=127.0.0.1 "
            text += f"Port=[{port + 10 + first}-{port + 10 + last}] CPUs=1 RealMemory=100\n"
        text += "PartitionName=batch Nodes=ALL Default=YES PriorityTier=10 PreemptMode=OFF MaxTime=1-0\n"
        text += "PartitionName=idle Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=5 MaxTime=1-0\n"
        write_whole(self.kept, json.dumps(s, indent=1))
        write_whole(self.conf, text)
        dbd = SLURMDBD_CONF.format(**places)
        if "PrivateData" in s["set"]:
            dbd += f"PrivateData={s['set']['PrivateData']}\n"
        write_whole(self.folder / "slurmdbd.conf", dbd, mode=0o600)
        for program, command in (("suspend", "kill-node"), ("resume", "restore-node")):
            here = Path(__file__).absolute()
            call = f'{sys.executable} {here} {command} --dir {self.folder} "$1"'
            write_whole(self.folder / program, f"#!/bin/sh\nexec {call} >>{self.folder}/log/power.log 2>&1\n", mode=0o755)

    # -- the parts, in the order of their start ------------------------------------------------------------------------

    def start_munge(self) -> None:
        key = self.folder / "munge.key"
        if not key.exists():
            write_whole(key, secrets.token_hex(64), mode=0o400)
        options = {"socket": "run/munge.socket", "key-file": "munge.key", "pid-file": "run/munged.own"}
        options |= {"log-file": "log/munged.log", "seed-file": "munge.seed"}
        self.spawn("munged", ["munged", "-F", *(f"--{name}={self.folder}/{path}" for name, path in options.items())])
        self.wait("munged answers", lambda: self.ask("munge", "-n", "-S", f"{self.run}/munge.socket", check=False), 10)

    def start_database(self) -> None:
        data, port = self.folder / "mysql", self.settings["port_base"] + 2
        if not (data / "ready").exists():
            shutil.rmtree(data, ignore_errors=True)  # one that was begun and not completed
            data.mkdir()
            shutil.chown(data, "mysql", "mysql")
            options = ("--auth-root-authentication-method=normal", "--user=mysql", "--skip-test-db")
            self.ask("mysql_install_db", "--no-defaults", f"--datadir={data}", *options, limit_s=120)
            (data / "ready").touch()
        places = (f"--datadir={data}", f"--socket={data}/my.sock", f"--pid-file={data}/mariadbd.own", f"--port={port}")
        command = ["mariadbd", "--no-defaults", *places, "--bind-address=127.0.0.1", *DATABASE_OPTIONS]
        self.spawn("mariadbd", command, user="mysql")
        self.wait("the database answers", lambda: answers(port), 60)

    def start_accounting(self) -> None:
        self.spawn("slurmdbd", ["slurmdbd", "-D"])
        self.wait("slurmdbd answers", lambda: self.ask("sacctmgr", "-n", "show", "tres", check=False), 60)
        user = self.settings["user"]
        for thing in (
            ["cluster", "real"],
            ["account", "all", "cluster=real"],
            ["user", user, "account=all"],
            ["user", "root", "account=all"],
        ):
            self.ask("sacctmgr", "-i", "add", *thing, limit_s=20, check=False)  # says no when it is there
        if user not in self.ask("sacctmgr", "-nP", "show", "assoc", "format=user"):
            raise ClusterError(f"sacctmgr did not add the user {user}; see {self.folder}/log/slurmdbd.log")

    def start_controller(self) -> None:
        if self.pid_of("slurmctld"):
            raise ClusterError("slurmctld runs already")
        self.spawn("slurmctld", ["slurmctld", "-D"])
        self.wait("slurmctld answers", self.is_up, 30)

    def is_up(self) -> bool:
        return "is UP" in self.ask("scontrol", "ping", limit_s=2, check=False)

    def start_node(self, name: str) -> None:
        if not self.pid_of(f"slurmd-{name}"):
            (self.folder / "spool" / name).mkdir(exist_ok=True)
            self.spawn(f"slurmd-{name}", ["slurmd", "-D", "-b", "-N", name])

    def nodes(self) -> list[str]:
        """Return the names of the nodes that have a slurmd."""
        return [node_name(k, self.settings) for k in self.settings["numbers"]]

    def states(self) -> dict[str, str]:
        """Return what slurmctld says of each node."""
        text = self.ask("scontrol", "show", "node", "-o", check=False)
        return dict(re.findall(r"^NodeName=(\S+) .*? State=(\S+)", text, re.MULTILINE))

    # -- commands ----------------------------------------------------------------------------------------------------

    def start(self, settings: dict) -> None:
        check_machine(settings["user"])
        if self.folder.exists() and not self.settings and any(p.name != "lock" for p in self.folder.iterdir()):
            raise ClusterError(f"{self.folder} has files of something else; give a folder that is new or empty")
        if self.running() or self.left_behind():
            raise ClusterError(f"a cluster runs in {self.folder} already, or is left of a start; `stop` it first")
        port, size = settings["port_base"], settings["count"] + len(settings["unreachable"])
        if taken := [p for p in [port, port + 1, port + 2, *range(port + 11, port + 11 + size)] if answers(p)]:
            raise ClusterError(f"port {taken[0]} of 127.0.0.1 is in use; give another --port-base")
        for name in ("run", "log", "state", "spool", "work"):
            (self.folder / name).mkdir(exist_ok=True)
        shutil.chown(self.folder / "work", settings["user"])
        if self.settings:  # a folder that was stopped: jobs of its last time are not taken up again
            shutil.rmtree(self.folder / "state")
            (self.folder / "state").mkdir()
        self.settings = settings
        self.write_conf()
        self.start_munge()
        self.start_database()
        self.start_accounting()
        self.start_controller()
        for name in self.nodes():
            self.start_node(name)
        self.wait("all nodes are idle", lambda: all(self.states().get(n, "")[:4] == "IDLE" for n in self.nodes()), 60)

    def stop(self) -> None:
        """End every process of the cluster, also one whose start was cut short; the files stay."""
        if self.pid_of("slurmctld") and self.is_up():
            with contextlib.suppress(ClusterError):
                self.ask("scancel", "--state=PENDING", f"--user={self.settings['user']}", limit_s=2)
                self.ask("scancel", f"--user={self.settings['user']}", limit_s=2)
                self.wait("jobs have ended", lambda: not self.ask("squeue", "-h", limit_s=2).strip(), 5)
        running = self.running()
        self.end(*[name for name in running if name.startswith("slurmd-")])
        for name in ("slurmctld", "slurmdbd", "mariadbd", "munged"):
            self.end(name, limit_s=20)
        end_processes(self.left_behind(), signal.SIGTERM, 10)
        if left := self.left_behind():
            raise ClusterError(f"processes {left} did not end")

    def kill_node(self, name: str) -> None:
        self.end(f"slurmd-{name}", first=signal.SIGKILL)

    def add_node(self) -> str:
        number = self.settings["count"] = self.settings["count"] + 1
        self.settings["numbers"].append(number)
        self.reconfigure()
        name = node_name(number, self.settings)
        self.start_node(name)
        return name

    def remove_node(self, name: str) -> None:
        number = int(name[1:])
        if number not in self.settings["numbers"]:
            raise ClusterError(f"{name} is not one of {','.join(self.nodes())}")
        self.kill_node(name)
        self.settings["numbers"].remove(number)
        self.reconfigure()

    def reconfigure(self) -> None:
        """Write slurm.conf and start slurmctld and every slurmd anew, as Slurm 22.05 needs when nodes change."""
        living = [name for name in self.nodes() if self.pid_of(f"slurmd-{name}")]
        self.end("slurmctld", limit_s=20)
        self.write_conf()
        self.start_controller()
        self.end(*[f"slurmd-{name}" for name in living])
        for name in living:
            self.start_node(name)


# -- the machine -------------------------------------------------------------------------------------------------------


def started_at(pid: int) -> str | None:
    """Return when a process started, in ticks since boot; None if it is no more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def all_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def environment_of(pid: int) -> dict[str, str]:
    try:
        parts = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(part.split("=", 1) for part in parts if "=" in part)


def end_processes(pids: list[int], first: int, limit_s: float) -> None:
    """Send `first` to each, and KILL to those that are there after `limit_s`."""
    alive = {pid: started_at(pid) for pid in pids}
    for number in (first, signal.SIGKILL):
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        limit = time.monotonic() + limit_s
        while alive and time.monotonic() < limit:
            for pid in alive:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            alive = {pid: start for pid, start in alive.items() if start and started_at(pid) == start}
            time.sleep(0.05)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    beside.touch(mode=mode)
    beside.chmod(mode)
    beside.write_text(text)
    beside.replace(path)


def check_machine(user: str) -> None:
    """Raise if a Slurm cannot run here, and say what is missing."""
    if os.geteuid() != 0:
        raise ClusterError("the daemons run as root; start this as root, for example in a container")
    if missing := [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]:
        raise ClusterError(f"missing: {', '.join(missing)}; apt-get install --no-install-recommends {PACKAGES}")
    try:
        pwd.getpwnam(user)
    except KeyError:
        subprocess.run(["useradd", "--no-create-home", user], check=True, env={**os.environ, "PATH": SEARCHED})


def node_name(number: int, settings: dict) -> str:
    return f"n{number:0{2 if settings['count'] + len(settings['unreachable']) < 100 else 4}d}"


def spans(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of numbers that follow each other."""
    first = None
    for k, number in enumerate(numbers):
        first = number if first is None else first
        if k + 1 == len(numbers) or numbers[k + 1] != number + 1:
            yield first, number
            first = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    default = Path(tempfile.gettempdir()) / "real-slurm"
    for name in ("start", "stop", "status", "env", "stop-controller", "start-controller", "add-node"):
        commands.add_parser(name).add_argument("--dir", type=Path, default=default)
    for name in ("kill-node", "restore-node", "remove-node"):
        command = commands.add_parser(name)
        command.add_argument("--dir", type=Path, default=default)
        command.add_argument("nodes", help="names, for example n03 or n[03-05]")
    start = commands.choices["start"]
    start.add_argument("--nodes", type=int, default=12, help="how many nodes with a slurmd (default 12)")
    start.add_argument("--unreachable", type=int, default=0, help="nodes in slurm.conf that have no slurmd")
    start.add_argument("--port-base", type=int, default=16800, help="the first port (default 16800)")
    start.add_argument("--user", default="batchu", help="the ordinary user whose jobs run; made if it is not there")
    start.add_argument("--power-save", default="", help="nodes that power saving may take, for example n11,n12")
    start.add_argument("--suspend-s", type=int, default=20, help="idle time after which they are powered down")
    start.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a line of slurm.conf")
    options = parser.parse_args()
    try:
        return perform(options)
    except (ClusterError, OSError) as error:
        print(f"cluster.py: {error}", file=sys.stderr)
        return 1


def perform(options: argparse.Namespace) -> int:
    """Do one command; commands that change something hold the folder's lock."""
    folder = options.dir
    if options.command == "start":
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise ClusterError(f"{folder} does not exist")
    cluster = Cluster(folder)
    if options.command == "env":
        print(f"export SLURM_CONF={cluster.conf} PATH=$PATH:/usr/sbin")
        return 0
    if options.command == "status":
        running, states = cluster.running(), cluster.states()
        print(f"running: {' '.join(running) or 'nothing'}")
        for name, state in states.items():
            print(name, state)
        return 0 if running else 3
    if options.command in ("kill-node", "restore-node", "remove-node"):
        for name in cluster.ask("scontrol", "show", "hostnames", options.nodes).split():
            {"kill-node": cluster.kill_node, "restore-node": cluster.start_node, "remove-node": cluster.remove_node}[
                options.command
            ](name)
        return 0
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(f"another command works on {folder} just now") from None
        os.set_inheritable(lock.fileno(), False)
        if options.command == "start":
            numbers = list(range(1, options.nodes + 1))
            settings = {
                "port_base": options.port_base,
                "count": options.nodes,
                "numbers": numbers,
                "unreachable": list(range(options.nodes + 1, options.nodes + options.unreachable + 1)),
                "user": options.user,
                "power_save": [name for name in options.power_save.split(",") if name],
                "suspend_s": options.suspend_s,
                "set": dict(pair.split("=", 1) for pair in options.set),
            }
            cluster.start(settings)
            print(f'{options.nodes} nodes are up; eval "$({sys.executable} {__file__} env --dir {folder})"')
        elif options.command == "stop":
            cluster.stop()
        elif options.command == "stop-controller":
            cluster.end("slurmctld", limit_s=20)
        elif options.command == "start-controller":
            cluster.start_controller()
        elif options.command == "add-node":
            print(cluster.add_node())
    return 0


if __name__ == "__main__":
    sys.exit(main())
