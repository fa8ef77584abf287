"""Public scheduler logs by name: a catalogue, and hash-checked downloads."""

from bfreplay.datasets.public_logs.entries import DownloadError, catalogue
from bfreplay.datasets.public_logs.fetching import fetch, fetch_all

__all__ = ["DownloadError", "catalogue", "fetch", "fetch_all"]
