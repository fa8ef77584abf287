"""Outputs of scheduler commands that are no log: what each is, and the command to run instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bfreplay.datasets.ingest.log_file import LogFile

GRID_ENGINE, CONDOR = "Grid Engine", "HTCondor"
BY_TABLE = {
    GRID_ENGINE: "this version has no reader of Grid Engine: write a table of jobs with all hosts of each (columns "
    "job, start, end, nodes; times in seconds) from $SGE_ROOT/$SGE_CELL/common/accounting, and run: "
    "bfreplay ingest table jobs.csv",
    CONDOR: "bfreplay ingest table FILE --map job=ClusterId --map start=JobStartDate --map end=CompletionDate "
    "--map elapsed=RemoteWallClockTime --map state=JobStatus --map nodes=LastRemoteHost (FILE: "
    "condor_history -af:ht ClusterId JobStatus LastRemoteHost JobStartDate CompletionDate RemoteWallClockTime > FILE)",
}
"""Schedulers without a reader of their own: how to get a table of jobs from each."""

_NOW = "it shows one moment, not who held which nodes when"
_PEOPLE = "it is printed for people, with columns that are cut"
_MASTER = "it names one host of each job"
_RESERVED = "it has only the reservations that are not over"
_OTHER = "its columns need names"


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Output of a command: its name, why it is no log, and the scheduler whose log to export instead.

    ``export`` is the position of the command among ``LogReader.exports``; a scheduler of ``BY_TABLE`` has none.
    """

    name: str
    why: str
    scheduler: str
    export: int = 0


