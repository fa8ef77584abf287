"""Which GPUs the jobs of an event get: power-of-two sizes side by side on servers, in the manner of a buddy allocator.

A block is one server, or the servers that one larger job was given together. Blocks are kept in classes: a block that
has GPUs left is in that of the largest size that divides their number, a full one in that of the job that filled it.
Inside a class they are sorted by used GPUs; among equals, the one filed first comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bfreplay.errors import BfreplayError
from bfreplay.systems.elasticflow.published.program import Servers, TraceJob

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256)
"""Numbers of GPUs that a job can be placed on."""


@dataclass(slots=True, eq=False)
class _Block:
    """Servers that were taken together, the class they are in, and the GPUs of their jobs in order of placement."""

    servers: list[int]
    capacity: int
    size: int
    gpus_of: dict[int, int] = field(default_factory=dict)

    def n_gpus_in_use(self) -> int:
        """GPUs of its jobs."""
        return sum(self.gpus_of.values())

    def n_gpus_free(self) -> int:
        """GPUs of no job."""
        return self.capacity - self.n_gpus_in_use()


class BuddyPlacement:
    """GPUs of every job that runs now.

    The published program takes everything away at each event and places again, the largest jobs first; then a job
    always fits where enough GPUs are free.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.clear()

    def clear(self) -> None:
        """Take all jobs away. Nothing of what was before is left: blocks dissolve and free servers are in order."""
        self._free = list(range(self._servers.n_servers))
        self._classes: dict[int, list[_Block]] = {size: [] for size in SIZES}
        self._block_of: dict[int, _Block] = {}

    def place(self, job: int, n: int) -> None:
        """Give ``n`` GPUs to a job.

        It goes to the least used block of its own class, else to that of the largest class that has room, else to
        free servers.

        Raises
        ------
        BfreplayError
            For a number that the published program cannot place, and where no room is left.
        """
        check_size(job, n, self._servers)
        block = self._with_room(n) or self._open(job, n)
        block.gpus_of[job] = n
        self._block_of[job] = block
        unused = block.n_gpus_free()
        self._file(block, _class_of(unused) if unused else n)
        self._sort(n)

    def release(self, job: int) -> None:
        """Take away the GPUs of one job."""
        block = self._block_of.pop(job)
        del block.gpus_of[job]
        unused = block.n_gpus_free()
        if not block.gpus_of:
            self._classes[block.size].remove(block)
            self._free = sorted(self._free + block.servers)
        elif unused != block.size:  # else it stays where it is in its class, though it is used less now
            self._classes[block.size].remove(block)
            self._file(block, _class_of(unused))

    def gpus(self) -> dict[int, tuple[int, ...]]:
        """GPU numbers of each job that is placed: those of a block are side by side, in order of placement."""
        each = self._servers.gpus_each
        found: dict[int, tuple[int, ...]] = {}
        for block in dict.fromkeys(self._block_of.values()):
            numbers = [server * each + k for server in sorted(block.servers) for k in range(each)]
            first = 0
            for job, n in block.gpus_of.items():
                found[job] = tuple(numbers[first : first + n])
                first += n
        return {job: found[job] for job in self._block_of}

    def _with_room(self, n: int) -> _Block | None:
        """A block that has room for ``n`` more, no longer in its class; ``None`` where there is none."""
        larger = [size for size in reversed(SIZES) if size > n]
        for size in [n, *larger]:
            blocks = self._classes[size]
            if not blocks:
                continue
            block = blocks.pop(0)
            if block.n_gpus_free() >= n:
                return block
            blocks.append(block)  # the published program leaves one that it looked at in vain behind the others
        return None

    def _open(self, job: int, n: int) -> _Block:
        """Take as many free servers as ``n`` GPUs need, the first ones first."""
        each = self._servers.gpus_each
        count = -(-n // each)
        if count > len(self._free):
            raise BfreplayError(
                f"job {job} needs {count} free servers for {n} GPUs, and {len(self._free)} are: place larger jobs first"
            )
        servers, self._free = self._free[:count], self._free[count:]
        return _Block(servers, count * each, n)

    def _file(self, block: _Block, size: int) -> None:
        """Put a block into a class."""
        block.size = size
        self._classes[size].append(block)
        self._sort(size)

    def _sort(self, size: int) -> None:
        self._classes[size].sort(key=_Block.n_gpus_in_use)


def _class_of(unused: int) -> int:
    """The largest size that divides ``unused``."""
    return next(size for size in reversed(SIZES) if unused % size == 0 and size <= unused)


def check_sizes(jobs: Sequence[TraceJob], servers: Servers) -> None:
    """Raise ``BfreplayError`` for a job that the cluster is too small for: the published program would never end."""
    for job in jobs:
        if job.gpus > servers.n_gpus:
            raise BfreplayError(f"job {job.index} wants {job.gpus} GPUs, and the cluster has {servers.n_gpus}")


def check_size(job: int, n: int, servers: Servers) -> None:
    """Refuse a number of GPUs at which the published program stops with an error.

    Raises
    ------
    BfreplayError
        With the job and the number.
    """
    if n not in SIZES or (n > servers.gpus_each and n % servers.gpus_each):
        raise BfreplayError(
            f"job {job} cannot have {n} GPUs: must be one of {SIZES}, and beyond one server of {servers.gpus_each} a "
            "multiple of it"
        )


def cache_key(gpus: tuple[int, ...]) -> tuple[int, int]:
    """What the published program remembers of a placement, to know whether a job had its GPUs before.

    It is the first GPU and the number: the program takes the ranks from the first on to be consecutive, also where the
    servers of the job are not. The key is that of the GPUs alone, not of the job.
    """
    return min(gpus), len(gpus)
