"""What does a change of a job's nodes cost? ``python examples/gallery/change_costs.py``."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import bfreplay

# one job on three nodes; a fourth comes after 300 s, and one is reclaimed after 900 s
job = bfreplay.ElasticJob(
    name="job",
    submit_us=0,
    min_nodes=1,
    max_nodes=4,
    start_cost_s=60,
    scale_up_cost_s=40,
    scale_down_cost_s=30,
    restart="pause",
    work_saved_every_s=400,
    work_samples=float("inf"),
    throughput=bfreplay.TabulatedCurve((0, 1, 2, 3, 4), (0.0, 1.0, 1.9, 2.7, 3.4)),
)


idle, busy = bfreplay.NodeState.IDLE, bfreplay.NodeState.BUSY
log = bfreplay.NodeEvents.from_arrays(
    *(["a", "b", "c", "d"], [idle, idle, idle, busy]),  # nodes, and their states at first
    *([300_000_000, 900_000_000], [3, 0], [idle, busy]),  # microseconds, nodes, states
    *(0, 1_300_000_000),
)


def samples_at(seconds: float) -> float:
    """Samples of the job that count after so many seconds."""
    run = bfreplay.replay_log(log.between(0, int(seconds * 1e6)), [job], "equal-share", with_tables=False)
    return run.summary.ledger.samples


seconds = np.arange(5, 1301, 5)
samples = [samples_at(float(t)) for t in seconds]

# the bundled jobs, with one cost after another
costs: dict[str, dict[str, Any]] = {
    "as the job files say": {},
    "a change pauses 60 s": {"restart_cost": 60},
    "... 120 s": {"restart_cost": 120},
    "60 s, checkpoint every 2 min": {"restart_cost": 60, "work_saved_every": 120},
    "... every 10 min": {"restart_cost": 60, "work_saved_every": 600},
    "... neighbouring nodes": {"restart_cost": 60, "work_saved_every": 600, "placement": "runs"},
    "... reclaim-aware": {"restart_cost": 60, "work_saved_every": 600, "policy": "reclaim-aware"},
    "... saved before changes, 30 s notice": {
        **{"restart_cost": 60, "work_saved_every": 600, "policy": "reclaim-aware"},
        **{"saves": "on-resize", "notice": True},
    },
}
runs = {
    label: bfreplay.replay_log("sample", "sample", unlimited_work=True, bound=False, **options)
    for label, options in costs.items()
}
for label, run in runs.items():
    hours = run.summary.ledger.node_hours
    print(f"{label:<40}{hours.useful / hours.idle:7.1%} of the idle node-hours useful, {hours.repeated:5.0f} repeated")

figure, (progress, bars) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained", width_ratios=(5, 6))
progress.plot(seconds, samples)
for at, text, place in (
    (30, "start: 60 s", (0, 900)),
    (320, "rescale: 40 s, and the\nwork since the last\ncheckpoint is lost", (480, 120)),
    (915, "reclaim: 30 s,\nwork lost", (960, 800)),
):
    point = (at, float(np.interp(at, seconds, samples)))
    progress.annotate(text, point, place, arrowprops={"arrowstyle": "->"})
progress.set(xlabel="seconds", ylabel="samples that count", title="One job on 3, 4 and 3 nodes", ylim=(0, None))
left = np.zeros(len(runs))
names = {"useful": "tab:blue", "rescaling": "orange", "preempted": "tab:red", "repeated": "darkred"}
for name, colour in names.items():
    shares = np.array(
        [100 * run.summary.ledger.node_hours[name] / run.summary.ledger.node_hours.idle for run in runs.values()]
    )
    bars.barh(list(runs), shares, left=left, label=name, color=colour)
    left += shares
bars.invert_yaxis()
bars.set(xlabel="% of the idle node-hours", title="The bundled log, one cost after another")
bars.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.4, -0.32))
figure.savefig("change_costs.png")
