"""How much is idle, and how much of it would training use? ``python examples/gallery/idle_time.py``."""

import matplotlib.pyplot as plt

import bfreplay

idle = bfreplay.describe("sample")
run = bfreplay.replay_log("sample", "sample", unlimited_work=True)
hours = run.summary.ledger.node_hours
print(f"{idle.idle_node_hours:,.0f} idle node-hours, {idle.idle_share:.1%} of all node-time")
print(f"Training uses {hours['useful'] / hours['idle']:.1%} of them; efficiency U = {run.u:.3f}")

parts = idle.to_frame()
trains = hours["useful"] * 3600 / idle.duration_s
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.fill_between(parts["start"], parts["least"], parts["most"], step="post", alpha=0.3, label="fewest to most idle")
axes.step(parts["start"], parts["mean"], where="post", label="idle nodes, mean")
axes.axhline(trains, color="tab:green", label="nodes that train, mean of the window")
axes.set(ylabel="nodes", ylim=(0, None), title="Idle nodes of the bundled log")
axes.legend(loc="upper left")
figure.autofmt_xdate()
figure.savefig("idle_time.png")
