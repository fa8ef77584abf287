"""Outputs of scheduler commands that are no log: what each is, and the command to run instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bfreplay.datasets.ingest.log_file import LogFile

NOW = "it shows one moment, not who held which nodes when"
PEOPLE = "it is printed for people, with columns that are cut"
BY_TABLE = {
    "Grid Engine": "this version has no reader of Grid Engine: write a table of jobs with all hosts of each (columns "
    "job, start, end, nodes; times in seconds) from $SGE_ROOT/$SGE_CELL/common/accounting, and run: "
    "bfreplay ingest table jobs.csv",
    "HTCondor": "bfreplay ingest table FILE --map job=ClusterId --map start=JobStartDate --map end=CompletionDate "
    "--map elapsed=RemoteWallClockTime --map state=JobStatus --map nodes=LastRemoteHost, with the output of "
    "condor_history -af:ht and the names of these columns",
}
"""Schedulers without a reader of their own: the commands that make a table."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Output of a command: its name, why it is no log, and the scheduler whose log to export instead.

    ``export`` is the position of the command among ``LogReader.exports``; a scheduler of ``BY_TABLE`` has none.
    """

    name: str
    why: str
    scheduler: str
    export: int = 0


_KNOWN: dict[str, CommandOutput] = {
    # tables for people end their header with a line of dashes
    r"^.*\bJobID(Raw)?\b.*\n[- ]*-{3}[- ]*$": CommandOutput("sacct without -P", PEOPLE, "slurm"),
    r"^.*\bNodeName\b.*\b(Time)?Start\b.*\n[- ]*-{3}[- ]*$": CommandOutput(
        "sacctmgr show event without -P", PEOPLE, "slurm", 2
    ),
    r"^.*\b(Time)?Start\b.*\n[- ]*-{3}[- ]*$": CommandOutput(
        "sacctmgr show reservation without -P", PEOPLE, "slurm", 3
    ),
    r"^NodeName=\S": CommandOutput("scontrol show node", NOW, "slurm", 4),
    r"^ReservationName=\S": CommandOutput(
        "scontrol show reservation", "it has only the reservations that are not over", "slurm", 3
    ),
    r"^JobId=\d": CommandOutput("scontrol show job", NOW, "slurm"),
    r"^PartitionName=\S": CommandOutput("scontrol show partition", NOW, "slurm"),
    r"NODELIST\(REASON\)|^\s*JOBID[ |]+PARTITION\b": CommandOutput("squeue", NOW, "slurm"),
    r"^\s*(PARTITION[ |]+AVAIL|(NODELIST|HOSTNAMES|NODE)[ |].*\bSTATE|REASON[ |]+USER[ |]+TIMESTAMP)\b": CommandOutput(
        "sinfo", NOW, "slurm", 4
    ),
    r"^([^:\n]*:){40}": CommandOutput("Grid Engine's accounting", "it names one host of each job", "Grid Engine"),
    r"^={20,}\n(qname|hostname)\s": CommandOutput("qacct -j", "it names one host of each job", "Grid Engine"),
    r"^HOSTNAME\s+ARCH\s+NCPU\b|<qhost\b": CommandOutput("qhost", NOW, "Grid Engine"),
    r"^job-ID\s+prior\b|<job_info\b": CommandOutput("qstat of Grid Engine", NOW, "Grid Engine"),
    r"^[\w.-]+\n\s+(Mom|ntype|state|power_state|np|pcpus) = |^vnode\s+state\b|<Data><Node>": CommandOutput(
        "pbsnodes", NOW, "pbs"
    ),
    r"^Job id\s+Name\s+User\b|^Job Id: \S|^\s*Req'd\s+Req'd\b": CommandOutput("qstat of PBS", NOW, "pbs"),
    r"^Summary of time in seconds spent|^Job <\d+[^>]*>, ": CommandOutput(
        "bhist or bjobs -l", "it is printed for people, in lines that are broken", "lsf"
    ),
    r"^JOBID\s+USER\s+STAT\b": CommandOutput("bjobs", NOW, "lsf"),
    r"^(HOST_NAME|HOST)\s+(STATUS|type)\b": CommandOutput("bhosts or lshosts", NOW, "lsf"),
    r"^Accounting information about jobs": CommandOutput("bacct", "it is a summary printed for people", "lsf"),
    r"^\s*JOBID\s+(QUEUE\s+)?USER\s+NAME\s+ST\b": CommandOutput("flux jobs without --json", PEOPLE, "flux"),
    r"^\s*STATE\s+.*\bNNODES\b": CommandOutput("flux resource list", NOW, "flux", 1),
    r"^\s*(ClusterId|GlobalJobId)\b|^.*\bLastRemoteHost\b|\"ClusterId\"": CommandOutput(
        "condor_history", "HTCondor has no reader of its own", "HTCondor"
    ),
    r"^\s*ID\s+OWNER\s+SUBMITTED\b|^OWNER\s+BATCH_NAME\b": CommandOutput("condor_q", NOW, "HTCondor"),
    r"^Name\s+OpSys\s+Arch\b": CommandOutput("condor_status", NOW, "HTCondor"),
}
_KNOWN_JSON: dict[str, CommandOutput] = {
    r'"pbs_version".*"Jobs"\s*:|"Job_Name"\s*:': CommandOutput("qstat -F json", NOW, "pbs"),
    r'"pbs_version"|"ntype"\s*:|"Mom"\s*:': CommandOutput("pbsnodes -F json", NOW, "pbs"),
    r'"COMMAND"\s*:\s*"(bjobs|bhist|bacct)"': CommandOutput("bjobs -json", NOW, "lsf"),
    r'"COMMAND"\s*:\s*"(bhosts|lshosts|lsload)"': CommandOutput("bhosts -json", NOW, "lsf"),
    r'"ClusterId"\s*:': CommandOutput("condor_history -json", "HTCondor has no reader of its own", "HTCondor"),
    r'"reservations"\s*:\s*\[': CommandOutput(
        "scontrol show reservation --json", "it has only the reservations that are not over", "slurm", 3
    ),
    r'"job_state"\s*:|"start_time"\s*:': CommandOutput("squeue --json or scontrol show job --json", NOW, "slurm"),
    r'"sinfo"\s*:\s*\[': CommandOutput("sinfo --json", NOW, "slurm", 4),
    r'"nodes"\s*:\s*\[.*"state"\s*:': CommandOutput("sinfo --json or scontrol show node --json", NOW, "slurm", 4),
}


def command_output(file: LogFile) -> CommandOutput | None:
    """Return the command whose output a file begins like, ``None`` if it is none of these."""
    head = file.head().decode("utf-8", "replace").lstrip("\ufeff\r\n").replace("\r", "")
    if head.lstrip()[:1] in ("{", "["):
        return next((found for form, found in _KNOWN_JSON.items() if re.search(form, head, re.DOTALL)), None)
    text = "\n".join([line for line in head.split("\n") if line.strip() and not line.startswith("#")][:20])
    return next((found for form, found in _KNOWN.items() if re.search(form, text, re.MULTILINE)), None)
