"""Rules by name."""

RULES = {
    "scavenger": "scavenger:Scavenger",
    "ray": "ray:RayTrain",
    "torchrun": "torchrun:Torchrun",
    "gang": "gang:Gang",
    "kueue": "kueue:Kueue",
    "horovod": "horovod:Horovod",
}
"""Class of each rule, ``"module:Class"`` in this folder."""
