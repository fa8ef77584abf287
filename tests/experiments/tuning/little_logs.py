"""Logs of a few hours, written as files, on which a tuning takes a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

JOBS = """name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve
small,1,2,10,5,5000,0:0 1:10 2:18
large,1,4,10,5,20000,0:0 1:20 2:38 4:60
third,1,4,20,5,1000,0:0 1:15 2:28 4:50
"""
START, BORDER, END = "2024-05-01T00:00:00", "2024-05-01T02:00:00", "2024-05-01T03:00:00"


def write_log(file: Path, late: Callable[[int], int] = lambda minute: 11, *, first: int = 5) -> Path:
    """Three hours, two nodes that are always idle and two that flap.

    ``late`` gives, for each minute of the third hour, how often it is before a node flaps again; the first two hours
    have a rhythm of ``first`` minutes.
    """
    rows = ["time,node,idle", *(f"{START},n{k},true" for k in (1, 2))]
    idle, minute = False, 1
    while minute < 180:
        idle = not idle
        rows.append(f"2024-05-01T{minute // 60:02d}:{minute % 60:02d}:30,n3,{str(idle).lower()}")
        minute += first if minute < 120 else late(minute)
    rows.append(f"{END},n1,false")
    file.write_text("\n".join(rows) + "\n")
    return file


def write_jobs(file: Path) -> Path:
    """Three jobs."""
    file.write_text(JOBS)
    return file
