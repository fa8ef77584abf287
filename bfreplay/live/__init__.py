"""Following a cluster as it runs: polls of its node states, the log of them, and the decisions made on it.

Nothing here acts on the cluster: it reads, decides, and shows what training would get.
"""
