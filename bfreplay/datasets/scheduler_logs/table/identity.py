"""What tells job intervals apart where a job's number does not: tasks of an array, a row for each node."""

from __future__ import annotations

from typing import TypeVar

from bfreplay.datasets.occupancy.lint import Lint

_T = TypeVar("_T")

MOST_REMEMBERED = 65_536
SEVERAL_TASKS = (
    "rows of the same job with the same start are taken as tasks of an array, each with nodes of its own; "
    "if they are one row written twice, its nodes count twice"
)


class Identities:
    """Names intervals so that different ones differ and one that is exported twice does not.

    Rows of the same job and start that list different nodes are parts of the job. Rows without lists are counted: the
    second such row of one file is the second task, also where another file (an overlapping export) has it again. Only
    the last 65,536 jobs are remembered; rows of one job and start stand near each other in any order of time.
    """

    def __init__(self, lint: Lint) -> None:
        self._lint = lint
        self._listed: dict[tuple[str, int], str] = {}
        self._counted: dict[tuple[str, int], int] = {}

    def next_file(self) -> None:
        """A new file begins: count tasks from the first again."""
        self._counted.clear()

    def of(self, job: str, start_us: int, nodes: str, file: str, line: int) -> str:
        """Identity of an interval; ``nodes`` is the list as it stands, empty without one."""
        key = (job, start_us)
        if nodes:
            first = self._listed.get(key)
            if first is None:
                _make_room(self._listed)
                self._listed[key] = first = nodes
            return job if first == nodes else f"{job} on {nodes}"
        earlier = self._counted.get(key, 0)
        if not earlier:
            _make_room(self._counted)
        self._counted[key] = earlier + 1
        if not earlier:
            return job
        self._lint.doubt(SEVERAL_TASKS, file, line, job)
        return f"{job} task {earlier + 1}"


def _make_room(known: dict[tuple[str, int], _T]) -> None:
    if len(known) >= MOST_REMEMBERED:
        del known[next(iter(known))]
