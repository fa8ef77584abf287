"""Random logs, jobs, policies and options of replays, each made from one seed.

``case_of`` has BFTrainer, its neighbours and rounds on logs as they are; ``portions_case_of`` has the policies of
published systems, nodes left alone and notice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bfreplay.datasets import NodeState
from tests.replay.second_jobs import Cost, Job, Log, Rules

BY_COUNTS = (
    "bftrainer",
    "bftrainer",
    "bftrainer auto",
    "bftrainer objective",
    "equal-share",
    "look-ahead",
    "foresight",
    "random counts",
    "random counts",
)
OBJECTIVES = (
    "throughput",
    "speed-up",
    "priority",
    "proportional-fairness",
    "max-min",
    "deadline",
    "cost(price=0.1)",
    "energy",
    "throughput + 0.5*speed-up",
)
IN_ROUNDS = (
    "gavel.max_min_fairness",
    "gavel.max_min_fairness_perf",
    "gavel.max_min_fairness_water_filling_perf",
    "gavel.finish_time_fairness_perf",
    "gavel.min_total_duration_perf",
    "gavel.max_sum_throughput_perf",
    "gavel.isolated",
    "gavel.proportional",
    "gavel.fifo",
    "gavel.fifo_perf",
)
ON_TYPES = (
    *IN_ROUNDS,
    "gavel.max_min_fairness_water_filling",
    "gavel.finish_time_fairness",
    "gavel.min_total_duration",
    "gavel.max_sum_throughput_normalized_by_cost_perf",
    "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs",
    "gavel.max_min_fairness_strategy_proof_perf",
    "gavel.allox",
    "shockwave.shockwave",
    "shockwave.ossp",
    "shockwave.themis",
    "shockwave.gavel",
    "shockwave.allox",
    "shockwave.mst",
    "shockwave.gandiva_fair",
)
ELASTICFLOW = tuple(
    f"elasticflow.{name}"
    for name in ("elasticflow", "elastic", "edf", "edf_admission", "gandiva", "tiresias", "themis", "chronus")
)
RULES = {
    "scavenger": ("size=1", "size=3", "size=50,backfill=false", "requeue_s=20", "requeue_s=600,backfill=false"),
    "ray": ("interval_s=60", "interval_s=7", "share=one-cluster-each", "interval_s=600,share=one-cluster-each"),
    "torchrun": ("last_call_s=30", "last_call_s=5,keep_alive_s=0", "max_restarts=2", "join_timeout_s=40"),
    "gang": ("order=volcano", "order=kai", "order=kai,stale_s=0", "preempt=any,stale_s=20", "preempt=lower-priority"),
    "kueue": ("growth=partial", "growth=atomic,strict=true", "reading=evict", "growth=partial,preempt=lower-priority"),
    "horovod": ("cooldown=forever", "cooldown='5:60'", "reclaims=orderly", "start_nodes=3"),
}
"""Options of the rules that products ship."""
_ANY_RULE = {"max_nodes": [1, 2, 5], "restart_s": [5, 60], "snooze_s": [30, 400]}
_GAPS = 1, 1, 1, 2, 9, 17, 18, 19, 20, 40
"""Between the numbers of neighbours: a gap above 18 splits a run."""
_NOT_IDLE = [state for state in NodeState if state != NodeState.IDLE]


@dataclass
class Case:
    """Everything that one replay is made from."""

    seed: int
    log: Log
    jobs: list[Job]
    deadlines: dict[str, int]
    policy: str
    rules: Rules
    t_fwd_s: float = 120.0
    objective: str | None = None
    solver: str = "exact"
    unlimited_work: bool = False
    via_files: bool = False
    bound: bool = False
    random_state: int = 0
    options: dict[str, float] = field(default_factory=dict)


def _log(rng: np.random.Generator, types: list[str] | None) -> Log:
    n_nodes = int(rng.choice([1, 2, 3, 5, 8, 13, 24]))
    start_us = int(rng.choice([0, 1_600_000_000_000_000, 1_719_800_000_123_457, -86_400_000_000]))
    unit = int(rng.choice([1, 1_000, 1_000_000]))  # whole seconds make coincidences
    length = max(3, int(rng.choice([60, 600, 7_200])) * 1_000_000 // unit)
    width = len(str(n_nodes)) if rng.random() < 0.5 else 1  # n10 before n2: order of names, not of numbers
    nodes = sorted(f"n{k:0{width}d}" for k in range(n_nodes))
    idle = {int(k) for k in np.flatnonzero(rng.random(n_nodes) < rng.choice([0.0, 0.3, 0.7, 1.0]))}
    first = set(idle)
    changes: list[tuple[int, int, bool]] = []
    states: list[str] = []
    n_instants = int(rng.choice([0, 1, 5, 20, 50]))
    times = sorted({int(t) for t in rng.integers(1, length + (rng.random() < 0.3), n_instants)})
    for step in times:
        most = n_nodes if rng.random() < 0.3 else min(3, n_nodes)
        for node in sorted(rng.choice(n_nodes, int(rng.integers(1, most + 1)), replace=False).tolist()):
            now_idle = node not in idle
            state = NodeState.IDLE if now_idle else _NOT_IDLE[int(rng.integers(len(_NOT_IDLE)))]
            if now_idle and rng.random() < 0.1:  # from one kind of not idle to another
                state, now_idle = _NOT_IDLE[int(rng.integers(len(_NOT_IDLE)))], False
            idle = (idle | {node}) if now_idle else idle - {node}
            changes.append((start_us + step * unit, node, now_idle))
            states.append(state.name.lower())
    of_node = [types[int(rng.integers(len(types)))] for _ in nodes] if types else None
    if of_node:
        of_node[: len(types)] = types[:n_nodes]
    return Log(nodes, start_us, start_us + length * unit, first, changes, of_node, states)


def _spread(rng: np.random.Generator, log: Log) -> Log:
    """Return the log with nodes that are never idle between its nodes, so that they lie on several runs."""
    numbers = np.cumsum(rng.choice(_GAPS, len(log.nodes))).tolist()
    width = len(str(numbers[-1]))
    return replace(
        log,
        nodes=[f"n{k:0{width}d}" for k in range(numbers[-1] + 1)],
        first_idle={numbers[k] for k in log.first_idle},
        changes=[(time_us, numbers[k], is_idle) for time_us, k, is_idle in log.changes],
    )


def _placed(seed: int, log: Log, rules: Rules) -> tuple[Log, Rules]:
    """Return the case's log and rules, in half of all cases with placement on runs, on few or many of them."""
    rng = np.random.default_rng([seed, 45])
    if rng.random() < 0.5:
        return log, rules
    return (_spread(rng, log) if rng.random() < 0.7 else log), replace(rules, on_runs=True)


