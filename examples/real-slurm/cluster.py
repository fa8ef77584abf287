"""Starts, administers and stops a real Slurm on this machine: all files below one folder, on 127.0.0.1 only.

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
from collections.abc import Callable
from pathlib import Path

PACKAGES = "slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins mariadb-server munge"
DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = (
    "BFREPLAY_REAL_SLURM"  # in the environment of each daemon and its children: the folder, by which `stop` finds them
)
DATABASE = (
    "--user=mysql",
    "--innodb-buffer-pool-size=64M",
    "--performance-schema=OFF",
    "--innodb-flush-log-at-trx-commit=2",
)

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
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/slurmd-%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
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
FirstJobId={first_job}
PartitionName=batch Nodes=ALL Default=YES PriorityTier=10 PreemptMode=OFF MaxTime=1-0
PartitionName=idle Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=5 MaxTime=1-0
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
PidFile={dir}/run/slurmdbd.pid
"""
# power saving of this cluster: a node is its slurmd; starting takes it a while, as a machine
POWER_SCRIPT = """\
#!/bin/sh
exec >>{dir}/log/power.log 2>&1
sleep {delay_s}
exec {python} {here} {command} --dir {dir} "$1"
"""


class ClusterError(Exception):
    """A failure whose text tells the user what to do."""


