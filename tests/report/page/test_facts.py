"""Numbers of a run on the page, worked by hand where the tables' own check cannot tell them apart."""

from __future__ import annotations

import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.runs.metrics import key_figures
from tests.replay.tiny import SECOND, log
from tests.runs.explain.little_source import LittleHalving


@pytest.mark.parametrize("start_s", [0, 100])
def test_times_are_counted_from_the_start_of_the_window_wherever_it_lies(start_s):
    events = log(4, [], 200, range(4)).between(start_s * SECOND, (start_s + 60) * SECOND)
    facts = key_figures(replay_log(events, LittleHalving(), EqualSharePolicy(), bound=False))
    # t2 ends with the best score; t0 was pruned and t1 crashed before, and t3 ends at the same time
    assert (facts["best.job"].value, facts["best.score"].value) == ("t2", 8.0)
    assert [facts[key].value for key in ("best.after_s", "done_s", "dedicated.done_s")] == [23.75] * 3
    assert facts["window.duration_s"].value == 60
