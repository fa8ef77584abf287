"""Small logs of Slurm for tests: written here, read back as plain values."""

from datetime import UTC, datetime
from pathlib import Path

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.reader import SlurmReader

HEADER = "JobIDRaw|JobID|State|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NodeList"


def at(text: str) -> int:
    """Seconds since the epoch of ``"2024-03-01 12:00:00"`` UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def files_of(folder: Path, *contents: str | bytes) -> list[LogFile]:
    files = []
    for i, content in enumerate(contents):
        path = folder / f"log{i}"
        path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        files.append(LogFile(path, f"log{i}"))
    return files


def read(folder: Path, *contents: str | bytes, **options) -> ScheduleRecord:
    record = ScheduleRecord()
    SlurmReader().read(files_of(folder, *contents), record, ReadOptions(**options))
    return record


def sacct(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows]) + "\n"


def jobs(record: ScheduleRecord) -> list[tuple]:
    """(start s, end s or None, number of nodes, names of the listed ones), in order of start."""
    found = []
    for part, _ in record.jobs.slices():
        for j in range(len(part)):
            names = tuple(record.nodes[i] for i in part.nodes[part.first_node[j] : part.first_node[j + 1]])
            end = int(part.end_us[j])
            found.append(
                (int(part.start_us[j]) / 1e6, None if end == OPEN_END else end / 1e6, int(part.count[j]), names)
            )
    return found


def outages(record: ScheduleRecord) -> list[tuple]:
    """(state, start s, end s or None, names or None for all), in the order in which they were found."""
    return [
        (
            outage.state.name.lower(),
            outage.start_us / 1e6,
            None if outage.end_us == OPEN_END else outage.end_us / 1e6,
            None if outage.nodes is None else tuple(record.nodes[i] for i in outage.nodes),
        )
        for outage in record.outages
    ]


def skipped(record: ScheduleRecord) -> dict[str, int]:
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


def warnings(record: ScheduleRecord) -> dict[str, int]:
    return {sentence: tally.count for sentence, tally in record.report.warnings.items()}


def rows_balance(record: ScheduleRecord) -> bool:
    """Return whether each row read was kept or skipped (samples of sinfo become fewer intervals than rows)."""
    kept = dict(record.report.kept)
    samples = kept.pop("samples of node states", 0)
    if samples:
        kept.pop("outage intervals", 0)
    return record.report.rows_read == sum(kept.values()) + samples + record.report.rows_skipped
