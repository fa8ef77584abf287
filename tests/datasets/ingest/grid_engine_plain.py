"""A second, plain reading of Grid Engine's accounting, written after its manual: slow, and easy to check by eye."""

import re
from collections import Counter
from dataclasses import dataclass
from math import ceil

NUMBER = re.compile(r"-?(\d+(\.\d+)?|nan|inf)", re.ASCII | re.IGNORECASE)
WHOLE = re.compile(r"-?\d{1,30}", re.ASCII)
PE_TASK = re.compile(r"none|\d+\.(?!\d+\Z)\S+", re.ASCII | re.IGNORECASE)  # a number and the host, so no number
JOB_NUMBER = re.compile(r"[1-9]\d{0,9}", re.ASCII)  # of 32 bits, written without zeros before it
MILLISECONDS_FROM = 10**11  # as seconds this would be the year 5138, as milliseconds it is 1973
YEAR_9999_US = 253_402_300_799 * 10**6
MOST_NODES = 10_000_000

NO_RECORD = "cut, or no record of a job"
NOT_STARTED = "start time 0"
NO_SUCH_TIME = "a time before 1970 or after 9999"
NO_HOST = "no name of a host"
BACKWARDS = "the end is before the start"
NO_LENGTH = "start and end are the same"
TWICE = "the same run once more"
TOO_WIDE = "on more nodes than there can be"


@dataclass(frozen=True)
class Line:
    """What one line says: of a run of a job, by its master, or of a slave task on one of its hosts."""

    job: str
    host: str
    start_us: int
    end_us: int
    slots: int
    is_master: bool

    def overlap_us(self, other):
        """Return the time that both share; negative if they do not touch."""
        return min(self.end_us, other.end_us) - max(self.start_us, other.start_us)


def plain_reading(text, procs_per_node=None):
    """Return runs (job, start, end in us, hosts, number of nodes or None) and the skipped lines by reason."""
    masters, slaves, skipped = [], [], Counter()
    for row in text.split("\n"):
        row = row.removesuffix("\r")
        if len(row) <= 1 or row.startswith("#"):
            continue
        line = _line(row.split(":"))
        if isinstance(line, str):
            skipped[line] += 1
        elif not line.is_master:
            slaves.append(line)
        elif line.start_us == line.end_us:
            skipped[NO_LENGTH] += 1
        elif any((line.job, line.start_us) == (other.job, other.start_us) for other in masters):
            skipped[TWICE] += 1
        else:
            masters.append(line)
    groups = [[master] for master in masters]
    for slave in sorted(slaves, key=lambda line: line.start_us):
        of_job = [group for group in groups if group[0].job == slave.job and slave.overlap_us(group[0]) >= 0]
        if of_job:
            max(of_job, key=lambda group: (slave.overlap_us(group[0]), group[0].start_us)).append(slave)
        else:  # its master line is not in the file, yet its host was held
            groups.append([slave])
    runs = [_run(group, procs_per_node) for group in groups]
    skipped[NO_LENGTH] += sum(run[1] == run[2] for run in runs)
    skipped[TOO_WIDE] += sum((run[4] or 0) > MOST_NODES for run in runs)
    kept = [run for run in runs if run[1] < run[2] and (run[4] or 0) <= MOST_NODES]
    return sorted(kept, key=lambda run: (run[1], run[0])), +skipped


def _run(group, procs_per_node):
    first, hosts = group[0], frozenset(line.host for line in group)
    end_us = first.end_us if first.is_master else max(line.end_us for line in group)
    n_nodes = len(hosts)
    if first.is_master and first.slots > 1 and procs_per_node:  # a host on which no task reported is held too
        n_nodes = max(n_nodes, ceil(first.slots / procs_per_node))
    elif len(group) == 1 and first.slots > 1:
        n_nodes = None
    return first.job, first.start_us, end_us, hosts, n_nodes


def _line(parts):
    """Return the line of these parts between colons, or why it cannot be used."""
    for priority in range(7, len(parts) - 35):  # job_name and account may have colons, so it is at 7 or later
        numbers = parts[priority : priority + 24] + parts[priority + 27 : priority + 32]  # between: three names
        whole = parts[priority + 1 : priority + 4] + parts[priority + 27 : priority + 29]
        if all(map(NUMBER.fullmatch, numbers)) and all(map(WHOLE.fullmatch, whole)):
            break
    else:
        return NO_RECORD
    # of several numbers before the account, the last: accounts with a colon and a number are rarer than such names
    job = next((parts[k] for k in range(priority - 2, 4, -1) if JOB_NUMBER.fullmatch(parts[k])), None)
    is_master = _is_master(parts[priority + 33 :])
    if job is None or is_master is None:
        return NO_RECORD
    _, start_us, end_us = (int(part) * (1_000 if int(part) >= MILLISECONDS_FROM else 10**6) for part in whole[:3])
    slots, array_task, host = int(whole[3]), int(whole[4]), parts[1]
    if start_us == 0:
        return NOT_STARTED
    if not (0 < start_us < YEAR_9999_US and 0 <= end_us < YEAR_9999_US):
        return NO_SUCH_TIME
    if not host or len(host) > 255 or not host.isprintable() or host != host.strip() or host == "UNKNOWN":
        return NO_HOST
    if end_us < start_us:
        return BACKWARDS
    return Line(f"{job}.{array_task}" if array_task > 0 else job, host, start_us, end_us, slots, is_master)


def _is_master(parts):
    """Return whether pe_taskid is NONE, from what follows the category's first part; None if the line is cut."""
    for k in range(len(parts) - 2):
        iow, task, maxvmem, *reservation = parts[k : k + 5]
        is_end = not reservation or (len(reservation) == 2 and all(map(WHOLE.fullmatch, reservation)))
        if NUMBER.fullmatch(iow) and PE_TASK.fullmatch(task) and NUMBER.fullmatch(maxvmem) and is_end:
            return task.upper() == "NONE"
    return None
