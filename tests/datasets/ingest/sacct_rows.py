"""A good row of ``sacct``, and how rows are read, for the tests of its text form."""

from tests.datasets.ingest.slurm_logs import HEADER, at, read, rows_balance, sacct

NOON = at("2024-03-01 12:00:00")
GOOD = "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600|120|2|n[1-2]"
GOOD_JOB = (NOON, NOON + 3600, 2, ("n1", "n2"))


def utc(folder, *rows, header=HEADER, **options):
    record = read(folder, sacct(*rows, header=header), timezone="UTC", **options)
    assert rows_balance(record)
    return record
