"""Content of a reader's record as plain values, and its treatment of damaged bytes."""

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import BfreplayError


def record_of(reader, *paths, **options):
    """Return the record of files."""
    record = ScheduleRecord()
    reader.read([LogFile(path) for path in paths], record, ReadOptions(**options))
    return record


def intervals(record, unit_us=1):
    """(start, end or None, nodes held, names listed) of all jobs, in order, times in ``unit_us``."""
    found = []
    for rows, _ in record.jobs.slices():
        for j in range(len(rows)):
            listed = rows.nodes[rows.first_node[j] : rows.first_node[j + 1]]
            end = None if rows.end_us[j] == OPEN_END else int(rows.end_us[j]) / unit_us
            names = tuple(record.nodes[i] for i in listed)
            found.append((int(rows.start_us[j]) / unit_us, end, int(rows.count[j]), names))
    return found


def balances(record):
    """Return whether every row that was read was kept or skipped."""
    return record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped


def skipped(record):
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


def check_damaged(reader, content, path):
    """Read bytes that may be anything: an error that names the file, or a record that accounts for every row."""
    path.write_bytes(content)
    record = ScheduleRecord()
    caught = None
    try:
        reader.recognise(LogFile(path))
        reader.read([LogFile(path)], record, ReadOptions())
    except BfreplayError as error:
        caught = error
    if caught is None:
        assert balances(record)
    else:
        assert str(path) in str(caught)
