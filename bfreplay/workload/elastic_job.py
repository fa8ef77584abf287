"""Elastic jobs, and changes of their batch size while they train."""

from __future__ import annotations

import itertools
import json
import math
import operator
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from bfreplay import checks
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.saved_state import restorable
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve
from bfreplay.scalability.law import LARGEST_RATE
from bfreplay.scalability.stepped import curve_as_given, on_counts
from bfreplay.workload.change_costs import Cost, CostByCount, Restart, Saves, cost_of, highest, seconds_of


@restorable
@dataclass(frozen=True, slots=True)
class Adaptation:
    """Batch sizes of a job as it trains (Accordion, gradient noise scale), and its throughput with each.

    Parameters
    ----------
    rule
        Name of the rule that chooses the batch size, for tables and for policies that know the rule.
    samples_per_epoch
        Size of the data set, > 0.
    throughput
        Curve in samples/s for each batch size that the job may have.
    changes
        ``(progress in samples, batch size)``: from this progress on the job trains with this batch size. The first is
        at 0; progress increases, and the batch size differs from the one before.

    Raises
    ------
    InputError
        The changes are out of order, or a batch size has no curve.
    """

    rule: str
    samples_per_epoch: int
    throughput: Mapping[int, Curve]
    changes: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        checks.name("rule", self.rule, "rule")
        checks.whole("samples_per_epoch", self.samples_per_epoch, 1)
        if not self.changes or self.changes[0][0] != 0.0:
            raise _error("the first batch size does not begin at 0 samples", self.changes[:1], "((0.0, batch size),)")
        for (previous, size), (after, next_size) in itertools.pairwise(self.changes):
            if not previous < after < float("inf") or size == next_size:
                raise _error(
                    "changes of the batch size are out of order",
                    ((previous, size), (after, next_size)),
                    "increasing progress, and another batch size each time",
                )
        for _, size in self.changes:
            if size not in self.throughput:
                sizes_with_curve = ", ".join(map(str, sorted(self.throughput))) or "none"
                raise _error(f"the batch size {size} has no throughput curve", size, f"one of {sizes_with_curve}")

    def batch_size_at(self, samples: float) -> int:
        """Return the batch size of the job after ``samples`` samples."""
        return self.changes[bisect_right(self.changes, samples, key=lambda change: change[0]) - 1][1]

    def next_change(self, samples: float) -> float:
        """Return the progress of the first change above ``samples``; inf if none follows."""
        change_index = bisect_right(self.changes, samples, key=lambda change: change[0])
        return self.changes[change_index][0] if change_index < len(self.changes) else float("inf")

    def fastest(self, max_nodes: int) -> TabulatedCurve:
        """Return the highest rate over all batch sizes at each count up to ``max_nodes``."""
        rates = np.max([self.throughput[size].table(max_nodes) for _, size in self.changes], axis=0)
        return TabulatedCurve(range(max_nodes + 1), rates.tolist(), "fastest batch size")

    def average(self, max_nodes: int, work_samples: float) -> TabulatedCurve:
        """Return the rate at each count up to ``max_nodes``, averaged over ``work_samples`` of work."""
        if work_samples == float("inf"):
            return TabulatedCurve(range(max_nodes + 1), self.throughput[self.changes[-1][1]].table(max_nodes).tolist())
        rates = [0.0, *(work_samples / self.seconds_alone(n, work_samples) for n in range(1, max_nodes + 1))]
        return TabulatedCurve(range(max_nodes + 1), rates, "average over batch sizes")

    def seconds_alone(self, n_nodes: int, work_samples: float) -> float:
        """Return the seconds that the job takes on ``n_nodes`` dedicated nodes; inf if it cannot run there.

        Raises
        ------
        InputError
            A curve ends below ``n_nodes``.
        """
        ends = [*(samples for samples, _ in self.changes[1:]), float("inf")]
        total = 0.0
        for (begin, size), end in zip(self.changes, ends, strict=True):
            samples = min(end, work_samples) - begin
            if samples > 0:
                rate_there = float(self.throughput[size].table(n_nodes)[n_nodes])
                total += samples / rate_there if rate_there > 0 else float("inf")
        return total


COSTS = ("start_cost_s", "scale_up_cost_s", "scale_down_cost_s")
"""Costs of a job, each a number or by count."""

OPTIONAL_COSTS = ("start_cost_s", "restart", "work_saved_every_s", "saves", "counts")
"""What else a change does to a job, and the counts that it may change to; optional in files."""