def _told(seed: int, policy: str, rules: Rules) -> tuple[str, Rules]:
    """Return the policy, sometimes told another price, and the rules, in half of all cases with notice."""
    rng = np.random.default_rng([seed, 49])
    if policy in ("bftrainer", "bftrainer auto") and rng.random() < 0.2:
        policy = f"bftrainer(price_s={rng.choice([0, 60, 360])})"
        rules = replace(rules, solves_own_objective=False)
    rules = replace(rules, clear_us=int(rng.choice([0, 250_000, 4_000_000, 30_000_000])))
    return policy, replace(rules, notice_us=rules.clear_us if rng.random() < 0.5 else None)


def _settled(seed: int, rules: Rules) -> Rules:
    """Return the case's rules, in a third of all cases with a settle time."""
    rng = np.random.default_rng([seed, 46])
    return replace(rules, settle_us=int(rng.choice([0, 0, 0, 0, 300_000, 1_000_000, 5_000_000, 60_000_000])))


def _jobs(rng: np.random.Generator, log: Log, types: list[str], *, in_rounds: bool) -> list[Job]:
    span = log.end_us - log.start_us
    jobs = []
    for k in range(int(rng.choice([1, 2, 4, 7, 12]))):
        most = int(rng.integers(1, 1 + rng.choice([1, 4, 8, 30])))
        scale = float(rng.choice([1e-3, 1.0, 100.0, 1e6]))
        rates = {}
        for name in types:
            if rng.random() < 0.6:
                curve = scale * np.arange(most + 1) ** rng.uniform(0.3, 1.2)
            else:
                curve = np.concatenate([[0.0], scale * rng.random(most)])
            if rng.random() < 0.1 and not in_rounds:
                curve[int(rng.integers(most + 1))] = 0.0
            rates[name] = [float(rate) for rate in curve]
        peak = max(max(curve) for curve in rates.values())
        work = max(peak, 1e-9) * span / 1e6 * float(rng.choice([1e-3, 0.05, 0.3, 1.0, 10.0]))
        when = rng.random()
        submit_us = log.start_us + int(0 if when < 0.4 else rng.integers(-span // 4, span + span // 10))
        if when > 0.9 and log.changes:
            submit_us = log.changes[int(rng.integers(len(log.changes)))][0]  # at the instant of an event
        if when > 0.98:
            submit_us = log.end_us
        costs = rng.choice([0.0, 1.0, 5.0, 30.0, 200.0], 2)
        weight = float(rng.choice([1.0, 1.0, 0.5, 3.0]))
        least = int(rng.integers(1, most + 1)) if rng.random() < 0.5 else 1
        jobs.append(Job(f"job{k}", submit_us, least, most, float(costs[0]), float(costs[1]), work, rates, weight))
    return jobs


def _draw_costs(seed: int, jobs: list[Job]) -> None:
    """Let the jobs of every third case pay what BFTrainer's model does not know."""
    rng = np.random.default_rng([seed, 45])
    if rng.random() > 0.4:
        return
    for job in jobs:
        job.pauses = bool(rng.random() < 0.6)
        job.start_s = float(rng.choice([0.0, 3.0, 60.0]))
        if rng.random() < 0.7:
            job.every_us = int(rng.choice([2_000_000, 20_000_000, 333_333_333, 1_800_000_000]))
            job.saves = str(rng.choice(["never", "on-notice", "on-resize"]))
        for name in ("start_s", "up_s", "down_s"):
            if rng.random() < 0.3:
                counts = sorted({0, *rng.integers(1, job.max_nodes + 2, 2).tolist()})
                setattr(job, name, {n: float(rng.choice([0.0, 2.0, 29.0, 95.0])) for n in counts})


def _draw_real_costs(seed: int, log: Log, jobs: list[Job]) -> None:
    """Let the jobs pay what BFTrainer's model does not know, one job at least."""
    rng = np.random.default_rng([seed, 48])
    kind = str(rng.choice(["start alone", "risk alone", "counts alone", "any", "any", "any", "any", "any"]))
    shortest_us = (log.end_us - log.start_us) // 10_000  # the second engine goes from checkpoint to checkpoint
    for job in jobs:
        if kind == "counts alone" or rng.random() < 0.3:
            all_counts = range(job.min_nodes, job.max_nodes + 1)
            ends = all_counts[0], all_counts[-1]
            job.counts = tuple(n for n in all_counts if n in ends or rng.random() < 0.4)
        if kind == "counts alone":
            continue
        job.pauses = bool(rng.random() < 0.6)
        job.start_s, job.up_s, job.down_s = 0.0, 0.0, 0.0
        if kind == "start alone":
            job.start_s = float(rng.choice([1 / 3, 2.0, 60.0]))
        if kind == "any":
            job.start_s, job.up_s, job.down_s = (_cost(rng, job.max_nodes) for _ in range(3))
        if kind == "risk alone" or (kind == "any" and rng.random() < 0.8):
            every_us = rng.choice([1_000, 500_000, 2_000_000, 20_000_001, 333_333_333, 1_800_000_000])
            job.every_us = max(int(every_us), shortest_us)
            job.saves = str(rng.choice(["never", "on-notice", "on-resize"]))
    if all(job.is_published for job in jobs):
        jobs[0].start_s = 3.0


def _cost(rng: np.random.Generator, max_nodes: int) -> Cost:
    """Seconds of a change, of three in ten by count."""
    seconds = rng.choice([0.0, 0.0, 0.25, 1 / 3, 2.0, 29.0, 95.0, 600.0], 3).tolist()
    if rng.random() > 0.3:
        return seconds[0]
    return dict(zip(sorted({0, *rng.integers(1, max_nodes + 2, 2).tolist()}), seconds, strict=False))


def case_of(seed: int, *, with_costs: bool = False) -> Case:
    """Return the case of one seed; ``with_costs``: never published, and with costs that BFTrainer does not know."""
    rng = np.random.default_rng(seed)
    kind = rng.random()
    in_rounds = kind > 0.85
    is_typed = kind > 0.95 or 0.80 < kind <= 0.85
    types = ["v100", "k80"] if is_typed else ["any"]
    log = _log(rng, types if is_typed else None)
    jobs = _jobs(rng, log, types if is_typed and len(log.nodes) > 1 else ["any"], in_rounds=in_rounds)
    if is_typed and len(log.nodes) == 1:
        log.types, is_typed = None, False
    policy = str(rng.choice(IN_ROUNDS)) if in_rounds else "bftrainer" if is_typed else str(rng.choice(BY_COUNTS))
    is_published = not in_rounds and not is_typed and rng.random() < 0.3 and not with_costs
    if with_costs:
        _draw_real_costs(seed, log, jobs)
    elif not is_published:
        _draw_costs(seed, jobs)
    wakes = frozenset({"pool", "arrival", "completion"})
    if policy == "random counts" and rng.random() < 0.4:
        wakes = frozenset(str(word) for word in rng.choice(sorted(wakes), int(rng.integers(1, 3)), replace=False))
    solver = "exact"
    if policy == "bftrainer" and not is_typed and rng.random() < 0.01:
        solver = str(rng.choice(["highs", "cbc"]))
    rules = Rules(
        int(rng.choice([1, 2, 4, 10])),
        is_published,
        solves_own_objective=policy in ("bftrainer", "bftrainer auto") and not is_typed,
        wakes=wakes,
    )
    if not (is_typed or in_rounds or is_published):
        log, rules = _placed(seed, log, rules)
    if not is_published:
        rules = _settled(seed, rules)
    if with_costs:
        policy, rules = _told(seed, policy, rules)
    deadlines = {
        job.name: job.submit_us + int(rng.integers(1, log.end_us - log.start_us + 2))
        for job in jobs
        if rng.random() < 0.3
    }
    return Case(
        seed,
        log,
        jobs,
        deadlines,
        policy,
        rules,
        t_fwd_s=float(rng.choice([1.0, 30.0, 120.0, 600.0])),
        objective=str(rng.choice(OBJECTIVES)) if policy == "bftrainer objective" else None,
        solver=solver,
        unlimited_work=bool(rng.random() < 0.1 and not in_rounds),
        via_files=bool(rng.random() < 0.15),
        bound=bool(rng.random() < 0.2),
        random_state=int(rng.integers(1000)),
        options={"round_s": float(rng.choice([30.0, 120.0, 360.0]))} if in_rounds else {},
    )


def _rule(rng: np.random.Generator) -> str:
    """Return the spec of a rule of a product with random options."""
    name = str(rng.choice(list(RULES)))
    options = [str(rng.choice(RULES[name]))]
    options += [f"{option}={rng.choice(values)}" for option, values in _ANY_RULE.items() if rng.random() < 0.3]
    return f"products.{name}({','.join(options)})"


def portions_case_of(seed: int, *, with_costs: bool = False) -> Case:
    """Return the case of one seed of the family with policies of published systems; ``with_costs``: as above."""
    rng = np.random.default_rng([seed, 41])
    kind = rng.random()
    is_aware = np.random.default_rng([seed, 46]).random() < 0.2
    if is_aware:
        kind = 1.0
    of_rule = np.random.default_rng([seed, 48])
    is_rule = not is_aware and of_rule.random() < 0.3
    if is_rule:
        kind = 1.0
    has_types = kind < 0.6
    by_counts = [name for name in BY_COUNTS if name != "foresight"]  # it cannot see a log that is still to come
    policy = str(rng.choice(ON_TYPES if has_types else ELASTICFLOW if kind < 0.9 else by_counts))
    if is_aware:
        policy = "reclaim-aware" if rng.random() < 0.7 else "reclaim-aware objective"
    if is_rule:
        policy = _rule(of_rule)
    is_typed = policy.startswith("gavel") and (rng.random() < 0.6 or "cost" in policy)
    log = _log(rng, ["v100", "k80"] if is_typed else None)
    jobs = _jobs(rng, log, ["v100", "k80"] if is_typed else ["any"], in_rounds=kind < 0.9)
    if with_costs:
        _draw_real_costs(seed, log, jobs)
    else:
        _draw_costs(seed, jobs)
    span_us = log.end_us - log.start_us
    objective, options, wakes = None, {}, {"pool", "arrival", "completion"}
    if is_aware or is_rule:
        wakes.add("round")
    if has_types:
        wakes = {"round", "pool"} if rng.random() < 0.7 else {"round"}
        gang = "min" if policy == "gavel.allox" else str(rng.choice(["min", "max", "2"]))
        policy += f"(gang={gang},refill={'true' if 'pool' in wakes else 'false'},restart_s={rng.choice([0, 5, 20])})"
        options = {"round_s": float(rng.choice([30.0, 120.0, 360.0]))}
        for job in jobs:
            if "allox" in policy:
                job.min_nodes = 1
                job.counts = tuple(sorted({1, *job.counts})) if job.counts else ()
    elif kind < 0.9:
        wakes |= {"round", "batch_size"}
        slot = f"slot_s={rng.choice([7, 60, 240])}"
        policy += f"({slot},backend=greedy)" if policy.endswith("chronus") else f"({slot})"
    elif policy.endswith(" objective"):
        objective = str(rng.choice([name for name in OBJECTIVES if name != "max-min" or not is_aware]))
    elif policy == "random counts":
        options = {"restarts": 1.0}
    rules = Rules(
        int(rng.choice([1, 2, 4, 10])),
        solves_own_objective=policy in ("bftrainer", "bftrainer auto"),
        wakes=frozenset(wakes),
        reserve=int(rng.choice([0, 0, 1, 2, 5])),
        min_age_us=int(rng.choice([0, 0, 1_000_000, 20_000_000, 300_000_000])),
        clear_us=int(rng.choice([0, 4_000_000, 30_000_000])),
    )
    if rng.random() < 0.5 and rules.clear_us:
        rules = replace(rules, notice_us=rules.clear_us)
    if not has_types:
        log, rules = _placed(seed, log, rules)
    if is_aware or "horovod" in policy:
        rules = replace(rules, on_runs=False)  # it chooses nodes itself; the numbers of its log stay far apart
    rules = _settled(seed, rules)
    if with_costs:
        policy, rules = _told(seed, policy, rules)
    likely = 0.8 if policy.startswith("elasticflow") or "SLOs" in policy else 0.3
    deadlines = {job.name: job.submit_us + int(rng.integers(1, span_us + 2)) for job in jobs if rng.random() < likely}
    return Case(
        seed,
        log,
        jobs,
        deadlines,
        policy,
        rules,
        t_fwd_s=float(rng.choice([1.0, 30.0, 120.0, 600.0])),
        objective=objective,
        bound=bool(rng.random() < 0.2),
        random_state=int(rng.integers(1000)),
        options=options,
    )