class Cluster:
    """One Slurm below one folder; its configuration files are written from `settings`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.conf = self.folder / "slurm.conf"
        self.kept = self.folder / "cluster.json"
        self.settings: dict = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
        self.env |= {"PATH": SEARCHED, "SLURM_CONF": str(self.conf)}

    def nodes(self) -> list[str]:
        """Return the names of the nodes that have a slurmd."""
        return [node_name(k) for k in self.settings["numbers"]]

    # -- processes -----------------------------------------------------------------------------------------------------

    def spawn(self, part: str, *command: str) -> None:
        """Start a daemon in a session of its own, so that it outlives the starter."""
        env = {**self.env, MARK: str(self.folder)}
        with (self.folder / "log" / f"{part}.out").open("ab") as out:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            subprocess.Popen(command, env=env, cwd=self.folder, start_new_session=True, **streams)

    def processes(self) -> dict[int, str]:
        """Return the processes of this cluster: the name of a daemon, or "job" for what runs below one."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                name = (path / "comm").read_text().strip()
                entries = (path / "environ").read_bytes().decode(errors="replace").split("\0")
                words = (path / "cmdline").read_text(errors="replace").split("\0")
            except OSError:  # it has ended
                continue
            env = dict(entry.partition("=")[::2] for entry in entries)
            if env.get(MARK) == str(self.folder):
                part = f"slurmd-{words[words.index('-N') + 1]}" if name == "slurmd" and "-N" in words else name
                found[int(path.name)] = part if name in DAEMONS else "job"
            elif "SLURMD_NODENAME" in env and env.get("SLURM_CONF") == str(self.conf):
                found[int(path.name)] = "job"
        found.pop(os.getpid(), None)  # this one, when slurmctld has started it to power a node
        return found

    def pid_of(self, part: str) -> int | None:
        """Return the process id of a daemon; None if it does not run."""
        return next((pid for pid, name in sorted(self.processes().items()) if name == part), None)

    def end(self, *parts: str, first: int = signal.SIGTERM, limit_s: float = 10) -> None:
        """Send `first` to these parts, and KILL to those that are there after `limit_s`."""
        for number in (first, signal.SIGKILL):
            limit = time.monotonic() + limit_s
            for pid, part in self.processes().items():
                if part in parts:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
            while set(parts) & set(self.processes().values()) and time.monotonic() < limit:
                time.sleep(0.05)

    # -- Slurm's own commands ------------------------------------------------------------------------------------------

    def ask(self, *command: str, limit_s: float = 5, check: bool = True) -> str:
        """Return the output of a command; without `check`, nothing if it fails or takes longer than `limit_s`."""
        try:
            done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=limit_s, cwd="/")
        except subprocess.TimeoutExpired:
            if check:
                raise ClusterError(f"{' '.join(command)}: no answer in {limit_s:g} s") from None
            return ""
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
        return "" if done.returncode else done.stdout

    def wait(self, event: str, ready: Callable[[], object], limit_s: float) -> None:
        """Wait until `ready` is true, at most `limit_s`; then say where the logs are."""
        limit = time.monotonic() + limit_s
        while not ready():
            if time.monotonic() > limit:
                raise ClusterError(f"waited {limit_s:g} s until {event}; see {self.folder}/log")
            time.sleep(0.1)

    def states(self) -> dict[str, str]:
        """Return the state of each node as slurmctld tells it."""
        text = self.ask("scontrol", "show", "node", "-o", check=False)
        return dict(re.findall(r"^NodeName=(\S+) .*? State=(\S+)", text, re.MULTILINE))

    def is_up(self) -> bool:
        """Return whether slurmctld answers."""
        return "is UP" in self.ask("scontrol", "ping", limit_s=2, check=False)

    # -- configuration and the parts, in the order of their start ------------------------------------------------------

    def write_conf(self) -> None:
        """Write all configuration files from the settings."""
        s, port = self.settings, self.settings["port_base"]
        places = {"dir": self.folder, "port": port, "dbd_port": port + 1, "sql_port": port + 2}
        places["first_job"] = s["first_job"]
        numbers = s["numbers"] + s["unreachable"]
        text = SLURM_CONF.format(**places)
        if s["power_save"]:
            awake = ",".join(node_name(k) for k in numbers if node_name(k) not in s["power_save"])
            text += POWER_CONF.format(**places, awake=awake, suspend_s=s["suspend_s"])
        for name, value in s["set"].items():
            text = re.sub(rf"(?m)^{name}=.*\n", "", text) + f"{name}={value}\n"
        for first, last in runs_of(numbers):  # a line for each node would cost every command 30 ms for 1,000 nodes
            names = f"n[{node_name(first)[1:]}-{node_name(last)[1:]}]"
            address = f"NodeHostname=localhost Port=[{port + 10 + first}-{port + 10 + last}]"
            text += f"NodeName={names} {address} CPUs=1 RealMemory=100\n"
        accounting = SLURMDBD_CONF.format(**places)
        if "PrivateData" in s["set"]:
            accounting += f"PrivateData={s['set']['PrivateData']}\n"
        write_file(self.kept, json.dumps(s, indent=1))
        write_file(self.conf, text)
        write_file(self.folder / "slurmdbd.conf", accounting, mode=0o600)
        for program, command, delay_s in (("suspend", "kill-node", 0), ("resume", "restore-node", 4)):
            call = {"python": sys.executable, "here": Path(__file__).absolute(), "command": command}
            write_file(self.folder / program, POWER_SCRIPT.format(dir=self.folder, delay_s=delay_s, **call), mode=0o755)

    def start_munge(self) -> None:
        """Start a munged that only this cluster uses."""
        if not (self.folder / "munge.key").exists():
            write_file(self.folder / "munge.key", secrets.token_hex(64), mode=0o400)
        files = {"socket": "run/munge.socket", "key-file": "munge.key", "pid-file": "run/munged.pid"}
        files |= {"log-file": "log/munged.log", "seed-file": "munge.seed"}
        self.spawn("munged", "munged", "-F", *(f"--{name}={self.folder}/{path}" for name, path in files.items()))
        client = ("munge", "-n", "-S", f"{self.folder}/{files['socket']}")
        self.wait("munged answers", lambda: self.ask(*client, check=False), 10)

    def start_accounting(self) -> None:
        """Start the database and slurmdbd, and add cluster, account and users to it."""
        data, port = self.folder / "mysql", self.settings["port_base"] + 2
        if not (data / "complete").exists():
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir()
            shutil.chown(data, "mysql", "mysql")
            options = ("--auth-root-authentication-method=normal", "--user=mysql", "--skip-test-db")
            self.ask("mysql_install_db", "--no-defaults", f"--datadir={data}", *options, limit_s=120)
            (data / "complete").touch()
        files = (f"--datadir={data}", f"--socket={data}/my.sock", f"--pid-file={data}/mariadbd.pid")
        places = (*files, f"--port={port}", "--bind-address=127.0.0.1")
        self.spawn("mariadbd", "mariadbd", "--no-defaults", *places, *DATABASE)
        self.wait("the database answers", lambda: answers(port), 60)
        self.spawn("slurmdbd", "slurmdbd", "-D")
        self.wait("slurmdbd answers", lambda: self.ask("sacctmgr", "-n", "show", "tres", check=False), 60)
        users = ("root", self.settings["user"])
        for row in ("cluster real", "account all cluster=real", *(f"user {user} account=all" for user in users)):
            self.ask("sacctmgr", "-i", "add", *row.split(), limit_s=20, check=False)  # fails if the row is there
        if self.settings["user"] not in self.ask("sacctmgr", "-nP", "show", "assoc", "format=user"):
            raise ClusterError(f"sacctmgr did not add {users[1]}; see {self.folder}/log/slurmdbd.log")

    def start_controller(self) -> None:
        """Start slurmctld, if it does not run, and wait until it answers."""
        if not self.pid_of("slurmctld"):
            self.spawn("slurmctld", "slurmctld", "-D")
        self.wait("slurmctld answers", self.is_up, 30)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node, if it does not run."""
        if not self.pid_of(f"slurmd-{name}"):
            (self.folder / "spool" / name).mkdir(exist_ok=True)
            self.spawn(f"slurmd-{name}", "slurmd", "-D", "-b", "-N", name)

    # -- commands ------------------------------------------------------------------------------------------------------

    def start(self, settings: dict) -> None:
        """Start all parts; if one fails, end those that were started."""
        check_machine(settings["user"])
        if re.search(r"[^\w./+-]", str(self.folder)) or len(str(self.folder)) > 80:
            raise ClusterError(f"{self.folder}: give a path of at most 80 characters: letters, digits, and any of ._+-")
        for path in (self.folder, *self.folder.parents):
            if not path.stat().st_mode & 0o001:
                raise ClusterError(f"{settings['user']}, whose jobs run, may not enter {path}: chmod o+x {path}")
        if not self.settings and any(path.name != "lock" for path in self.folder.iterdir()):
            raise ClusterError(f"{self.folder} holds files of something else; give a folder that is new or empty")
        if self.processes():
            raise ClusterError(f"a cluster runs in {self.folder} already, or is left of a start; `stop` it first")
        port, numbers = settings["port_base"], settings["numbers"] + settings["unreachable"]
        if taken := [p for p in (port, port + 1, port + 2, *(port + 10 + k for k in numbers)) if answers(p)]:
            raise ClusterError(f"port {taken[0]} of 127.0.0.1 is in use; give another --port-base")
        settings["first_job"] = self.settings.get("first_job", -9_999) + 10_000  # the accounting of the last time stays
        self.settings = settings
        write_file(self.kept, json.dumps(settings))
        shutil.rmtree(self.folder / "state", ignore_errors=True)  # no job of the last time is taken up again
        for name in ("run", "log", "state", "spool", "work"):
            (self.folder / name).mkdir(exist_ok=True)
        shutil.chown(self.folder / "work", settings["user"])
        try:
            self.write_conf()
            self.start_munge()
            self.start_accounting()
            self.start_controller()
            for name in self.nodes():
                self.start_node(name)
            self.wait("all nodes are idle", lambda: {self.states().get(name) for name in self.nodes()} == {"IDLE"}, 60)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of the cluster, also of a start that was cut short; the files stay."""
        self.ask("scancel", f"--user={self.settings.get('user', 'root')}", limit_s=2, check=False)
        self.end(*(part for part in self.processes().values() if part.startswith("slurmd-")))
        for part in ("slurmctld", "job", "slurmdbd", "mariadbd", "munged"):
            self.end(part)
        if left := self.processes():
            raise ClusterError(f"these processes did not end: {left}")

    def kill_node(self, name: str) -> None:
        """End the slurmd of a node at once: the node dies."""
        self.end(f"slurmd-{name}", first=signal.SIGKILL)

    def add_node(self) -> str:
        """Add one node with the next number; return its name."""
        number = max(self.settings["numbers"] + self.settings["unreachable"]) + 1
        self.settings["numbers"].append(number)
        self.reconfigure()
        self.start_node(node_name(number))
        return node_name(number)

    def remove_node(self, name: str) -> None:
        """Remove a node from slurm.conf."""
        if name not in self.nodes():
            raise ClusterError(f"{name} is not one of {','.join(self.nodes())}")
        self.kill_node(name)
        self.settings["numbers"].pop(self.nodes().index(name))
        self.reconfigure()

    def reconfigure(self) -> None:
        """Write slurm.conf and start slurmctld and each slurmd anew, as Slurm 22.05 needs when nodes change."""
        running = [part for part in self.processes().values() if part.startswith("slurmd-")]
        self.end("slurmctld")
        self.write_conf()
        self.start_controller()
        self.end(*running)
        for part in running:
            self.start_node(part.removeprefix("slurmd-"))


