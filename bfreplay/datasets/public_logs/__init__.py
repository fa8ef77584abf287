"""Public scheduler logs by name: a catalogue, and hash-checked downloads."""

from bfreplay.datasets.public_logs.entries import DownloadError, LogFile, PublicLog, catalogue, public_log
from bfreplay.datasets.public_logs.fetching import Progress, data_folder, fetch, fetch_all, fetch_state

__all__ = [
    "DownloadError",
    "LogFile",
    "Progress",
    "PublicLog",
    "catalogue",
    "data_folder",
    "fetch",
    "fetch_all",
    "fetch_state",
    "public_log",
]
