"""Small random decisions on several types, and their optimum by trying everything and by other solvers."""

from __future__ import annotations

import itertools

import highspy
import numpy as np
import pulp
from hypothesis import strategies as st

from bfreplay.milp.typed.problem import NO_TYPE, TypedProblem

NO_NODES = (NO_TYPE, 0)


def worth_by_hand(problem: TypedProblem, j: int, kind: int, count: int) -> float:
    """What job j is worth, from the definition and not from the table."""
    held, here = int(problem.current[j]), int(problem.current_type[j])
    up, down = float(problem.scale_up_loss[j]), float(problem.scale_down_loss[j])
    if count == 0:
        return float(problem.gain[j, 0, 0]) - (down if held else 0.0)
    loss = 0.0
    if held and kind != here:
        loss = up + down
    elif count > held:
        loss = up
    elif count < held:
        loss = down
    return float(problem.gain[j, kind, count]) - loss


def choices_by_hand(problem: TypedProblem, j: int) -> list[tuple[int, int]]:
    """Every (type, count) that job j may have."""
    found = [NO_NODES]
    for kind, room in enumerate(problem.capacity.tolist()):
        most = min(int(problem.max_nodes[j]), room)
        found += [(kind, count) for count in range(int(problem.min_nodes[j]), most + 1)]
    return found


def optimum_by_enumeration(problem: TypedProblem) -> float:
    choices = [choices_by_hand(problem, j) for j in range(problem.n_jobs)]
    best = -np.inf
    for answer in itertools.product(*choices):
        used = np.zeros(problem.n_types + 1, int)  # the last for those without nodes
        for kind, count in answer:
            used[kind] += count
        if (used[:-1] <= problem.capacity).all():
            best = max(best, sum(worth_by_hand(problem, j, *each) for j, each in enumerate(answer)))
    return best


def optimum_by_highs(problem: TypedProblem) -> float:
    """The whole model, unreduced, by HiGHS."""
    chosen = [(j, *each) for j in range(problem.n_jobs) for each in choices_by_hand(problem, j)]
    highs = highspy.Highs()
    for name, value in (("output_flag", False), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0), ("threads", 1)):
        highs.setOptionValue(name, value)
    y = [highs.addBinary(obj=-worth_by_hand(problem, *each)) for each in chosen]
    for j in range(problem.n_jobs):
        highs.addConstr(sum(y[i] for i, each in enumerate(chosen) if each[0] == j) == 1)
    for kind, room in enumerate(problem.capacity.tolist()):
        uses = [each[2] * y[i] for i, each in enumerate(chosen) if each[1] == kind]
        if uses:
            highs.addConstr(sum(uses) <= room)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return -highs.getInfo().objective_function_value


def optimum_by_cbc(problem: TypedProblem) -> float:
    """Another model, by CBC through PuLP: whole numbers of nodes, and which of them is worth what by choice."""
    model = pulp.LpProblem("typed", pulp.LpMaximize)
    used: dict[int, list[pulp.LpAffineExpression]] = {kind: [] for kind in range(problem.n_types)}
    worth = []
    for j in range(problem.n_jobs):
        y = {
            each: pulp.LpVariable(f"y_{j}_{each[0] + 1}_{each[1]}", cat="Binary")
            for each in choices_by_hand(problem, j)
        }
        model += pulp.lpSum(y.values()) == 1
        worth += [worth_by_hand(problem, j, *each) * y[each] for each in y]
        for kind in used:
            nodes = pulp.LpVariable(f"n_{j}_{kind}", 0, int(problem.max_nodes[j]), cat="Integer")
            model += nodes == pulp.lpSum(each[1] * y[each] for each in y if each[0] == kind)
            used[kind].append(nodes)
    for kind, room in enumerate(problem.capacity.tolist()):
        model += pulp.lpSum(used[kind]) <= room
    model.setObjective(pulp.lpSum(worth))
    assert model.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0.0)) == pulp.LpStatusOptimal
    return float(pulp.value(model.objective))


