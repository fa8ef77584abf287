"""Logs of idle nodes and job sets: read, check, write. What a file is, its ending says (see ``registry``)."""

from bfreplay.datasets.event_files import load_events, write_events
from bfreplay.datasets.events import EventBatch, NodeEvents, NodeState
from bfreplay.datasets.job_files import load_jobs, write_jobs
from bfreplay.datasets.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.published import read_published_events
from bfreplay.datasets.published_jobs import read_published_jobs

__all__ = [
    "EventBatch",
    "EventsMetadata",
    "NodeEvents",
    "NodeState",
    "SourceFile",
    "load_events",
    "load_jobs",
    "read_published_events",
    "read_published_jobs",
    "write_events",
    "write_jobs",
]
