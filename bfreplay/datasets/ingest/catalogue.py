"""Catalogue of readers, and the recognition of files."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.datasets.ingest.command_outputs import BY_TABLE, command_output
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.reader import LogReader
from bfreplay.documents import refuse_other_kind
from bfreplay.errors import InputError
from bfreplay.registry import Registry

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
        "lsf": "bfreplay.datasets.ingest.lsf.reader:LsfReader",
        "flux": "bfreplay.datasets.ingest.flux.reader:FluxReader",
        "batsim": "bfreplay.datasets.ingest.batsim.reader:BatsimReader",
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


def recognise_files(files: Sequence[LogFile]) -> tuple[LogReader, list[LogFile], list[str]]:
    """Return the reader for ``files``, the files that it is to read, and the reasons, each once.

    Readers are asked in order; a file belongs to the first one that recognises it. Unrecognised files in a
    folder or an archive with recognised ones are skipped.

    Raises
    ------
    InputError
        An unrecognised named file, no recognised file at all, or files of several schedulers.
    """
    found: LogReader | None = None
    known: list[LogFile] = []
    reasons: dict[str, list[str]] = {}
    unknown: InputError | None = None
    for file in files:
        try:
            reader, reason = _reader_of(file)
        except InputError as error:
            if file.is_named:
                raise
            unknown = unknown or error
            continue
        if found is not None and reader.name != found.name:
            raise file.error(
                f"the files are of two schedulers: the first of {found.name}, this one of {reader.name}",
                value=reason,
                expected="files of one scheduler",
                fix=f"import them one by one, or name one reader for all: bfreplay ingest {found.name} ...",
            )
        found = reader
        known.append(file)
        reasons.setdefault(reason, []).append(file.name.rsplit("/", 1)[-1])
    if found is None:
        raise unknown or InputError("no file to read", expected="at least one file")
    why = [
        f"{names[0]}{f' and {len(names) - 1:,} more' if len(names) > 1 else ''}: {found.name}, because {reason}"
        for reason, names in reasons.items()
    ]
    return found, known, why


def readable_by(reader: LogReader, files: Sequence[LogFile]) -> list[LogFile]:
    """Return the files that a reader is to read: named ones, and others that it recognises.

    All of them, if it recognises none.

    Raises
    ------
    InputError
        A file is not a log, for example a spreadsheet, or the output of a command about this moment.
    """
    is_known = {file: reader.recognise(file) is not None for file in files}
    kept = [file for file in files if file.is_named or is_known[file]] or list(files)
    for file in kept:
        if not is_known[file]:
            if reader.name in READERS.built_in and reader.name != "table":  # others read whatever they are given
                _refuse_command_output(file)
            refuse_other_kind(file.head(), file.name, _LOG_EXPECTED)
    return kept


def refuse_events(file: LogFile) -> None:
    """Refuse a file that is node events already, in one of the forms that ``load_events`` reads.

    Raises
    ------
    InputError
        The message names the commands that read it as it is.
    """
    start = file.head()
    if start.startswith(_PICKLE):
        columns = {"a published node-state matrix"}
        is_events = True
    else:
        columns = _columns(file)
        is_events = {"time", "node"} <= columns and bool({"state", "idle"} & columns)
    if is_events:
        raise file.error(
            "this is a log of node events already: it needs no import",
            value=", ".join(sorted(columns)),
            expected="a scheduler's log of jobs",
            fix="give it to the other commands as it is: bfreplay describe FILE; bfreplay replay FILE --jobs JOBS",
        )


def _columns(file: LogFile) -> set[str]:
    """Return the column names of a table, from its first line or its Parquet schema; empty for anything else."""
    if file.head().startswith(_PARQUET):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return set(pq.read_schema(file.path).names)
        except (pa.ArrowException, OSError):
            return set()  # damaged: its reader reports the fault
    return {name.strip() for name in (file.head_lines() or [""])[0].split(",")}


def _refuse_command_output(file: LogFile) -> None:
    """Raise ``InputError`` for the output of a known command."""
    found = command_output(file)
    if found is None:
        return
    if found.scheduler in BY_TABLE:
        fix = BY_TABLE[found.scheduler]
    else:
        export = find_reader(found.scheduler).exports[found.export]
        fix = f"run this on your cluster: {export.command} (it gives {export.gives}; all commands: bfreplay ingest "
        fix += f"{found.scheduler} --how)"
    raise file.wrong_start(
        f"this is the output of {found.name}: {found.why}",
        value=next((line for line in file.head_lines() if line.strip()), "")[:120],
        expected="a log of jobs, or of nodes, over time",
        fix=fix,
    )


def _reader_of(file: LogFile) -> tuple[LogReader, str]:
    for name in READERS.names():
        reader = find_reader(name)
        reason = reader.recognise(file)
        if reason is not None:
            return reader, reason
    refuse_other_kind(file.head(), file.name, _LOG_EXPECTED)
    _refuse_command_output(file)
    raise file.wrong_start(
        "no reader knows this kind of log",
        value=(file.head_lines() or [""])[0][:120],
        expected="a log of " + ", ".join(READERS.names()),
        fix="name the reader: bfreplay ingest slurm FILE ...; for any table of jobs: bfreplay ingest table FILE "
        "--map start=COLUMN --map end=COLUMN --map nodes=COLUMN",
    )
