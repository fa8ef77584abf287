"""Which forward-looking time, and how many jobs at once? ``python examples/gallery/tune.py``."""

import matplotlib.pyplot as plt

import bfreplay

found = bfreplay.tune("sample", "sample", t_fwd=[10, 30, 120, 300, 1200], max_parallel=[5, 10, 20])
print(*found.answer)

table = found.to_frame().query("part == 'tuning'")
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for max_parallel, of_jobs in table.groupby("max_parallel"):
    axes.plot(of_jobs["t_fwd"].astype(float), of_jobs["share"] * 100, marker="o", label=f"{max_parallel} jobs at once")
t_fwd, max_parallel = found.recommended
axes.axvline(float(t_fwd), color="black", linestyle=":", label=f"recommended: {t_fwd:g} s, {max_parallel} jobs")
axes.set(xscale="log", xlabel="forward-looking time, s", ylabel="samples, % of the best")
axes.legend()
figure.savefig("tune.png")
