"""Explanation of one decision, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bfreplay.wording import count, duration, paragraphs, samples


@dataclass(frozen=True, slots=True)
class Change:
    """Nodes of another job that changed at the same instant, as the same fields of ``DecisionAnswer``."""

    job: str
    held: int
    reclaimed: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ChangePrice:
    """Price of the change of a job that has other costs than BFTrainer's, in parts.

    The parts in the unit of the objective are those of the decision: ``restart_loss + at_risk_loss - pause_left_loss``
    is its ``rescale_loss``. All others are what the replay charges.

    Parameters
    ----------
    change
        ``start`` (from below ``min_nodes``), ``scale-up``, ``scale-down``, or ``none``.
    seconds, is_pause, samples
        Restart at the new count: its length, whether it is a pause or a charge, and what it costs in samples.
    pause_left_s, pause_left_samples
        Rest of a pause that staying would cost.
    at_risk_samples, at_risk_since
        Work that the change loses, or would have lost, and time of the last checkpoint or start; ``None`` for none.
    restart_loss, at_risk_loss, pause_left_loss
        The same in the objective.
    """

    change: str
    seconds: float
    is_pause: bool
    samples: float
    pause_left_s: float
    pause_left_samples: float
    at_risk_samples: float
    at_risk_since: str | None
    restart_loss: float
    at_risk_loss: float
    pause_left_loss: float


@dataclass(frozen=True, slots=True)
class ReclaimPrice:
    """Price of the reclaim at this instant: a pause or a charge, less the notice, and the work that was lost.

    With ``--settle``, of all reclaims since the decision before. From ``seconds`` the ``notice_s`` seconds of notice
    are taken off already.
    """

    seconds: float
    is_pause: bool
    notice_s: float
    lost_samples: float


@dataclass(frozen=True, slots=True)
class WholeDecision:
    """A whole decision: its objective, and the nodes of every job.

    Parameters
    ----------
    nodes
        Nodes of the job in question.
    objective
        Values of all jobs, less what they lose by rescaling.
    counts
        Nodes of every job.
    difference
        The chosen decision's objective less this; ``None`` where the chosen one has none.
    difference_percent
        The same in percent of the chosen decision's objective; ``None`` where that is (nearly) 0.
    """

    nodes: int
    objective: float
    counts: Mapping[str, int]
    difference: float | None
    difference_percent: float | None


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """Reasons for the nodes that a job has since a decision.

    *Value* is what nodes are worth to one job, and *objective* what a whole decision is worth, both in the unit of the
    objective: for 'own' with weights of 1, samples over ``t_fwd_s``.

    Parameters
    ----------
    job
        Name of the job.
    decision, time, trigger
        Row of the ``decisions`` table; time, ISO-8601 UTC; trigger of the decision.
    n_idle, n_jobs
        Number of idle nodes, allocated ones included, and of active jobs.
    held, reclaimed, before, after
        Nodes of the job: before this instant; reclaimed at this instant; left at the decision; after the decision.
    preemption_cost_samples, rescale_cost_samples
        Cost of the reclaim, and of the change from ``before`` to ``after``.
    t_fwd_s, objective_spec
        Forward-looking time, and the objective that posed the decision, as ``--objective`` has it.
    is_believed
        True if the policy learned the curves: values are then by its belief at that time.
    value_before, value_after, value_gained
        Value to the job of ``before`` and ``after`` nodes over ``t_fwd_s`` (0 nodes where below its minimum), from
        ``gain`` of the ``AllocationProblem``; their difference.
    rescale_loss, value_net
        Loss of the objective by the change; ``value_gained - rescale_loss``.
    free_before, free_after
        Number of unallocated idle nodes at the decision, and after it.
    others
        Other jobs whose nodes changed at this instant.
    counts
        The whole decision: nodes of every active job.
    chosen_objective
        Its objective; ``None`` where it is infeasible (a job was left with fewer nodes than its minimum).
    is_optimal
        True if no whole decision has a higher objective.
    optimum
        The best whole decision, where it is another one.
    runner_up
        The best whole decision with another number of nodes for the job; ``None`` where none is feasible.
    as_it_was
        The best whole decision in which the job keeps ``before``; ``None`` where it may not, or did.
    solver, quality
        Solver of the decision, and quality of its answer (``docs/run-tables.md``).
    notes
        Further remarks, each a sentence.
    horizon_s
        Time over which values are: ``t_fwd_s`` after the longest restart of all jobs.
    change_price, reclaim_price
        Parts of the price of the change and of the reclaim; ``None`` for a job with BFTrainer's costs. ``to_dict``
        has these, and ``horizon_s``, only where there are any.
    reclaims_per_hour
        What the policy expected of the job's nodes; ``None`` for one that does not learn it.
    """

    job: str
    decision: int
    time: str
    trigger: str
    n_idle: int
    n_jobs: int
    held: int
    reclaimed: int
    before: int
    after: int
    preemption_cost_samples: float
    rescale_cost_samples: float
    t_fwd_s: float
    objective_spec: str
    is_believed: bool
    value_before: float
    value_after: float
    value_gained: float
    rescale_loss: float
    value_net: float
    free_before: int
    free_after: int
    others: tuple[Change, ...]
    counts: Mapping[str, int]
    chosen_objective: float | None
    is_optimal: bool
    optimum: WholeDecision | None
    runner_up: WholeDecision | None
    as_it_was: WholeDecision | None
    solver: str
    quality: str
    notes: tuple[str, ...]
    horizon_s: float | None = None
    change_price: ChangePrice | None = None
    reclaim_price: ReclaimPrice | None = None
    reclaims_per_hour: float | None = None

    def __repr__(self) -> str:
        return render_decision(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        optional = "horizon_s", "change_price", "reclaim_price", "reclaims_per_hour"
        return {name: value for name, value in asdict(self).items() if name not in optional or value is not None}


@dataclass(frozen=True, slots=True)
class EmptyPool:
    """Explanation for a job without nodes: no node is idle.

    Parameters
    ----------
    job
        Name of the job.
    decision, time
        Row of the ``decisions`` table, and time, ISO-8601 UTC.
    n_reclaimed
        Number of nodes that the batch scheduler reclaimed, from all jobs.
    held
        Nodes of the job before.
    """

    job: str
    decision: int
    time: str
    n_reclaimed: int
    held: int

    def __repr__(self) -> str:
        return render_decision(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        return asdict(self)


_MOST_SHOWN = 8
"""Largest number of other jobs, and of differences between decisions, that are listed."""


def render_decision(answer: DecisionAnswer | EmptyPool) -> str:
    """Return several lines of text, without a newline at the end."""
    if isinstance(answer, EmptyPool):
        return "\n".join(_of_empty_pool(answer))
    headline = f"{answer.job} at {answer.time}: {_headline(answer)}"
    note_lines = [f"  note: {note_text}" for note_text in answer.notes]
    return paragraphs([[headline, *note_lines], [*_nodes(answer)], [*_value(answer)], [*_whole_decisions(answer)]])


def _of_empty_pool(answer: EmptyPool) -> Iterator[str]:
    yield f"{answer.job} at {answer.time}: 0 nodes, as no node is idle"
    if answer.n_reclaimed:
        losses = f"{count(answer.n_reclaimed, 'node')}, {answer.held or 'none'} of them from the job"
        yield f"  The batch scheduler reclaimed {losses}; no node was left to allocate."


def _headline(answer: DecisionAnswer) -> str:
    change_words = []
    if answer.reclaimed:
        many = "all" if answer.reclaimed == answer.held else answer.reclaimed
        cost = f"costs {samples(answer.preemption_cost_samples)} samples{_of_reclaim(answer.reclaim_price)}"
        change_words.append(f"{many} of its {count(answer.held, 'node')} reclaimed by the batch scheduler ({cost})")
    node_words = count(answer.after, "node")
    if answer.after == answer.before:
        change_words.append(f"kept {node_words}" if answer.before else "left without nodes")
    else:
        change_verb = "scaled down" if answer.after < answer.before else "scaled up" if answer.before else "started"
        change_words.append(f"{change_verb} from {answer.before} to {node_words}")
    return "; then ".join(change_words)


def _of_reclaim(price: ReclaimPrice | None) -> str:
    if price is None:
        return ""
    notice = f" after {price.notice_s:g} s of notice" if price.notice_s else ""
    lost = f", and {samples(price.lost_samples)} samples of work" if price.lost_samples else ""
    return f", {'a pause' if price.is_pause else 'a charge'} of {price.seconds:g} s{notice}{lost}"


def _nodes(answer: DecisionAnswer) -> Iterator[str]:
    pool_words = f"{count(answer.n_jobs, 'job')}, {count(answer.n_idle, 'idle node')}"
    yield f"Decision {answer.decision} (trigger: {answer.trigger.replace('+', ', ')}): {pool_words}"
    yield f"  free nodes  {answer.free_before} before, {answer.free_after} after"
    for change in answer.others[:_MOST_SHOWN]:
        yield f"  {change.job}  {_change(change)}"
    n_omitted = len(answer.others) - _MOST_SHOWN
    if n_omitted > 0:
        yield f"  ... and {count(n_omitted, 'other job')}"
    if not answer.others:
        yield "  no other job gained or lost a node"


def _change(change: Change) -> str:
    change_words = [f"{change.held} to {change.held - change.reclaimed} reclaimed"] if change.reclaimed else []
    if change.before != change.after:
        change_words.append(f"{change.before} to {change.after}")
    elif change.after:
        change_words.append("kept")
    return ", then ".join(change_words)


def _value(answer: DecisionAnswer) -> Iterator[str]:
    belief = ", by the curves as believed then" if answer.is_believed else ""
    ahead = f"{duration(answer.t_fwd_s)} ahead"
    if answer.horizon_s is not None:
        ahead = f"{duration(answer.horizon_s)} ahead, T_fwd after the longest restart"
    yield f"Value to the job over the {ahead} (objective: {answer.objective_spec}{belief})"
    yield _row(f"on {count(answer.before, 'node')}", answer.value_before)
    if answer.after == answer.before:
        if answer.change_price is not None:
            yield from _kept(answer.change_price)
        return
    yield _row(f"on {count(answer.after, 'node')}", answer.value_after)
    yield _row("gained", answer.value_gained)
    if answer.change_price is not None:
        yield from _parts(answer.change_price)
    charge_words = f"{samples(answer.rescale_cost_samples)} samples charged" if answer.rescale_cost_samples else "free"
    yield _row("lost by rescaling", answer.rescale_loss, charge_words)
    yield _row("net", answer.value_net)


def _parts(price: ChangePrice) -> Iterator[str]:
    paid = "paused" if price.is_pause else "charged"
    yield _row("restart", price.restart_loss, f"{price.change}: {price.seconds:g} s {paid}")
    if price.at_risk_loss:
        yield _row("work at risk", price.at_risk_loss, _at_risk(price))
    elif price.at_risk_samples:
        yield f"  the change loses {_at_risk(price)}, which is no part of the loss below"
    if price.pause_left_loss:
        yield _row("rest of a pause", -price.pause_left_loss, f"{price.pause_left_s:g} s, which staying would cost")


def _kept(price: ChangePrice) -> Iterator[str]:
    if price.pause_left_loss:
        yield _row("rest of a pause", price.pause_left_loss, f"{price.pause_left_s:g} s")
    if price.at_risk_samples:
        yield f"  a change would have lost {_at_risk(price)}"


def _at_risk(price: ChangePrice) -> str:
    return f"{samples(price.at_risk_samples)} samples made since {price.at_risk_since}"


def _whole_decisions(answer: DecisionAnswer) -> Iterator[str]:
    yield "Whole decisions (all jobs together), by their objective"
    if answer.chosen_objective is None:
        yield "  chosen: no number, as it leaves a job with fewer nodes than it can run on"
    else:
        best = "no decision has more" if answer.is_optimal else "not the best"
        yield _row("chosen", answer.chosen_objective, f"{answer.after} for {answer.job}; {best} ({answer.solver})")
    other_decisions = {"best of all": answer.optimum, "runner-up": answer.runner_up, "left as it was": answer.as_it_was}
    for row_label, decision in other_decisions.items():
        if decision is not None:
            remark = f"{decision.nodes} for {answer.job}{_margin(decision)}{_rest(decision, answer)}"
            yield _row(row_label, decision.objective, remark)
    if answer.runner_up is None:
        yield "  runner-up: none, as the job can have no other number of nodes"


def _margin(decision: WholeDecision) -> str:
    """Return the distance from the chosen decision's objective as text."""
    if decision.difference is None:
        return ""
    if decision.difference == 0:
        return "; as much, so the choice between the two is arbitrary"
    margin_word = "less" if decision.difference > 0 else "more"
    percent_words = "" if decision.difference_percent is None else f" ({abs(decision.difference_percent):.3g} %)"
    return f"; {samples(abs(decision.difference))} {margin_word}{percent_words}"


def _rest(decision: WholeDecision, answer: DecisionAnswer) -> str:
    """Return the other jobs whose nodes differ from the chosen decision as text."""
    counts = ((name, answer.counts[name], n_nodes) for name, n_nodes in decision.counts.items() if name != answer.job)
    changes = [f"{name} {n_chosen} -> {n_nodes}" for name, n_chosen, n_nodes in counts if n_nodes != n_chosen]
    n_omitted = len(changes) - _MOST_SHOWN
    omission = f", and {count(n_omitted, 'other job')}" if n_omitted > 0 else ""
    return f"; {', '.join(changes[:_MOST_SHOWN])}{omission}" if changes else ""


def _row(label: str, value: float, remark: str = "") -> str:
    return f"  {label:<20}{samples(value):>16}   {remark}".rstrip()
