"""Who decides for the pilot: a session of bfreplay, or a script by which trainings are measured."""

import sys
from collections.abc import Mapping

from coordinator import Training
from measures import Meter
from slurm_site import PilotError

from bfreplay import ElasticJob, ReplaySession

PHASE_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # nodes on which trainings are measured
COSTS = "start_cost_s", "scale_up_cost_s", "scale_down_cost_s"


class SessionDecider:
    """A session of bfreplay decides; what really happens is reported to it."""

    def __init__(self, session: ReplaySession, jobs: Mapping[str, ElasticJob], *, learns: bool) -> None:
        self.session = session
        self.jobs, self.known = jobs, dict(jobs)
        self.learns = learns
        self.ended: set[str] = set()  # the session takes no more of these

    def change(self, time_us: int, node: str, is_idle: bool) -> None:
        """Give the session a row of its log."""
        self.session.advance([(time_us, node, "idle" if is_idle else "busy")], until=time_us)

    def decide(self, time_us: int) -> list[dict]:
        """Return what the session has decided before this time."""
        decisions = []
        for row in self.session.advance((), until=time_us).to_pylist():
            counts = dict(zip(self.session.holders(), row["counts"], strict=False))
            decisions.append({"time_us": round(row["time"].timestamp() * 1e6), "counts": counts})
        return decisions

    def nodes(self) -> Mapping[str, tuple[str, ...]]:
        """Return the nodes of each training."""
        return self.session.holders()

    def report(self, time_us: int, training: str, samples: float, ended: str = "") -> None:
        """Report progress to the session."""
        if training in self.ended:
            return
        if ended:
            self.ended.add(training)
        self.session.report(training, samples, at=time_us, ended=ended or None)

    def measured(self, time_us: int, training: str, meter: Meter) -> None:
        """Let the session decide with what was measured, if it differs from what it knows."""
        job = meter.applied_to(self.jobs[training])
        if self.learns and training not in self.ended and differ(job, self.known[training]):
            self.known[training] = job
            costs = {name: getattr(job, name) for name in COSTS}
            self.session.update_job(training, throughput=job.throughput, **costs, at=time_us)


def differ(job: ElasticJob, known: ElasticJob) -> bool:
    """Return whether a rate differs by more than 5 %, or a cost by more than a second and a fifth."""
    rates, known_rates = (each.throughput.table(job.max_nodes)[job.min_nodes :] for each in (job, known))
    if any(abs(rates - known_rates) > 0.05 * known_rates):
        return True
    pairs = [[getattr(each, name) for each in (job, known)] for name in COSTS]
    seconds = [
        [cost if isinstance(cost, float) else cost.at(n) for cost in pair] for pair in pairs for n in (1, job.max_nodes)
    ]
    return any(abs(new - old) > max(1.0, 0.2 * old) for new, old in seconds)


class ScriptDecider:
    """Gives each training each number of nodes for a while, from other numbers and from none, to be measured."""

    def __init__(self, trainings: list[Training], n_nodes: int, seconds: float) -> None:
        self.idle: list[str] = []
        self.n_nodes = n_nodes
        self.seconds = seconds
        self.phases = phases_of(trainings, n_nodes)
        self.n_phases = len(self.phases)
        self.held: dict[str, tuple[str, ...]] = {training.name: () for training in trainings}
        self.due_us = 0

    @property
    def is_done(self) -> bool:
        """True once all has been measured."""
        return not self.phases and self.due_us < 0

    def change(self, time_us: int, node: str, is_idle: bool) -> None:
        """Count the workers; one that leaves spoils the measurement."""
        if is_idle:
            self.idle.append(node)
        elif not self.is_done:
            raise PilotError(f"the worker on {node} left: measure while the machine is quiet")

    def decide(self, time_us: int) -> list[dict]:
        """Return the next phase when it is due."""
        if len(self.idle) < self.n_nodes or time_us < self.due_us or self.due_us < 0:
            return []
        if not self.phases:
            self.due_us = -1
            return []
        counts = self.phases.pop(0)
        self.due_us = time_us + round(1e6 * (self.seconds if any(counts.values()) else 3.0))
        free = sorted(self.idle)
        for name, count in counts.items():
            self.held[name] = tuple(free[:count])
            free = free[count:]
        print(f"phase {self.n_phases - len(self.phases)} of {self.n_phases}: {counts}", file=sys.stderr)
        return [{"time_us": time_us, "counts": counts}]

    def nodes(self) -> Mapping[str, tuple[str, ...]]:
        """Return the nodes of each training."""
        return self.held

    def report(self, time_us: int, training: str, samples: float, ended: str = "") -> None:
        """Refuse a training that ends while it is measured."""
        if ended:
            fix = "give it more work" if ended == "finished" else "see its messages in the folder state"
            raise PilotError(f"training {training} {ended} while it was measured: {fix}")

    def measured(self, time_us: int, training: str, meter: Meter) -> None:
        """Do nothing: the meters are read at the end."""


def phases_of(trainings: list[Training], n_nodes: int) -> list[dict[str, int]]:
    """Return numbers of nodes of the trainings, phase by phase: each number twice, the second time from none."""
    left = {}
    for training in trainings:
        least, most = training.min_nodes, min(training.max_nodes, n_nodes)
        left[training.name] = sorted(n for n in {*PHASE_COUNTS, training.max_nodes} if least <= n <= most)
    phases = []
    while any(left.values()):
        free, phase = n_nodes, dict.fromkeys(left, 0)
        for name in sorted(left, key=lambda name: -sum(left[name])):
            if fitting := [n for n in left[name] if n <= free]:
                phase[name] = fitting[-1]
                left[name].remove(fitting[-1])
                free -= fitting[-1]
        phases.append(phase)
    none = dict.fromkeys(left, 0)
    first = {training.name: training.min_nodes for training in trainings}
    if sum(first.values()) <= n_nodes:
        phases.insert(0, first)  # so that the next one is a restart
    return [*phases, *(counts for phase in phases for counts in (none, phase))]