_MOST_LOOKED_AT = 16_384
_DASHES = r"\b.*\n[- ]*-{3}[- ]*$"  # below the header of a table for people
_Forms = tuple[tuple[str, tuple[str, str, str, int]], ...]
_TEXTS: _Forms = (
    (rf"^.*\bNodeName\b.*\bTimeStart{_DASHES}", ("sacctmgr show event without -P", _PEOPLE, "slurm", 2)),
    (rf"^.*\bTimeStart{_DASHES}", ("sacctmgr show reservation without -P", _PEOPLE, "slurm", 3)),
    (rf"^.*\b(JobID(Raw)?|Elapsed|NodeList|NNodes|ExitCode){_DASHES}", ("sacct without -P", _PEOPLE, "slurm", 0)),
    (r"^NodeName=\S.*\s+CPUAlloc=", ("scontrol show node", _NOW, "slurm", 4)),
    (r"^ReservationName=\S|^No reservations in the system", ("scontrol show reservation", _RESERVED, "slurm", 3)),
    (r"^JobId=\d", ("scontrol show job", _NOW, "slurm", 0)),
    (r"^PartitionName=\S", ("scontrol show partition", _NOW, "slurm", 0)),
    (r"NODELIST\(REASON\)|^\s*JOBID[ |]+PARTITION[ |]+(NAME|USER|ST|STATE)\b", ("squeue", _NOW, "slurm", 0)),
    (
        r"^\s*PARTITION[ |]+AVAIL\b|^\s*NODELIST[ |]+NODES\b|^\s*(NODELIST|HOSTNAMES|NODES)[ |]+STATE\b",
        ("sinfo", _NOW, "slurm", 4),
    ),
    (r"^REASON[ |]+USER[ |]+TIMESTAMP\b", ("sinfo -R", _NOW, "slurm", 2)),
    (r"^([^:\n]*:){8}\d{9,13}:\d+:\d+:([^:\n]*:){20}", ("Grid Engine's accounting", _MASTER, GRID_ENGINE, 0)),
    (r"^={20,}\n(qname|hostname)\s|^Total System Usage|^\w*\s+WALLCLOCK\s+UTIME", ("qacct", _MASTER, GRID_ENGINE, 0)),
    (r"^HOSTNAME\s+ARCH\s+NCPU\b|<qhost\b", ("qhost", _NOW, GRID_ENGINE, 0)),
    (
        r"^job-ID\s+prior\b|^queuename\s+qtype\b|^={20,}\njob_number:|<job_info\b",
        ("qstat of Grid Engine", _NOW, GRID_ENGINE, 0),
    ),
    (r"^\S+\n\s+(Mom|ntype|state|np) = |^vnode\s+state\b|^Name=\S+\|Mom=|<Data><Node>", ("pbsnodes", _NOW, "pbs", 0)),
    (r"^Job (id|ID)\s+(Name|Username)\b|^Job Id: \S|^\s*Req'd\s+Req'd\b", ("qstat of PBS", _NOW, "pbs", 0)),
    (r"^Summary of time in seconds spent|^Job <\d+[^>]*>, ", ("bhist or bjobs -l", _PEOPLE, "lsf", 0)),
    (r"^Accounting information about jobs", ("bacct", _PEOPLE, "lsf", 0)),
    (r"^JOBID\s+USER\s+STAT\b", ("bjobs", _NOW, "lsf", 0)),
    (r"^HOST_NAME\s+(STATUS|status|type)\b|^QUEUE_NAME\s+PRIO\b", ("bhosts or bqueues", _NOW, "lsf", 0)),
    (r"^\s*JOBID\s+(QUEUE\s+)?USER\s+NAME\s+ST\b", ("flux jobs without --json", _PEOPLE, "flux", 0)),
    (
        r"^\s*STATE\s.*\bNNODES\s.*\bNODELIST\b|^\s*TIME(STAMP)?\s+STATE\s+REASON",
        ("flux resource list", _NOW, "flux", 1),
    ),
    (
        r"^\s*(ClusterId|GlobalJobId)\b|^.*\bLastRemoteHost\b|^\s*ID\s+OWNER\s.*\bCOMPLETED\b",
        ("condor_history", _OTHER, CONDOR, 0),
    ),
    (r"^\s*ID\s+OWNER\s+SUBMITTED\b|^OWNER\s+BATCH_NAME\b|^Name\s+OpSys\s", ("condor_q or _status", _NOW, CONDOR, 0)),
)
_JSON: _Forms = (
    (r'"pbs_version".*"Jobs"\s*:|"Job_Name"\s*:', ("qstat -F json", _NOW, "pbs", 0)),
    (r'"pbs_version"|"ntype"\s*:|"Mom"\s*:', ("pbsnodes -F json", _NOW, "pbs", 0)),
    (r'"COMMAND"\s*:\s*"(bjobs|bhist|bacct)"', ("bjobs -json", _NOW, "lsf", 0)),
    (r'"COMMAND"\s*:\s*"\w+"', ("bhosts -json", _NOW, "lsf", 0)),
    (r'"qname"\s*:', ("Grid Engine's accounting", _MASTER, GRID_ENGINE, 0)),
    (r'"ClusterId"\s*:', ("condor_history -json", _OTHER, CONDOR, 0)),
    (r'"reservations"\s*:\s*\[', ("scontrol show reservation --json", _RESERVED, "slurm", 3)),
    (r'"job_state"\s*:|"jobs"\s*:.*"start_time"\s*:', ("squeue --json or scontrol show job --json", _NOW, "slurm", 0)),
    (r'"sinfo"\s*:\s*\[', ("sinfo --json", _NOW, "slurm", 4)),
    (r'"nodes"\s*:\s*\[.*"state"\s*:', ("sinfo --json or scontrol show node --json", _NOW, "slurm", 4)),
)


def command_output(file: LogFile) -> CommandOutput | None:
    """Return the command whose output a file begins like, ``None`` if it is none of these."""
    head = file.head().decode("utf-8", "replace").lstrip("\ufeff").replace("\r", "")
    forms, text, flag = _JSON, head[:_MOST_LOOKED_AT], re.DOTALL
    if head.lstrip()[:1] not in ("{", "["):
        lines = [line for line in head.split("\n") if line.strip() and not line.startswith("#")]
        forms, text, flag = _TEXTS, "\n".join(line[:500] for line in lines[:60]), re.MULTILINE
    return next((CommandOutput(*output) for form, output in forms if re.search(form, text, flag)), None)
