"""Catalogue of readers, recognition of files, and outputs of scheduler commands that are no log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.reader import LogReader
from bfreplay.documents import refuse_other_kind
from bfreplay.errors import InputError
from bfreplay.registry import Registry

CONDOR = "HTCondor"
BY_TABLE = {
    CONDOR: "bfreplay ingest table FILE --map job=ClusterId --map start=JobStartDate --map end=CompletionDate "
    "--map elapsed=RemoteWallClockTime --map state=JobStatus --map nodes=LastRemoteHost (FILE: "
    "condor_history -af:ht ClusterId JobStatus LastRemoteHost QDate JobStartDate CompletionDate RemoteWallClockTime "
    "> FILE)",
}
"""Schedulers without a reader of their own: how to get a table of jobs from each."""

_NOW = "it shows one moment, not who held which nodes when"
_PEOPLE = "it is printed for people, with columns that are cut"
_CUT_AT_MIDNIGHT = "its records of jobs are cut at midnight, and mixed with those of load and queues"
_SUMS = "it sums up jobs, or prints them for people"
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
    (r"^NodeName=\S.*\s+CPUAlloc=", ("scontrol show node", _NOW, "snapshots", 0)),
    (r"^ReservationName=\S|^No reservations in the system", ("scontrol show reservation", _RESERVED, "slurm", 3)),
    (r"^JobId=\d", ("scontrol show job", _NOW, "slurm", 0)),
    (r"^PartitionName=\S", ("scontrol show partition", _NOW, "slurm", 0)),
    (r"NODELIST\(REASON\)|^\s*JOBID[ |]+PARTITION[ |]+(NAME|USER|ST|STATE)\b", ("squeue", _NOW, "slurm", 0)),
    (
        r"^\s*PARTITION[ |]+AVAIL\b|^\s*NODELIST[ |]+NODES\b|^\s*(NODELIST|HOSTNAMES|NODES)[ |]+STATE\b",
        ("sinfo", _NOW, "slurm", 4),
    ),
    (r"^REASON[ |]+USER[ |]+TIMESTAMP\b", ("sinfo -R", _NOW, "slurm", 2)),
    (r"^\d{9,17}:(new_job|job_log|acct|host|queue):", ("Grid Engine's reporting", _CUT_AT_MIDNIGHT, "grid-engine", 0)),
    (r"^={20,}\n(qname|hostname)\s|^Total System Usage|^\w*\s+WALLCLOCK\s+UTIME", ("qacct", _SUMS, "grid-engine", 0)),
    (r"^HOSTNAME\s+ARCH\s+NCPU\b|<qhost\b", ("qhost", _NOW, "grid-engine", 0)),
    (
        r"^job-ID\s+prior\b|^queuename\s+qtype\b|^={20,}\njob_number:|<job_info\b",
        ("qstat of Grid Engine", _NOW, "grid-engine", 0),
    ),
    (
        r"^\S+\n\s+(Mom|ntype|state|np) = |^vnode\s+state\b|^Name=\S+\|Mom=|<Data><Node>",
        ("pbsnodes", _NOW, "snapshots", 1),
    ),
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
    (r'"pbs_version"|"ntype"\s*:|"Mom"\s*:', ("pbsnodes -F json", _NOW, "snapshots", 1)),
    (r'"COMMAND"\s*:\s*"(bjobs|bhist|bacct)"', ("bjobs -json", _NOW, "lsf", 0)),
    (r'"COMMAND"\s*:\s*"\w+"', ("bhosts -json", _NOW, "lsf", 0)),
    (r'"ClusterId"\s*:', ("condor_history -json", _OTHER, CONDOR, 0)),
    (r'"reservations"\s*:\s*\[', ("scontrol show reservation --json", _RESERVED, "slurm", 3)),
    (r'"job_state"\s*:|"jobs"\s*:.*"start_time"\s*:', ("squeue --json or scontrol show job --json", _NOW, "slurm", 0)),
    (r'"sinfo"\s*:\s*\[', ("sinfo --json", _NOW, "snapshots", 0)),
    (r'"nodes"\s*:\s*\[.*"state"\s*:', ("sinfo --json or scontrol show node --json", _NOW, "snapshots", 0)),
)


def command_output(log_file: LogFile) -> CommandOutput | None:
    """Return the command whose output a file begins like, ``None`` if it is none of these."""
    head_bytes = log_file.head().decode("utf-8", "replace").lstrip("\ufeff").replace("\r", "")
    forms, text, regex_flag = _JSON, head_bytes[:_MOST_LOOKED_AT], re.DOTALL
    if head_bytes.lstrip()[:1] not in ("{", "["):
        text_lines = [line for line in head_bytes.split("\n") if line.strip() and not line.startswith("#")]
        forms, text, regex_flag = _TEXTS, "\n".join(line[:500] for line in text_lines[:60]), re.MULTILINE
    return next((CommandOutput(*output) for text_form, output in forms if re.search(text_form, text, regex_flag)), None)


AUTO = "auto"
_LOG_EXPECTED = "a scheduler's log or a table of jobs, as text in UTF-8 or as Parquet"
_PICKLE, _PARQUET = b"\x80", b"PAR1"

READERS = Registry(
    kind="log reader",
    group="bfreplay.log_readers",
    needs=("name", "title", "exports", "recognise", "read"),
    built_in={
        "slurm": "bfreplay.datasets.ingest.slurm.reader:SlurmReader",
        "pbs": "bfreplay.datasets.ingest.pbs.reader:PbsReader",
        "swf": "bfreplay.datasets.ingest.swf.reader:SwfReader",
        "cobalt": "bfreplay.datasets.ingest.cobalt.reader:CobaltReader",
        "lsf": "bfreplay.datasets.ingest.lsf:LsfReader",
        "grid-engine": "bfreplay.datasets.ingest.grid_engine:GridEngineReader",
        "flux": "bfreplay.datasets.ingest.flux:FluxReader",
        "batsim": "bfreplay.datasets.ingest.batsim:BatsimReader",
        "snapshots": "bfreplay.datasets.ingest.node_snapshots:SnapshotsReader",
        "table": "bfreplay.datasets.ingest.table.reader:TableReader",
    },
)


def find_reader(name: str) -> LogReader:
    """Return the reader of a name.

    Raises
    ------
    InputError
        No reader has this name.
    """
    reader: LogReader = READERS.make(name, allow_code=True)
    return reader


def recognise_files(log_files: Sequence[LogFile]) -> tuple[LogReader, list[LogFile], list[str]]:
    """Return the reader for ``log_files``, the files that it is to read, and the reasons, each once.

    Readers are asked in order; a file belongs to the first one that recognises it. Unrecognised files in a
    folder or an archive with recognised ones are skipped.

    Raises
    ------
    InputError
        An unrecognised named file, no recognised file at all, or files of several schedulers.
    """
    log_reader: LogReader | None = None
    own_files: list[LogFile] = []
    reasons: dict[str, list[str]] = {}
    unknown: InputError | None = None
    for log_file in log_files:
        try:
            reader, why_recognised = _reader_of(log_file)
        except InputError as error:
            if log_file.is_named:
                raise
            unknown = unknown or error
            continue
        if log_reader is not None and reader.name != log_reader.name:
            raise log_file.error(
                f"the files are of two schedulers: the first of {log_reader.name}, this one of {reader.name}",
                value=why_recognised,
                expected="files of one scheduler",
                fix=f"import them one by one, or name one reader for all: bfreplay ingest {log_reader.name} ...",
            )
        log_reader = reader
        own_files.append(log_file)
        reasons.setdefault(why_recognised, []).append(log_file.short_name)
    if log_reader is None:
        raise unknown or InputError("no file to read", expected="at least one file")
    sentences = []
    for why_recognised, file_names in reasons.items():
        files_text = f"{file_names[0]} and {len(file_names) - 1:,} more" if len(file_names) > 1 else file_names[0]
        sentences.append(f"{files_text}: {log_reader.name}, because {why_recognised}")
    return log_reader, own_files, sentences


def readable_by(reader: LogReader, log_files: Sequence[LogFile]) -> list[LogFile]:
    """Return the files that a reader is to read: named ones, and others that it recognises.

    All of them, if it recognises none.

    Raises
    ------
    InputError
        A file is not a log, for example a spreadsheet, or the output of a command about this moment.
    """
    is_own = {log_file: reader.recognise(log_file) is not None for log_file in log_files}
    files_to_read = [log_file for log_file in log_files if log_file.is_named or is_own[log_file]] or list(log_files)
    for log_file in files_to_read:
        if not is_own[log_file]:
            if reader.name in READERS.built_in and reader.name != "table":  # others read whatever they are given
                _refuse_command_output(log_file)
            refuse_other_kind(log_file.head(), log_file.name, _LOG_EXPECTED)
    return files_to_read


def refuse_events(log_file: LogFile) -> None:
    """Refuse a file that is node events already, in one of the forms that ``load_events`` reads.

    Raises
    ------
    InputError
        The message names the commands that read it as it is.
    """
    is_pickle = log_file.head().startswith(_PICKLE)
    column_names = {"a published node-state matrix"} if is_pickle else _columns(log_file)
    is_events = is_pickle or ({"time", "node"} <= column_names and bool({"state", "idle"} & column_names))
    if is_events:
        raise log_file.error(
            "this is a log of node events already: it needs no import",
            value=", ".join(sorted(column_names)),
            expected="a scheduler's log of jobs",
            fix="give it to the other commands as it is: bfreplay describe FILE; bfreplay replay FILE --jobs JOBS",
        )


def _columns(log_file: LogFile) -> set[str]:
    """Return the column names of a table, from its first line or its Parquet schema; empty for anything else."""
    if log_file.head().startswith(_PARQUET):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return set(pq.read_schema(log_file.path).names)
        except (pa.ArrowException, OSError):
            return set()  # damaged: its reader reports the fault
    return {column_name.strip() for column_name in (log_file.head_lines() or [""])[0].split(",")}


def _refuse_command_output(log_file: LogFile) -> None:
    """Raise ``InputError`` for the output of a known command."""
    output = command_output(log_file)
    if output is None:
        return
    if output.scheduler in BY_TABLE:
        fix = BY_TABLE[output.scheduler]
    else:
        export = find_reader(output.scheduler).exports[output.export]
        fix = f"run this on your cluster: {export.command} (it gives {export.gives}; all commands: bfreplay ingest "
        fix += f"{output.scheduler} --how)"
    raise log_file.wrong_start(
        f"this is the output of {output.name}: {output.why}",
        value=next(iter(log_file.first_rows()), "")[:120],
        expected="a log of jobs, or of nodes, over time",
        fix=fix,
    )


def _reader_of(log_file: LogFile) -> tuple[LogReader, str]:
    for reader_name in READERS.names():
        reader = find_reader(reader_name)
        why_recognised = reader.recognise(log_file)
        if why_recognised is not None:
            return reader, why_recognised
    refuse_other_kind(log_file.head(), log_file.name, _LOG_EXPECTED)
    _refuse_command_output(log_file)
    raise log_file.wrong_start(
        "no reader knows this kind of log",
        value=(log_file.head_lines() or [""])[0][:120],
        expected="a log of " + ", ".join(READERS.names()),
        fix="name the reader: bfreplay ingest slurm FILE ...; for any table of jobs: bfreplay ingest table FILE "
        "--map start=COLUMN --map end=COLUMN --map nodes=COLUMN",
    )
