"""Numbers of a tuning as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def seconds(t_fwd: float | str) -> str:
    """``300 s``, or ``auto``."""
    return t_fwd if isinstance(t_fwd, str) else f"{t_fwd:g} s"


def percent(share: float) -> str:
    """``97.6`` of 0.976, ``0.5`` of 0.005, ``0.04`` of 0.0004: as many decimals as a difference needs."""
    value = 100 * share
    if value == 0:
        return "0"
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2g}" if abs(value) >= 0.005 else f"{value:.1g}"


def said(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