_SHORTEST_S, _LONGEST_S = 0.001, 1e9
_OF_COLUMN = object()
_LOWER = "lower max_nodes to the most nodes that the job can use"


def _error(problem: str, value: object, expectation: str) -> InputError:
    return InputError(problem, column="adaptation", value=value, expected=expectation)


@restorable
@dataclass(frozen=True, slots=True)
class ElasticJob:
    """A training job that may run on any node count from ``min_nodes`` to ``max_nodes``.

    Parameters
    ----------
    name
        Unique within its job set.
    submit_us
        Submit time in microseconds: since the epoch (UTC), or since the start of the replay window
        when the job set says so (``JobSet.submit_is_relative``).
    min_nodes, max_nodes
        Bounds of the user, ``1 <= min_nodes <= max_nodes``; below ``min_nodes`` the job waits with none.
    scale_up_cost_s, scale_down_cost_s
        Seconds of training lost when the job gains or loses nodes (BFTrainer's ``Tcup``, ``Tcdw``): a number, or by the
        new count a ``CostByCount``, a mapping ``{0: 20, 4: 29}``, or a text ``0:20 4:29``.
    work_samples
        Samples to process until the job is done (``Pmax``); ``math.inf`` for a job that never ends.
    throughput
        Curve in samples/s; must reach ``max_nodes``.
    objective
        Curve that the allocator maximises; ``None``: the throughput.
    weight
        Factor on the objective, > 0.
    deadline_us
        Due time on the same clock as ``submit_us``; ``None`` for none.
    node_types
        Node types it runs on; empty for any. The keys of ``throughput_by_type`` if that is given.
    model
        Name of what is trained, for grouping in tables.
    report_at_samples
        Progress at which the job reports to its source (ends of epochs, rungs), strictly increasing, within
        ``(0, work_samples)``; its end is always reported. Empty for a job of a plain set.
    throughput_by_type
        Curves in samples/s by node type; the job cannot run on other types. Empty: ``throughput`` on every type. Such
        a job needs nodes of known type; its ``throughput`` is for display only.
    adaptation
        Changes of its batch size while it trains; ``None``: none. With changes, ``throughput`` is the curve of the
        first batch size, and ``throughput_by_type`` is empty.
    requested_nodes
        Nodes that its user requests from a scheduler that cannot rescale jobs; ``None``: ``max_nodes``.
    expected_s
        Run time on ``requested_nodes`` that its user expects, seconds; ``None``: computed from the throughput.
    params
        Hyper-parameters of a trial or the like, for the run record; JSON-ready.
    samples_per_epoch, first_epoch
        Samples of an epoch, and epochs that were made before the job starts, for the epochs in the table of reports;
        ``None``: not in epochs.
    start_cost_s
        Seconds of training lost when the job begins to run, from fewer than ``min_nodes``; as ``scale_up_cost_s``.
    restart
        ``charge``: a rescale or reclaim owes its cost at the rate before, a start at the rate after, worked off before
        progress goes on; ``pause``: no progress for that time, and a change during a pause begins a whole one.
    work_saved_every_s
        Checkpoint interval, counted from each start and restart; what was made since the last checkpoint is lost at
        a reclaim or change; 0.001 to 1e9 s. 0: saved at all times.
    saves
        Other occasions to save it: ``never``, ``on-notice`` (reclaims of a replay with notice), ``on-resize`` (also
        changes by decisions).
    counts
        Counts it can use, from ``min_nodes`` to ``max_nodes``; on any other it makes what it makes on the next lower
        one. Empty: all.

    Raises
    ------
    InputError
        An invalid bound, cost, work or curve; the message names job, field and value.
    """

    name: str
    submit_us: int
    min_nodes: int
    max_nodes: int
    scale_up_cost_s: Cost
    scale_down_cost_s: Cost
    work_samples: float
    throughput: Curve
    objective: Curve | None = None
    weight: float = 1.0
    deadline_us: int | None = None
    node_types: tuple[str, ...] = ()
    model: str | None = None
    report_at_samples: tuple[float, ...] = ()
    params: Mapping[str, Json] = field(default_factory=dict, hash=False)
    throughput_by_type: Mapping[str, Curve] = field(default_factory=dict, hash=False)
    adaptation: Adaptation | None = field(default=None, hash=False)
    requested_nodes: int | None = None
    expected_s: float | None = None
    samples_per_epoch: float | None = None
    first_epoch: float = 0.0
    start_cost_s: Cost = 0.0
    restart: str = Restart.CHARGE.value
    work_saved_every_s: float = 0.0
    saves: str = Saves.NEVER.value
    counts: tuple[int, ...] = ()

    def __repr__(self) -> str:
        model = f" ({self.model})" if self.model is not None else ""
        costs = f"scale up {self.scale_up_cost_s:g} s, down {self.scale_down_cost_s:g} s"
        costs += "" if self.has_published_costs else f", {self.costs_text}"
        bounds = f"{self.min_nodes:,} to {self.max_nodes:,} nodes"
        return f"<ElasticJob {self.name}{model}: {bounds}, {self.work_samples:.6g} samples, {costs}>"

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("a job has no name", column="name", value=self.name, expected="a unique name")
        checks.name("job", self.name, "name")
        if self.model is not None:
            checks.name("model", self.model, "model")
        if not hasattr(self.throughput, "last_nodes"):
            example = "a curve, such as TabulatedCurve((0, 1, 2), (0.0, 10.0, 19.0))"
            self._refuse("the throughput is no curve", "throughput", example)
        for node_type in (*self.node_types, *self.throughput_by_type):
            checks.name("node type", node_type, "node_types")
        whole_columns = ["submit_us", "min_nodes", "max_nodes", *([] if self.deadline_us is None else ["deadline_us"])]
        for field_name in whole_columns:
            try:
                object.__setattr__(self, field_name, operator.index(getattr(self, field_name)))
            except TypeError:
                self._refuse(f"{field_name} is not a whole number", field_name, "a whole number")
            if "us" in field_name:
                checks.time_us(field_name, getattr(self, field_name))
        least, most = self.min_nodes, self.max_nodes
        if most > checks.MOST_NODES:
            self._refuse("max_nodes is larger than any machine", "max_nodes", f"at most {checks.MOST_NODES:,}", _LOWER)
        if least < 1:
            self._refuse("min_nodes is below 1", "min_nodes", "a whole number >= 1")
        if least > most:
            problem, fix = f"min_nodes {least} is above max_nodes {most}", "lower min_nodes or raise max_nodes"
            self._refuse(problem, "min_nodes", f"1 <= min_nodes <= max_nodes (here {most})", fix)
        self._check_costs()
        n_requested = self.requested_nodes
        if n_requested is not None and not (isinstance(n_requested, int) and least <= n_requested <= most):
            expected = f"a whole number from min_nodes {least} to max_nodes {most}, or nothing"
            self._refuse("it requests a number of nodes that it cannot run on", "requested_nodes", expected)
        if self.expected_s is not None and not (math.isfinite(self.expected_s) and self.expected_s > 0):
            self._refuse("its expected time is not positive", "expected_s", "seconds > 0, or nothing")
        if not self.work_samples > 0:
            self._refuse("the work is not positive", "work_samples", "samples > 0, or inf")
        if not (math.isfinite(self.weight) and self.weight > 0):
            self._refuse("the weight is not positive", "weight", "a finite number > 0")
        if self.params:
            try:
                json.dumps(dict(self.params), allow_nan=False)
            except (TypeError, ValueError) as error:
                self._refuse(f"the params are not JSON-ready: {error}", "params", "texts and numbers")
        for previous, samples in itertools.pairwise((0.0, *self.report_at_samples)):
            if not previous < samples < self.work_samples:
                problem = "a report is out of order, or not within the work"
                expected = f"strictly increasing, above 0 and below the work ({self.work_samples:g} samples)"
                self._refuse(problem, "report_at_samples", expected, value=samples)
        by_type, adaptation = self.throughput_by_type, self.adaptation
        if by_type:
            if self.node_types and set(self.node_types) != set(by_type):
                problem, expected = "its node types differ from those of its curves", f"{sorted(by_type)}, or nothing"
                self._refuse(problem, "node_types", expected, value=list(self.node_types))
            object.__setattr__(self, "node_types", tuple(by_type))
        if adaptation is not None:
            if by_type:
                problem = "a job whose batch size changes has curves by node type"
                expected = "one curve for each batch size, on nodes of one type"
                self._refuse(problem, "throughput_by_type", expected, value=sorted(by_type))
            first_size = adaptation.changes[0][1]
            if self.throughput != adaptation.throughput[first_size]:
                problem = "its throughput is not that of its first batch size"
                self._refuse(problem, "throughput", f"the curve of batch size {first_size}")
        by_size: Mapping[int, Curve] = {} if adaptation is None else adaptation.throughput
        curves = {
            "throughput": self.throughput,
            "objective": self.objective_curve,
            **{f"throughput on {node_type}": curve for node_type, curve in by_type.items()},
            **{f"throughput at batch size {size}": curve for size, curve in by_size.items()},
        }
        for field_name, curve in curves.items():
            last_nodes = curve.last_nodes
            if isinstance(curve_as_given(curve), Law | MeasuredLaw) and last_nodes < most:
                problem = f"max_nodes {most} is above the largest count up to which a law is tabulated"
                self._refuse(problem, "max_nodes", f"at most {last_nodes:,} nodes", _LOWER)
            if last_nodes < most:
                problem = f"the {field_name} curve ends at {last_nodes} nodes, below max_nodes {most}"
                fix = "measure one more point at max_nodes, or lower max_nodes"
                self._refuse(problem, field_name, f"a last point at {most} nodes or more", fix, value=last_nodes)
        for field_name, curve in curves.items():
            largest = (self.weight if field_name == "objective" else 1.0) * float(curve.table(most).max())
            if not largest <= LARGEST_RATE:
                problem = f"the {field_name} is too large to calculate with"
                self._refuse(problem, field_name, f"at most {LARGEST_RATE:g}", value=largest)

    def _check_costs(self) -> None:
        for field_name in COSTS:
            try:
                object.__setattr__(self, field_name, cost_of(getattr(self, field_name)))
            except InputError as error:
                self._refuse(error.problem, field_name, str(error.expected), value=error.value)
        for field_name, words in (("restart", Restart), ("saves", Saves)):
            word = str(getattr(self, field_name))
            choices = [known.value for known in words]
            if word not in choices:
                fix = checks.nearest(word, choices, "write one of these words")
                self._refuse(f"{field_name} is unknown", field_name, ", ".join(choices), fix)
            object.__setattr__(self, field_name, word)
        for field_name in COSTS:
            if self.restart == Restart.PAUSE and highest(getattr(self, field_name)) > _LONGEST_S:
                self._refuse("a pause is longer than 30 years", field_name, f"at most {_LONGEST_S:g} s")
        expected = f"seconds: 0, or {_SHORTEST_S} to {_LONGEST_S:g}"
        try:
            every_s = seconds_of(self.work_saved_every_s)
        except InputError:
            self._refuse("the checkpoint interval is negative or not a number", "work_saved_every_s", expected)
        if every_s and not _SHORTEST_S <= every_s <= _LONGEST_S:
            self._refuse("the checkpoint interval is out of range", "work_saved_every_s", expected)
        object.__setattr__(self, "work_saved_every_s", every_s)
        if self.saves != Saves.NEVER and not every_s:
            problem = "saves without a checkpoint interval: nothing is ever at risk"
            self._refuse(problem, "saves", "never", "give work_saved_every_s as well, or drop saves")
        self._check_counts()

    def _check_counts(self) -> None:
        try:
            counts = tuple(map(operator.index, self.counts))
        except TypeError:
            self._refuse("its counts are no whole numbers", "counts", "a sequence of whole numbers, such as 1, 2, 4, 8")
        object.__setattr__(self, "counts", counts)
        if not counts:
            return
        is_sorted = all(count < next_count for count, next_count in itertools.pairwise(counts))
        if not is_sorted or (counts[0], counts[-1]) != (self.min_nodes, self.max_nodes):
            expected = f"increasing whole numbers from min_nodes {self.min_nodes} to max_nodes {self.max_nodes}"
            self._refuse("its counts are out of order, or not within its bounds", "counts", expected)
        if self.adaptation is not None:
            self._refuse("a job whose batch size changes has counts", "counts", "all counts from min to max nodes")
        for field_name in ("throughput", "objective"):
            if (curve := getattr(self, field_name)) is not None:
                object.__setattr__(self, field_name, on_counts(curve, counts))
        by_type = {name: on_counts(curve, counts) for name, curve in self.throughput_by_type.items()}
        object.__setattr__(self, "throughput_by_type", by_type)

    def _refuse(
        self, problem: str, field_name: str, expected: str, fix: str | None = None, *, value: object = _OF_COLUMN
    ) -> None:
        value = getattr(self, field_name) if value is _OF_COLUMN else value
        raise InputError(f"job {self.name!r}: {problem}", column=field_name, value=value, expected=expected, fix=fix)

    def throughput_on(self, node_type: str) -> Curve | None:
        """Return the curve on nodes of this type; ``None`` if the job cannot run there."""
        if self.throughput_by_type:
            return self.throughput_by_type.get(node_type)
        return self.throughput if not self.node_types or node_type in self.node_types else None

    def epoch_at(self, samples: float) -> float | None:
        """Return the progress in epochs at ``samples``, whole at the ends of epochs; ``None``: not in epochs."""
        return None if self.samples_per_epoch is None else round(self.first_epoch + samples / self.samples_per_epoch, 9)

    def seconds_alone(self, n_nodes: int) -> float:
        """Return the seconds from start to finish on ``n_nodes`` dedicated nodes, with changes of the batch size.

        inf if it makes no progress there.
        """
        if self.adaptation is not None:
            return self.adaptation.seconds_alone(n_nodes, self.work_samples)
        rate_there = float(self.throughput.table(n_nodes)[n_nodes])
        return self.work_samples / rate_there if rate_there > 0 else math.inf

    def changes(self) -> dict[str, Json]:
        """Return costs and ``OPTIONAL_COSTS`` as files have them, JSON-ready; the latter without defaults."""
        cells: dict[str, Json] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in (*COSTS, *OPTIONAL_COSTS) and value != entry.default:
                value = list(value) if isinstance(value, tuple) else value
                cells[entry.name] = str(value) if isinstance(value, CostByCount) else value
        return cells

    @property
    def has_published_costs(self) -> bool:
        """True if its changes cost what BFTrainer's model knows: constant rescale costs, charged; no work at risk."""
        return self.unpublished_cost is None

    @property
    def unpublished_cost(self) -> str | None:
        """First of its fields that says what BFTrainer's model does not know; ``None`` for published costs."""
        fields = {name: isinstance(getattr(self, name), CostByCount) for name in COSTS[1:]}
        fields |= {name: bool(getattr(self, name)) for name in ("start_cost_s", "work_saved_every_s")}
        fields["restart"] = self.restart != Restart.CHARGE
        return next((name for name, is_unpublished in fields.items() if is_unpublished), None)

    @property
    def costs_text(self) -> str:
        """Costs of its changes besides BFTrainer's scale-up and scale-down costs, for people to read."""
        parts = [f"start {self.start_cost_s:g} s"] if self.start_cost_s else []
        if self.restart == Restart.PAUSE:
            up_s, down_s = self.scale_up_cost_s, self.scale_down_cost_s
            pauses = f"{up_s:g} s" if up_s == down_s else f"{up_s:g} s up, {down_s:g} s down"
            parts.append(f"changes pause it {pauses}")
        if self.work_saved_every_s:
            occasions = "" if self.saves == Saves.NEVER else f" and {self.saves.replace('-', ' ')}"
            parts += [f"work saved every {self.work_saved_every_s:g} s{occasions}"]
        if self.restart == Restart.CHARGE and any(isinstance(getattr(self, name), CostByCount) for name in COSTS[1:]):
            parts.append("costs by count")
        return ", ".join(parts)

    @property
    def least_s(self) -> float:
        """Seconds from start to finish at its best rate, on any type; 0 if it never makes progress."""
        curves = list(self.throughput_by_type.values()) or [self.fastest]
        rate = max(float(curve.table(self.max_nodes).max()) for curve in curves)
        return self.work_samples / rate if rate > 0 else 0.0

    def average_throughput_on(self, node_type: str) -> Curve | None:
        """Return the curve on nodes of this type, averaged over batch sizes; ``None`` if the job cannot run there."""
        curve = self.throughput_on(node_type)
        if curve is None or self.adaptation is None:
            return curve
        return self.adaptation.average(self.max_nodes, self.work_samples)

    def in_speed_up(self) -> ElasticJob:
        """Return the job with work that never ends, rates divided by that on one node, and a weight of 1.

        Its samples are then seconds of one node, and jobs of different models count alike. A job that makes nothing on
        one node is taken to scale perfectly up to the fewest nodes on which it makes something.
        """
        rates = self.fastest.table(self.max_nodes)
        one_node = next((rate / n_nodes for n_nodes, rate in enumerate(rates.tolist()) if rate), 1.0)
        curve = TabulatedCurve(range(rates.size), (rates / one_node).tolist())
        endless = replace(self, work_samples=math.inf, deadline_us=None, adaptation=None)
        return replace(endless, throughput=curve, throughput_by_type={}, objective=None, weight=1.0)

    @property
    def fastest(self) -> Curve:
        """Highest rate at each count over all batch sizes."""
        return self.throughput if self.adaptation is None else self.adaptation.fastest(self.max_nodes)

    @property
    def objective_curve(self) -> Curve:
        """Curve that the allocator maximises."""
        return self.throughput if self.objective is None else self.objective
