"""Rules by name."""

RULES = {
    "scavenger": "scavenger:Scavenger",
}
"""Class of each rule, ``"module:Class"`` in this folder."""
