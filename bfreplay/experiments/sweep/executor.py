"""Where runs are worked on: one interface, whatever machine or machines stand behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Done(Generic[Answer]):
    """What became of one task.

    Parameters
    ----------
    key
        Of the task.
    answer
        What ``work`` returned; ``None`` where every worker that tried it died.
    died
        How the last of them ended; empty where there is an answer.
    """

    key: str
    answer: Answer | None = None
    died: str = ""


class Executor(Protocol):
    """Does the same work on many tasks, several at a time, in other processes.

    A worker that dies costs nothing but the task it was at, which another one does again; how often, and what becomes
    of workers when the executor is closed, each kind says of itself.
    """

    @property
    def n_workers(self) -> int:
        """How many tasks are worked on at a time, as far as is known now; 0 while none has come."""
        ...

    def each(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Do ``work`` on every task; answers come as they are ready.

        Parameters
        ----------
        work
            A function (or a ``functools.partial`` of one) that other processes can import. It returns errors that
            belong to a task as an answer; what it raises is a defect and is raised here.
        tasks
            By a key that tells tasks apart, the same for the same work on the same content.
        """
        ...

    def close(self) -> None:
        """Have no more tasks begun; harmless when called twice."""
        ...
