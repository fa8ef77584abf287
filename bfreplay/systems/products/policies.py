"""Rules by name."""

RULES = {
    "ray": "ray:RayTrain",
    "scavenger": "scavenger:Scavenger",
}
"""Class of each rule, ``"module:Class"`` in this folder."""
