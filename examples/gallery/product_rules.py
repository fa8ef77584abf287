"""What does the elasticity rule of a product cost? ``python examples/gallery/product_rules.py``."""

import matplotlib.pyplot as plt

import bfreplay

found = bfreplay.compare_rules("sample", "sample")
print(found.answer)

runs = found.table
runs["share"] *= 100
shares = runs.groupby("rule", sort=False)["share"].agg(["first", "max"])
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.barh(shares.index, shares["max"], color="#0072B2", label="best setting tried")
axes.barh(shares.index, shares["first"], color="#C9CFD8", label="at its defaults")
others = ~shares.index.str.startswith("products.")
axes.barh(shares.index[others], shares["max"][others], color="#009E73", label="knows curves and costs")
axes.invert_yaxis()
axes.set(xlim=(0, 100), xlabel="% of the upper bound with free rescaling")
axes.legend()
figure.savefig("product_rules.png")
