"""Accounting records of PBS, written and read, for its tests."""

from datetime import UTC, datetime, timedelta

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.pbs.reader import PbsReader
from bfreplay.datasets.ingest.reader import ReadOptions

T = 1_700_000_000  # 2023-11-14T22:13:20Z
US = 1_000_000
CST, CDT = -6, -5
UNREADABLE = "rows that cannot be read were skipped: their nodes look idle"
AUTUMN = 1_699_167_600  # 2023-11-05T07:00:00Z: at 02:00 -05:00 in Chicago the clock shows 01:00 -06:00 again
SPRING = 1_678_608_000  # 2023-03-12T08:00:00Z: at 02:00 -06:00 in Chicago the clock shows 03:00 -05:00


def line(at, kind, job, text="", offset=CST):
    stamp = datetime.fromtimestamp(at, UTC) + timedelta(hours=offset)
    return f"{stamp:%m/%d/%Y %H:%M:%S};{kind};{job};{text}"


def started(at, job="7.srv", hosts="n1/0+n1/1+n2/0", more="", offset=CST, stamp=None):
    text = f"user=ann queue=batch ctime={at - 9} start={at} exec_host={hosts} Resource_List.ncpus=4 {more}"
    return line(at if stamp is None else stamp, "S", job, text, offset)


def ended(start, end, job="7.srv", hosts="n1/0+n1/1+n2/0", more="", offset=CST, kind="E", stamp=None):
    text = f"user=ann queue=batch ctime={start - 9} start={start} exec_host={hosts} session=4 end={end} {more}"
    return line(end if stamp is None else stamp, kind, job, text, offset)


def read(tmp_path, *files, **options):
    """Read logs, each a list of lines, as files ``0``, ``1``, ..."""
    logs = []
    for i, lines in enumerate(files):
        path = tmp_path / str(i)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
        logs.append(LogFile(path, str(i)))
    record = ScheduleRecord()
    PbsReader().read(logs, record, ReadOptions(**options))
    assert record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped
    return record


def runs(record):
    """(start, end in seconds or None, nodes, count), by start."""
    found = []
    for rows, _ in record.jobs.slices():
        for j in range(len(rows)):
            nodes = rows.nodes[rows.first_node[j] : rows.first_node[j + 1]]
            end = None if rows.end_us[j] == OPEN_END else rows.end_us[j] / US
            found.append((rows.start_us[j] / US, end, tuple(record.nodes[i] for i in nodes), int(rows.count[j])))
    return sorted(found, key=lambda run: (run[0], run[2]))


def warnings(record):
    return {sentence: tally.count for sentence, tally in record.report.warnings.items()}


def skipped(record):
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


BOTH = ("n1", "n2")


def begun(start, end):
    return line(start, "B", "R9.srv", f"owner=root start={start} end={end} nodes=(n1:ncpus=4)+(n3:ncpus=4)")


def outages(record):
    return [
        (one.state, one.start_us / US, one.end_us / US, tuple(record.nodes[i] for i in one.nodes))
        for one in record.outages
    ]
