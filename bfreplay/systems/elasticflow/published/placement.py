"""GPUs of the jobs of an event: power-of-two sizes side by side on servers, like a buddy allocator.

A block is one server, or the servers of one larger job. Blocks are in classes: a block with free GPUs is in that of the
largest size that divides their number, a full one in that of the job that filled it. Inside a class they are sorted by
used GPUs, then by the order of filing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bfreplay.errors import BfreplayError
from bfreplay.systems.elasticflow.published.program import Servers, TraceJob

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256)
"""Possible numbers of GPUs of a job."""


@dataclass(slots=True, eq=False)
class _Block:
    """Servers taken together, and the GPUs of their jobs in order of placement."""

    servers: list[int]
    capacity: int
    gpus_of: dict[int, int] = field(default_factory=dict)

    def n_gpus_in_use(self) -> int:
        """Return the number of GPUs of its jobs."""
        return sum(self.gpus_of.values())

    def n_gpus_free(self) -> int:
        """Return the number of GPUs of no job."""
        return self.capacity - self.n_gpus_in_use()


class BuddyPlacement:
    """GPUs of every job that runs now.

    The published program clears all at each event and places again, the largest jobs first; then a job always fits if
    enough GPUs are free.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.clear()

    def clear(self) -> None:
        """Remove all jobs and dissolve all blocks; free servers are in order again."""
        self._free = list(range(self._servers.n_servers))
        self._classes: dict[int, list[_Block]] = {job_size: [] for job_size in SIZES}
        self._block_of: dict[int, _Block] = {}

    def place(self, job: int, n_gpus: int) -> None:
        """Give ``n_gpus`` GPUs to a job.

        It goes to the least used block of its own class, else to that of the largest class with room, else to free
        servers.

        Raises
        ------
        BfreplayError
            A number that the published program cannot place, or no room.
        """
        check_size(job, n_gpus, self._servers)
        block = self._with_room(n_gpus) or self._open(job, n_gpus)
        block.gpus_of[job] = n_gpus
        self._block_of[job] = block
        n_free = block.n_gpus_free()
        job_size = _class_of(n_free) if n_free else n_gpus
        self._classes[job_size].append(block)
        for changed_class in (job_size, n_gpus):
            self._classes[changed_class].sort(key=_Block.n_gpus_in_use)

    def gpus(self) -> dict[int, tuple[int, ...]]:
        """Return the GPU numbers of each placed job: those of a block are side by side, in order of placement."""
        gpus_of_job: dict[int, tuple[int, ...]] = {}
        for block in dict.fromkeys(self._block_of.values()):
            numbers = self._servers.gpus_of(block.servers)
            first_gpu = 0
            for job, n_gpus in block.gpus_of.items():
                gpus_of_job[job] = tuple(numbers[first_gpu : first_gpu + n_gpus])
                first_gpu += n_gpus
        return {job: gpus_of_job[job] for job in self._block_of}

    def _with_room(self, n_gpus: int) -> _Block | None:
        """Return a block with room for ``n_gpus`` more, removed from its class; ``None`` if there is none."""
        larger = [job_size for job_size in reversed(SIZES) if job_size > n_gpus]
        for job_size in [n_gpus, *larger]:
            blocks = self._classes[job_size]
            if not blocks:
                continue
            block = blocks.pop(0)
            if block.n_gpus_free() >= n_gpus:
                return block
            blocks.append(block)  # the published program moves a block without room behind the others
        return None

    def _open(self, job: int, n_gpus: int) -> _Block:
        """Take the first free servers that ``n_gpus`` GPUs need."""
        per_server = self._servers.gpus_each
        n_servers = -(-n_gpus // per_server)
        if n_servers > len(self._free):
            raise BfreplayError(
                f"job {job} needs {n_servers} free servers for {n_gpus} GPUs, and {len(self._free)} are: "
                "place larger jobs first"
            )
        servers, self._free = self._free[:n_servers], self._free[n_servers:]
        return _Block(servers, n_servers * per_server)


def _class_of(n_free: int) -> int:
    """Return the largest size that divides ``n_free``."""
    return next(job_size for job_size in reversed(SIZES) if n_free % job_size == 0 and job_size <= n_free)


def check_sizes(jobs: Sequence[TraceJob], servers: Servers) -> None:
    """Raise ``BfreplayError`` for a job larger than the cluster: the published program would never end."""
    for job in jobs:
        if job.gpus > servers.n_gpus:
            raise BfreplayError(f"job {job.index} wants {job.gpus} GPUs, and the cluster has {servers.n_gpus}")


def check_size(job: int, n_gpus: int, servers: Servers) -> None:
    """Refuse a number of GPUs at which the published program stops with an error.

    Raises
    ------
    BfreplayError
        With the job and the number.
    """
    if n_gpus not in SIZES or (n_gpus > servers.gpus_each and n_gpus % servers.gpus_each):
        raise BfreplayError(
            f"job {job} cannot have {n_gpus} GPUs: must be one of {SIZES}, and beyond one server of {servers.gpus_each}"
            " a multiple of it"
        )


def cache_key(gpus: tuple[int, ...]) -> tuple[int, int]:
    """Return the key by which the published program recognises the GPUs that a job had before.

    It is the first GPU and the number: the program assumes consecutive GPUs, also where the servers of the job are not.
    The key does not include the job.
    """
    return min(gpus), len(gpus)