@st.composite
def typed_problems(draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 3, max_nodes: int = 4) -> TypedProblem:
    """Dents, values that tie, minima above 1, jobs that hold too few nodes or are where they are worth nothing."""
    n_jobs, n_types = draw(st.integers(1, max_jobs)), draw(st.integers(1, max_types))
    capacity = [draw(st.integers(0, max_nodes)) for _ in range(n_types)]
    width = draw(st.integers(2, max_nodes + 2))
    scale = draw(st.sampled_from([1.0, 1e-3, 1e6]))
    number = st.integers(-5, 12).map(lambda n: n * scale)
    row = st.lists(number, min_size=width - 1, max_size=width - 1).map(lambda values: [0.0, *values])
    gain = np.array([[draw(row) for _ in range(n_types)] for _ in range(n_jobs)])
    low = [draw(st.integers(1, width - 1)) for _ in range(n_jobs)]
    high = [draw(st.integers(least, width - 1)) for least in low]
    current, kinds, left = [], [], list(capacity)
    for most in high:
        kind = draw(st.integers(0, n_types - 1))
        held = draw(st.integers(0, min(left[kind], most)))
        left[kind] -= held
        current.append(held)
        kinds.append(kind if held else NO_TYPE)
    loss = st.integers(0, 6).map(lambda n: n * scale)
    problem = TypedProblem(
        np.array(current),
        np.array(kinds),
        np.array(low),
        np.array(high),
        gain,
        np.array([draw(loss) for _ in range(n_jobs)]),
        np.array([draw(loss) for _ in range(n_jobs)]),
        np.array(capacity),
    )
    problem.validate()
    return problem


def drawn(seed: int, n_jobs: int, capacity: list[int], *, elastic: bool, alike: bool = False) -> TypedProblem:
    """A decision of realistic shape: jobs of 1 to 8 nodes that are faster on some types; ``alike``: of 10 models."""
    rng = np.random.default_rng(seed)
    n_types, width = len(capacity), 9
    model = rng.integers(0, 10, n_jobs) if alike else np.arange(n_jobs)
    n_models = int(model.max()) + 1
    rate = (rng.uniform(1, 30, n_models)[:, None] * rng.uniform(0.1, 1, (n_models, n_types)))[model]
    power = rng.uniform(0.5, 1.0, n_models)[model]
    gain = 120 * rate[:, :, None] * np.arange(width) ** power[:, None, None]
    gang = rng.choice([1, 2, 4, 8], n_jobs, p=[0.7, 0.1, 0.15, 0.05])
    low, high = (np.ones(n_jobs, np.int64), np.full(n_jobs, 8)) if elastic else (gang, gang)
    current, kinds, left = np.zeros(n_jobs, np.int64), np.full(n_jobs, NO_TYPE), list(capacity)
    for j in rng.permutation(n_jobs).tolist():
        kind, held = int(rng.integers(n_types)), int(rng.integers(low[j], high[j] + 1))
        if held <= left[kind]:
            current[j], kinds[j] = held, kind
            left[kind] -= held
    now = gain[np.arange(n_jobs), np.maximum(kinds, 0), current] / 120
    return TypedProblem(current, kinds, low, high, gain, 20 * now, 10 * now, np.array(capacity))


def two_jobs(**changes: object) -> TypedProblem:
    """Two v100 (type 0) and two k80 (type 1); job 0 holds both v100, on which job 1, which has none, is far better.

    Job 0 makes 10 a node on v100 and 9 on k80, job 1 makes 30 and 1. Moving costs job 0 2 + 1. The best is to move it:
    18 - 3 + 60 = 75; 20 + 2 = 22 if everybody stays.
    """
    fields: dict = {
        "current": np.array([2, 0]),
        "current_type": np.array([0, NO_TYPE]),
        "min_nodes": np.array([1, 1]),
        "max_nodes": np.array([2, 2]),
        "gain": np.array([[[0.0, 10, 20], [0, 9, 18]], [[0, 30, 60], [0, 1, 2]]]),
        "scale_up_loss": np.array([2.0, 0.0]),
        "scale_down_loss": np.array([1.0, 0.0]),
        "capacity": np.array([2, 2]),
    }
    return TypedProblem(**{**fields, **changes})
