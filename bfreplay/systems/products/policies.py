"""Rules by name."""

RULES = {
    "horovod": "horovod:Horovod",
    "scavenger": "scavenger:Scavenger",
    "torchrun": "torchrun:Torchrun",
}
"""Class of each rule, ``"module:Class"`` in this folder."""
