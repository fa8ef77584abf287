"""Rules by name."""

RULES = {
    "scavenger": "scavenger:Scavenger",
    "gang": "gang:Gang",
    "kueue": "kueue:Kueue",
}
"""Class of each rule, ``"module:Class"`` in this folder."""
