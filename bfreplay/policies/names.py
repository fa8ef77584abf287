"""The policies of bfreplay itself: the only list of them."""

from __future__ import annotations

from collections.abc import Mapping

BUILT_IN: Mapping[str, tuple[str, str]] = {
    "bftrainer": ("bfreplay.policies.bftrainer:BFTrainerPolicy", "'bftrainer'"),
    "look-ahead": (
        "bfreplay.policies.look_ahead:LookAheadPolicy",
        "'look-ahead' (plans for pools like those seen so far)",
    ),
    "equal-share": ("bfreplay.policies.equal_share:EqualSharePolicy", "'equal-share'"),
    "foresight": ("bfreplay.policies.look_ahead:ForesightPolicy", "'foresight(events=10)' (knows the log)"),
}
"""Class by name, ``"module:Class"``, imported when first used; and its words in the help of ``--policy``."""

HELP = "; ".join(words for _, words in BUILT_IN.values())
