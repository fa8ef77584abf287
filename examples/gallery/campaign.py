"""What happens to the trials of a search on idle nodes? ``python examples/gallery/campaign.py``."""

from pathlib import Path

import matplotlib.pyplot as plt

import bfreplay

SEARCH = """
[campaign]
trials = 60
parallel = 20

[pruner]
kind = "asha"

[trial]
epochs = 27
samples_per_epoch = 1_000_000
min_nodes = 1
max_nodes = 16
scale_up_cost_s = 20
scale_down_cost_s = 10
curve = "amdahl(rate_1=400, serial=0.02)"
"""
Path("search.toml").write_text(SEARCH)
run = bfreplay.replay_log("sample", "search.toml", max_parallel=20, efficiency=False)
trials = bfreplay.explain(run).to_frame()
hours = run.jobs[["useful_node_hours", "rescaling_node_hours"]].sum()
print(trials.groupby("status").size().to_dict())
print(f"{hours['useful_node_hours']:,.0f} node-hours of training; rescaling {hours['rescaling_node_hours']:,.1f}")

started = run.jobs["submitted"].min()
ends = trials.sort_values("ended")
after_h = (ends["ended"] - started).dt.total_seconds() / 3600
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for status, of_status in ends.groupby("status"):
    axes.scatter(after_h[of_status.index], of_status["last_score"], s=12, label=status)
reports = run.reports.sort_values("time")
best_after_h = (reports["time"] - started).dt.total_seconds() / 3600
axes.step(best_after_h, reports["score"].cummax(), where="post", color="black", label="best so far")
axes.set(xlabel="hours from the first trial", ylabel="simulated score", title="60 trials on idle nodes, pruned by ASHA")
axes.legend(loc="lower right")
figure.savefig("campaign.png")
