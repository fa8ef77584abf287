"""Is a policy better than another, and is the difference real? ``python examples/gallery/compare_policies.py``."""

import matplotlib.pyplot as plt

import bfreplay

POLICIES = ("bftrainer", "look-ahead", "equal-share")
runs = [
    bfreplay.replay_log("sample", "sample", policy, unlimited_work=True, efficiency=False, bound=False)
    for policy in POLICIES
]
found = bfreplay.compare(*runs)
for answer in found.answers:
    print(answer)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
labels = ("useful", "rescaling", "preempted")
below = [0.0] * len(runs)
for label in labels:
    hours = [run.jobs[f"{label}_node_hours"].sum() for run in runs]
    left.bar(POLICIES, hours, bottom=below, label=label)
    below = [low + high for low, high in zip(below, hours, strict=True)]
left.set(ylabel="node-hours held", title="Where the node-hours went")
left.legend(loc="lower right")
pairs = found.to_frame()
error = abs(pairs[["low", "high"]].sub(pairs["relative"], axis=0).T * 100)
right.errorbar(POLICIES[1:], pairs["relative"] * 100, yerr=error.to_numpy(), fmt="o", capsize=6)
right.axhline(0, color="black", linewidth=0.8)
right.set(ylabel="samples against bftrainer, %", title="Difference with its 95 % interval")
right.margins(x=0.5)
figure.savefig("compare_policies.png")