# -- the machine -------------------------------------------------------------------------------------------------------


def answers(port: int) -> bool:
    """Return whether something listens on this port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def write_file(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file in one step: a reader sees the old one or the new one."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    beside.touch(mode=0o600)
    beside.write_text(text)
    beside.chmod(mode)
    beside.replace(path)


def check_machine(user: str) -> None:
    """Raise if a Slurm cannot run here, with what is missing; add the user whose jobs run."""
    if os.geteuid() != 0:
        raise ClusterError("the daemons run as root; start this as root, for example in a container")
    if missing := [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=SEARCHED)]:
        raise ClusterError(f"missing: {', '.join(missing)}; apt-get install --no-install-recommends {PACKAGES}")
    try:
        pwd.getpwnam(user)
    except KeyError:
        subprocess.run(["useradd", "--no-create-home", user], check=True, env={**os.environ, "PATH": SEARCHED})


def runs_of(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of numbers that follow one another, with as many digits."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1 and len(node_name(number)) == len(node_name(runs[-1][1])):
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def node_name(number: int) -> str:
    """Return the name of a node: n01, n02, ..., n1000."""
    return f"n{number:02d}"


def read_options() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    default = Path(tempfile.gettempdir()) / "real-slurm"
    for name in ("start", "stop", "status", "env", "stop-controller", "start-controller", "add-node"):
        commands.add_parser(name).add_argument("--dir", type=Path, default=default)
    for name in ("kill-node", "restore-node", "remove-node"):
        command = commands.add_parser(name)
        command.add_argument("--dir", type=Path, default=default)
        command.add_argument("nodes", help="names, for example n03 or n[03-05]")
    start = commands.choices["start"]
    start.add_argument("--nodes", type=int, default=12, help="number of nodes with a slurmd (default 12)")
    start.add_argument("--unreachable", type=int, default=0, help="number of nodes in slurm.conf without a slurmd")
    start.add_argument("--port-base", type=int, default=16800, help="first port (default 16800)")
    start.add_argument("--user", default="batchu", help="ordinary user whose jobs run; added if absent")
    start.add_argument("--power-save", default="", help="nodes that power saving may take, for example n11,n12")
    start.add_argument("--suspend-s", type=int, default=20, help="idle time after which they are powered down")
    start.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a line of slurm.conf")
    return parser.parse_args()


def perform(cluster: Cluster, options: argparse.Namespace) -> None:
    """Carry out one command."""
    match options.command:
        case "start":
            if bad := [pair for pair in options.set if "=" not in pair]:
                raise ClusterError(f"--set {bad[0]}: expected KEY=VALUE, for example MinJobAge=300")
            if options.nodes < 1 or not 1024 <= options.port_base <= 65_000 - options.nodes - options.unreachable:
                raise ClusterError("expected at least one node, and a port for each from --port-base (1024 or more) on")
            settings = {
                "port_base": options.port_base,
                "numbers": list(range(1, options.nodes + 1)),
                "unreachable": list(range(options.nodes + 1, options.nodes + options.unreachable + 1)),
                "user": options.user,
                "power_save": [name for name in options.power_save.split(",") if name],
                "suspend_s": options.suspend_s,
                "set": dict(pair.split("=", 1) for pair in options.set),
            }
            cluster.start(settings)
            print(f'{options.nodes} nodes are up; eval "$(python {__file__} env --dir {options.dir})"')
        case "stop":
            cluster.stop()
        case "env":
            print(f"export SLURM_CONF={cluster.conf}")
        case "status":
            print(*(f"{part} {pid}" for pid, part in cluster.processes().items()), sep="\n")
            print(*(f"{name} {state}" for name, state in cluster.states().items()), sep="\n")
        case "stop-controller":
            cluster.end("slurmctld")
        case "start-controller":
            cluster.start_controller()
        case "add-node":
            print(cluster.add_node())
        case _:
            actions = {"kill-node": cluster.kill_node, "restore-node": cluster.start_node}
            for name in cluster.ask("scontrol", "show", "hostnames", options.nodes).split():
                actions.get(options.command, cluster.remove_node)(name)


def main() -> int:
    """Carry out the command under the folder's lock, so that no two change it at once."""
    options = read_options()
    unlocked = (
        "env",
        "status",
        "kill-node",
        "restore-node",
    )  # slurmctld calls the last two while another command waits
    try:
        if options.command == "start":
            options.dir.mkdir(parents=True, exist_ok=True)
        elif not options.dir.is_dir():
            raise ClusterError(f"there is no folder {options.dir}")
        with (options.dir / "lock").open("w") as lock:
            if options.command not in unlocked:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            perform(Cluster(options.dir), options)
    except BlockingIOError:
        print(f"cluster.py: another command works on {options.dir} now; wait for it", file=sys.stderr)
    except (ClusterError, OSError, ValueError) as error:
        print(f"cluster.py: {error}", file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
