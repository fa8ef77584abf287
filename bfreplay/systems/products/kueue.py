"""Kueue's elastic jobs: growth waits in the queue like a new job, and what does not fit may be reduced."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bfreplay import checks
from bfreplay.options import OneOf, option
from bfreplay.policies.state import PolicyState
from bfreplay.systems.products.rule import RuleJobs, RuleOptions, RulePolicy, Shares
from bfreplay.wording import count

Fits = Callable[[list[int]], bool]
"""Whether pod sets of these counts fit; if they do, so do smaller ones."""


def at_most(n_pods: int) -> Fits:
    """Return the condition that all pod sets together have at most ``n_pods`` pods."""
    return lambda counts: sum(counts) <= n_pods


def take_pods(most: Sequence[int], least: Sequence[int], n_pods: int, in_order: bool = True) -> list[int]:
    """Return the counts of pod sets that have ``most`` pods after ``n_pods`` are taken away, none below its ``least``.

    ``in_order``: from the last set, then from the one before it; else from all in proportion to what they can give, in
    whole pods rounded down.
    """
    rooms = [count - floor for count, floor in zip(most, least, strict=True)]
    if not in_order:
        return [count - room * n_pods // sum(rooms) for count, room in zip(most, rooms, strict=True)]
    counts = list(most)
    for index in reversed(range(len(counts))):
        taken = min(rooms[index], n_pods)
        counts[index] -= taken
        n_pods -= taken
    return counts


def shrink_to_fit(most: Sequence[int], least: Sequence[int], fits: Fits, in_order: bool = True) -> list[int] | None:
    """Return the counts after the fewest pods are taken away with which they fit; ``None``: they never do.

    Pod sets that can give no pod away are not reduced: ``None``.
    """
    room = sum(most) - sum(least)
    if not room:
        return None
    n_pods = bisect_left(range(room + 1), True, key=lambda n_pods: fits(take_pods(most, least, n_pods, in_order)))
    return take_pods(most, least, n_pods, in_order) if n_pods <= room else None


def give_back(counts: Sequence[int], most: Sequence[int], fits: Fits) -> list[int]:
    """Return counts that fit, raised as far as they still fit: the first pod set, then the next."""
    counts = list(counts)
    for index, full in enumerate(most):
        before, after = counts[:index], counts[index + 1 :]
        larger = range(counts[index] + 1, full + 1)
        counts[index] += bisect_left(larger, True, key=lambda larger: not fits([*before, larger, *after]))
    return counts


def grow_pods(held: Sequence[int], wanted: Sequence[int], fits: Fits, partial: bool) -> list[int]:
    """Return the counts of the pod sets of a running job that wants others (KEP-77; KEP-12100 with kueue#15699).

    All that it wants; else, if ``partial``, as many as fit, at least one more in all; else what it has.
    """
    if fits(list(wanted)):
        return list(wanted)
    least = [min(counts) for counts in zip(held, wanted, strict=True)]
    counts = shrink_to_fit(wanted, least, fits) if partial else None
    if counts is None:
        return list(held)
    counts = give_back(counts, wanted, fits)
    return list(held) if counts == least else counts


@dataclass(frozen=True)
class KueueOptions(RuleOptions):
    """Options of ``products.kueue``.

    Parameters
    ----------
    growth
        ``atomic``: all that a job wants more or nothing; ``partial``: as many nodes as fit. The product's default is
        ``atomic``: ``partial`` is behind a feature gate, off by default.
    strict
        Nobody passes a job that does not fit (``StrictFIFO``); false: others that fit do (``BestEffortFIFO``).
    preempt
        ``lower-priority``: a job that does not fit takes whole jobs of lower weight away. Off by default.
    reading
        Loss of nodes, when more are granted than there are: ``pod``: jobs lose those nodes; ``evict``: whole jobs, the
        latest admitted first, give up theirs.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    growth: str = option("atomic", OneOf(("atomic", "partial")))
    strict: bool = option(False, checks.truth)
    preempt: str = option("never", OneOf(("never", "lower-priority")))
    reading: str = option("pod", OneOf(("pod", "evict")))


class Kueue(RulePolicy):
    """A job starts on its minimum; the difference to its maximum then waits in the queue like another job.

    The queue is in order of weight, then of creation. Sources: Kueue's KEP-77 (workload slices) and KEP-12100 (partial
    growth), and its pages on cluster queues and preemption.
    """

    name = "products.kueue"
    options_type = KueueOptions
    options: KueueOptions
    product = "Kueue, elastic jobs (2026-08, ff69552e), partial scale-up (2026-09)"
    readings = (
        "a job always wants its maximum, and is first admitted on its minimum; quota is the pool of idle nodes",
        "it is created when the rule first sees it, and its growth when it starts, grows, or is no longer whole",
        "a growth is an admission: of two jobs the latest admitted is the one that grew last",
        "a lost node is replaced at once while the pool has as many nodes as were granted; if it has fewer, the latest"
        " admitted job loses its lost nodes first (pod), or all that it has (evict)",
        "below its minimum a job makes nothing, holds its nodes without end, and waits at its first place for more",
        "an evicted or preempted job waits at its first place, to start on its minimum again",
        "a growth preempts like a start (kueue#6969); whoever need not go after all stays",
        "a job with a list of counts gets the largest of them that fits",
    )

    def forget(self) -> None:
        """Forget the queue and what was granted."""
        self._tick = 0
        self._records: dict[int, dict[str, int]] = {}
        self._clauses: dict[int, str] = {}

    def _next_tick(self) -> int:
        """Return the next tick; in their order jobs and growths are created and admitted."""
        self._tick += 1
        return self._tick

    def _new_record(self) -> dict[str, int]:
        """Return the record of a job that is created now."""
        return {"granted": 0} | dict.fromkeys(("created", "growth", "admitted"), self._next_tick())

    def shares(self, jobs: RuleJobs) -> Shares:
        """Return the nodes granted to each job."""
        self._clauses = {}
        self._records = {number: self._records.get(number) or self._new_record() for number in jobs.number}
        records = list(self._records.values())
        granted = [max(jobs.count[row], jobs.fit(row, records[row]["granted"])) for row in jobs]
        self._lose_nodes(jobs, records, granted)
        self._admit(jobs, records, granted)
        for row in jobs:
            records[row]["granted"] = granted[row]
        return Shares(granted)

    def _lose_nodes(self, jobs: RuleJobs, records: list[dict[str, int]], granted: list[int]) -> None:
        """Reduce what is granted to the nodes that there are, from the latest admitted job on."""
        for row in sorted(jobs, key=lambda row: -records[row]["admitted"]):
            excess = -jobs.n_free(granted)
            if excess > 0 and self.options.reading == "evict":
                granted[row] = 0
            elif excess > 0:
                kept = max(jobs.count[row], jobs.fit(row, granted[row] - excess))
                if kept < granted[row] == jobs.most[row]:
                    records[row]["growth"] = self._next_tick()
                granted[row] = kept

    def _admit(self, jobs: RuleJobs, records: list[dict[str, int]], granted: list[int]) -> None:
        """Go through the queue until nobody in it fits, and write why those that are left wait."""

        def place(row: int) -> tuple[float, int, int]:
            since = "created" if granted[row] < jobs.least[row] else "growth"
            return -jobs.weight[row], records[row][since], row

        queue = sorted(place(row) for row in jobs if granted[row] < jobs.most[row])
        while queue:
            *_, row = queue.pop(0)
            held, starts = granted[row], granted[row] < jobs.least[row]
            wanted = jobs.least[row] if starts else jobs.most[row]
            n_free = jobs.n_free(granted)
            victims = self._victims(jobs, records, granted, row)
            n_at_hand = n_free + sum(granted[victim] for victim in victims)
            is_partial = self.options.growth == "partial" and n_at_hand > 0
            (n_nodes,) = grow_pods([held], [wanted], at_most(held + n_at_hand), is_partial)
            n_nodes = jobs.fit(row, n_nodes)
            if n_nodes > held:
                granted[row] = n_nodes
                records[row]["admitted"] = records[row]["growth"] = self._next_tick()
                spare = n_at_hand - (n_nodes - held)
                for victim in reversed(victims):
                    if granted[victim] <= spare:
                        spare -= granted[victim]
                    else:
                        granted[victim] = 0
                waiting = [row, *victims, *(later for _, _, later in queue)]
                queue = sorted({place(later) for later in waiting if granted[later] < jobs.most[later]})
                continue
            needs = f"needs {count(wanted, 'node')} to start" if starts else f"waits to grow by {wanted - held}"
            needs = f"holds {count(held, 'node')}, below its minimum of {wanted}" if starts and held else needs
            self._clauses[row] = f"it {needs}, with {n_free} free at its turn"
            if self.options.strict:
                self._clauses |= {later: "the queue waits with an earlier job (strict)" for _, _, later in queue}
                break

    def _victims(self, jobs: RuleJobs, records: list[dict[str, int]], granted: list[int], row: int) -> list[int]:
        """Return the jobs that may be preempted for the one in ``row``, in that order."""
        if self.options.preempt == "never":
            return []
        lower = [other for other in jobs if granted[other] and jobs.weight[other] < jobs.weight[row]]
        return sorted(lower, key=lambda other: (jobs.weight[other], -records[other]["admitted"]))

    def why(self, state: PolicyState, job_row: int) -> str:
        """Return why a job waits, or does not grow."""
        return self._clauses.get(job_row, "it was granted all that it wants, its maximum")
