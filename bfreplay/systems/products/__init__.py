"""Rules by which products size jobs, as policies: what an elasticity rule loses against a proven optimum.

Each rule is a module; ``rule`` has what all share. A rule counts nodes and nothing else: none looks at throughput,
objective or cost. It brings no costs of its own but waits that are part of it; restarts and checkpoints are those of
the jobs, or of the run (``--restart-cost``, ``--work-saved-every``, ``--saves``).
"""

from bfreplay.registry import PublishedSystem

RULES = {
    "scavenger": "scavenger:Scavenger",
    "ray": "ray:RayTrain",
    "torchrun": "torchrun:Torchrun",
    "gang": "gang:Gang",
    "kueue": "kueue:Kueue",
    "horovod": "horovod:Horovod",
}
"""Class of each rule, ``"module:Class"`` in this folder."""

SYSTEM = PublishedSystem(
    name="products",
    policies={name: f"bfreplay.systems.products.{location}" for name, location in RULES.items()},
)
