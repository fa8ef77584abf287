"""The log in two parts: one is tuned on, the other tells what the recommendation is worth."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay import checks
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """A window of the log, in microseconds since the epoch; ``end_us`` is outside."""

    start_us: int
    end_us: int

    @property
    def duration_s(self) -> float:
        """Its length."""
        return (self.end_us - self.start_us) / _SECOND_US

    @property
    def window(self) -> tuple[str, str]:
        """As ``RunOptions`` takes it."""
        return iso_utc(self.start_us), iso_utc(self.end_us)


def split(start_us: int, end_us: int, train: float) -> tuple[Part, Part]:
    """The first ``train`` of a window, and the rest; together they are the window, and they share no moment.

    The border is a whole second where one lies inside.

    Raises
    ------
    InputError
        ``train`` leaves nothing for one of them.
    """
    share = checks.number("train", train, above=0, most=1)
    border = start_us + round(share * (end_us - start_us))
    whole = border - border % _SECOND_US
    border = whole if whole > start_us else border
    if not start_us < border < end_us:
        raise InputError(
            "train leaves nothing to tune on, or nothing to validate on", column="train", value=train,
            expected="a share of the log between 0 and 1", fix="two thirds (0.67) is a good start",
        )  # fmt: skip
    return Part(start_us, border), Part(border, end_us)
