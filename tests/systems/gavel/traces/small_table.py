"""A throughput table that a person can check by hand, and the published one."""

import copy
import json

from bfreplay.systems.gavel.throughputs import read_throughputs

SMALL = {
    "v100": {
        "('LM', 1)": {"null": 10.0, "('LM', 1)": [6.0, 6.0], "('A3C', 1)": [8.0, 1.5]},
        "('LM', 2)": {"null": 16.0, "('LM', 2)": [9.0, 9.0]},
        "('LM', 4)": {"null": 20.0},
        "('A3C', 1)": {"null": 2.0, "('LM', 1)": [1.5, 8.0]},
    },
    "k80": {
        "('LM', 1)": {"null": 4.0, "('A3C', 1)": [0.0, 0.0]},
        "('LM', 2)": {"null": 0.0},
        "('LM', 4)": {"null": 8},
        "('CPU only', 1)": {"null": 0.5},
    },
    "v100_unconsolidated": {"('LM', 2)": {"null": 12.0}},
}


def table_file(folder, change=None, name="throughputs.json"):
    """The small table in a file, after ``change`` has been made to it."""
    document = copy.deepcopy(SMALL)
    if change is not None:
        change(document)
    (folder / name).write_text(json.dumps(document))
    return folder / name


def small_table(folder):
    return read_throughputs(table_file(folder))


def published(shared):
    return shared / "data/gavel/simulation_throughputs.json.gz"
