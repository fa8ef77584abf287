"""What must hold for any log of several types and any jobs, of a policy that places, pairs and limits at random."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeState
from bfreplay.policies import ANY_TRIGGER, Decision, Placement, Policy, PolicyCapabilities, PolicyState, Round, Trigger
from bfreplay.replay import ReplaySettings
from bfreplay.replay.active import node_charge_us
from bfreplay.workload import Colocation, JobSet
from tests.examples import examples
from tests.replay.placed import typed_job, typed_log
from tests.replay.tiny import SECOND

_TYPES = ("v100", "p100", "k80")
_MODELS = ("large", "small")
_END_S = 100
_WAKES_ON = (Trigger.ROUND, Trigger.ROUND | Trigger.POOL, Trigger.ROUND | ANY_TRIGGER, ANY_TRIGGER)


class RandomPlacer(Policy):
    """Decides by the roll of dice that depend on the time alone; looks after what it is shown."""

    name = "random"
    capabilities = PolicyCapabilities(node_types=True)

    def __init__(self, seed: int, wakes_on: Trigger, shares: bool) -> None:
        self.seed = seed
        self.wakes_on = wakes_on
        self.shares = shares
        self.most_done: dict[int, float] = {}

    def decide(self, state: PolicyState) -> Decision:
        self._look(state)
        dice = np.random.default_rng((self.seed, state.time_us))
        nodes = state.nodes
        free = set(np.flatnonzero(nodes.is_idle).tolist())
        assigned = [np.zeros(0, np.int64)] * state.n_jobs
        partner = np.full(state.n_jobs, -1)
        failed = dice.random(state.n_jobs) < 0.02
        for j in range(state.n_jobs):
            roll = dice.random()
            if failed[j] or roll < 0.2:
                continue
            kept = nodes.held(j)
            if roll < 0.4 and kept.size and free.issuperset(kept.tolist()):
                assigned[j] = kept.astype(np.int64)  # after a reclaim perhaps fewer than it needs
            elif self.shares and roll < 0.7:
                alone = [
                    i
                    for i in range(j)
                    if partner[i] < 0 and state.min_nodes[j] <= assigned[i].size <= state.max_nodes[j]
                ]
                if alone:
                    i = int(dice.choice(alone))
                    partner[i], partner[j], assigned[j] = j, i, assigned[i]
                    continue
            if not assigned[j].size:
                chosen = dice.integers(len(nodes.type_names))
                of_type = dice.permutation([k for k in sorted(free) if nodes.node_type[k] == chosen])
                count = min(of_type.size, int(dice.integers(state.min_nodes[j], state.max_nodes[j] + 1)))
                if count >= state.min_nodes[j]:
                    assigned[j] = of_type[:count].astype(np.int64)
            free -= set(assigned[j].tolist())
        limits = np.where(dice.random(state.n_jobs) < 0.5, np.inf, dice.uniform(0, 300, state.n_jobs))
        samples = limits if dice.random() < 0.8 else None
        restart_s = dice.uniform(0, 5, state.n_jobs) * (dice.random(state.n_jobs) < 0.3)
        not_before_us = state.time_us + dice.integers(0, 20 * SECOND, state.n_jobs) if dice.random() < 0.5 else None
        until_us = state.time_us + int(dice.integers(1, 20 * SECOND)) if dice.random() < 0.8 else None
        return Decision(
            np.array([each.size for each in assigned]),
            placement=Placement(tuple(assigned), partner if self.shares else None, restart_s),
            round=Round(until_us, samples, not_before_us, failed),
        )

    def _look(self, state: PolicyState) -> None:
        is_idle, seen = state.nodes.is_idle, Counter()
        assert is_idle.sum() == state.n_idle
        for j, job in enumerate(state.job.tolist()):
            held = state.nodes.held(j).tolist()
            assert len(held) == state.current[j]
            assert is_idle[held].all()
            assert len({int(state.nodes.node_type[k]) for k in held}) <= 1
            seen.update(held)
            assert self.most_done.get(job, 0.0) <= state.progress[j] <= state.work[j]
            self.most_done[job] = float(state.progress[j])
        assert max(seen.values(), default=0) <= (2 if self.shares else 1)


@st.composite
def _typed_logs(draw):
    types = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=6))
    busy = draw(st.sets(st.integers(0, len(types) - 1)))
    idle = set(range(len(types))) - busy
    changes = []
    for time_us in sorted(draw(st.lists(st.integers(1, _END_S * SECOND - 1), max_size=12, unique=True))):
        for node in sorted(draw(st.sets(st.integers(0, len(types) - 1), min_size=1))):
            idle ^= {node}
            changes.append((time_us / SECOND, node, node in idle))
    return typed_log(" ".join(types), _END_S, changes, busy)


@st.composite
def _typed_jobs(draw, types):
    rate = st.floats(0.0, 50.0)
    jobs = []
    for k in range(draw(st.integers(1, 5))):
        width = draw(st.integers(1, 3))
        suited = draw(st.lists(st.sampled_from(types), min_size=1, unique=True))
        rates = {name: (0.0, *draw(st.lists(rate, min_size=width, max_size=width))) for name in suited}
        jobs.append(
            typed_job(
                f"job{k}",
                rates,
                work=draw(st.floats(1.0, 2e3)),
                submit_s=draw(st.integers(0, 60)),
                min_nodes=draw(st.integers(1, width)),
                up_s=draw(st.floats(0.0, 10.0)),
                down_s=draw(st.floats(0.0, 10.0)),
                model=_MODELS[k % 2],
            )
        )
    return jobs


@st.composite
def _cases(draw):
    events = draw(_typed_logs())
    together = None
    if draw(st.booleans()):
        pairs = [(one, other) for one in _MODELS for other in _MODELS[: 1 + _MODELS.index(one)]]
        keys = [(*pair, n, name) for pair in pairs for n in (1, 2, 3) for name in events.node_types.names]
        rate = st.floats(0.0, 30.0)
        together = Colocation({key: (draw(rate), draw(rate)) for key in keys if draw(st.booleans())})
    jobs = JobSet(draw(_typed_jobs(events.node_types.names)), colocation=together)
    options = ReplaySettings(max_parallel=draw(st.integers(1, 4)), record_nodes=True, until_done=draw(st.booleans()))
    return events, jobs, draw(st.integers(0, 99)), draw(st.sampled_from(_WAKES_ON)), options


def _idle_spans(events):
    """When each node was idle, by brute force over the log."""
    spans, since = {name: [] for name in events.nodes}, {}
    for batch in events.batches():
        for t, node, state in zip(batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist(), strict=True):
            if state == NodeState.IDLE:
                since.setdefault(node, t)
            elif node in since:
                spans[events.nodes[node]].append((since.pop(node), t))
    for node, t in since.items():
        spans[events.nodes[node]].append((t, events.window_end_us))
    return spans


def _rows(result, name):
    table = result.table(name)
    columns = [
        table[column].cast("int64") if column in ("from", "to") else table[column] for column in table.column_names
    ]
    return [
        dict(zip(table.column_names, row, strict=True))
        for row in zip(*(column.to_pylist() for column in columns), strict=True)
    ]


@settings(deadline=None, max_examples=examples(60))
@given(case=_cases())
def test_random_decisions_leave_the_ledger_in_order(case):
    events, jobs, seed, wakes_on, options = case

    def replayed():
        policy = RandomPlacer(seed, wakes_on, jobs.colocation is not None)
        return replay_log(events, jobs, policy, options, efficiency=False, bound=False)

    result = replayed()  # a ledger that does not close has raised
    end_us = result.record["config"]["window_end_us"]
    ledger, by_name = result.summary["ledger"], {row["job"]: row for row in _rows(result, "jobs")}
    spans = _idle_spans(events)

    # node time: of the log, of the jobs, and of the tables
    labels = ("useful", "rescaling", "preempted", "stalled", "unallocated")
    assert all(ledger[f"{label}_node_us"] >= 0 for label in labels)
    idle_us = sum(max(0, min(b, end_us) - min(a, end_us)) for each in spans.values() for a, b in each)
    assert sum(ledger[f"{label}_node_us"] for label in labels) == ledger["idle_node_us"] == idle_us
    charged = Counter()
    for row in _rows(result, "allocations"):
        job = next(job for job in jobs if job.name == row["job"])
        assert row["count"] <= job.max_nodes
        charged[row["job"]] += row["count"] * node_charge_us(row.get("sharing", 0), row["from"], row["to"])
    for name, row in by_name.items():
        of_job = ("useful", "rescaling", "preempted", "stalled")
        assert sum(row[f"{label}_node_us"] for label in of_job) == charged[name]
        assert all(row[f"{label}_node_us"] >= 0 for label in of_job)
    node_rows = _rows(result, "nodes")
    assert sum(row["to"] - row["from"] for row in node_rows) == sum(charged.values()) == ledger["allocated_node_us"]
    last_us = dict.fromkeys(events.nodes, -1)
    for row in sorted(node_rows, key=lambda row: row["from"]):
        assert any(a <= row["from"] < row["to"] <= b for a, b in spans[row["node"]])
        assert row["from"] >= last_us[row["node"]]  # one holder at a time: of two that share, the first
        last_us[row["node"]] = row["to"]

    # samples
    for row in by_name.values():
        if row["status"] == "finished":
            assert row["done_samples"] == row["work_samples"]
        assert 0 <= row["done_samples"] <= row["work_samples"]
    assert np.isclose(sum(row["done_samples"] for row in by_name.values()), ledger["samples"], rtol=1e-9, atol=1e-6)

    again = replayed()
    assert again.summary == result.summary
    assert all(again.table(name).equals(result.table(name)) for name in ("allocations", "jobs", "nodes"))
