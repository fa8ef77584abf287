"""What every command that writes a folder of results does alike: it appears whole or not at all, and is read again."""

from bfreplay.result_folders.kinds import COMPARISON, LAB, RUN, SWEEP, TUNING, ResultKind
from bfreplay.result_folders.reading import ResultTables, SavedResult, read_documents
from bfreplay.result_folders.writing import FAILURES, check_target, new_folder, record_json

__all__ = [
    "COMPARISON",
    "FAILURES",
    "LAB",
    "RUN",
    "SWEEP",
    "TUNING",
    "ResultKind",
    "ResultTables",
    "SavedResult",
    "check_target",
    "new_folder",
    "read_documents",
    "record_json",
]
