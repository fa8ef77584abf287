"""What every command that writes a folder of results does alike: it appears whole or not at all, and is read again."""

from bfreplay.result_folders.reading import Result, check_digest, digest, read_documents
from bfreplay.result_folders.records import COMPARISON, LAB, RUN, SWEEP, TUNING, ResultKind, ResultRecord, typed
from bfreplay.result_folders.writing import (
    FAILURES,
    check_target,
    new_folder,
    record_json,
    write_record,
    write_result,
)

__all__ = [
    "COMPARISON",
    "FAILURES",
    "LAB",
    "RUN",
    "SWEEP",
    "TUNING",
    "Result",
    "ResultKind",
    "ResultRecord",
    "check_digest",
    "check_target",
    "digest",
    "new_folder",
    "read_documents",
    "record_json",
    "typed",
    "write_record",
    "write_result",
]
