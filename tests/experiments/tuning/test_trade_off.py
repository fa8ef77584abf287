"""Training against delay to batch jobs: the knee, and a tuning that weighs them."""

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.tuning.trade_off import knee_of
from bfreplay.experiments.tuning.tuner import tune
from bfreplay.report.figures.tuning import trade_off_points, tuning_figure
from bfreplay.result_folders.tuning import Tuning
from tests.experiments.tuning.little_logs import BORDER, END, START


@pytest.mark.parametrize(
    ("share", "delay", "knee"),
    [
        ([1.0, 0.9, 0.5], [20.0, 10.0, 8.0], 1),  # 10 % of the training for 50 % of the delay
        ([1.0, 0.9, 0.85], [20.0, 18.1, 16.9], 0),  # about as much for as much: by chance
        ([0.5, 1.0, 0.2], [20.0, 20.0, 1.0], 1),  # leaving some alone may even help training
        ([1.0, 0.5], [0.0, 0.0], 0),
        ([0.0, 0.0], [3.0, 1.0], 0),
        ([1.0], [3.0], 0),
    ],
)
def test_the_knee_spares_more_than_it_costs(share, delay, knee):
    assert knee_of(np.array(share), np.array(delay)) == knee


def test_each_point_is_the_run_by_itself(files):
    found = tune(
        "events.csv",
        "jobs.csv",
        t_fwd=[20, 300],
        max_parallel=[1, 3],
        train=2 / 3,
        min_age=["2min", 360],
        clear="10s",
        out="tuned",
    )
    weighed = found.record.trade_off
    assert [(p.reserve, p.min_age_s) for p in weighed.points] == [(0, a) for a in (0.0, 120.0, 360.0)]
    for part, window in (("tuning", (START, BORDER)), ("validation", (BORDER, END))):
        samples = []
        for point in weighed.points:
            run = RunOptions(
                events="events.csv",
                jobs="jobs.csv",
                window=window,
                t_fwd=found.recommended.t_fwd,
                clear=10,
                max_parallel=found.recommended.max_parallel,
                unlimited_work=True,
                efficiency=False,
                bound=False,
                reserve=point.reserve,
                min_age=point.min_age_s,
            ).run()
            assert point.delay_node_hours[part] == run.summary.batch_starts.delay_node_hours
            samples.append(run.summary.ledger.samples)
        assert [p.share[part] for p in weighed.points] == pytest.approx([each / max(samples) for each in samples])
    # n3 flaps every 5 minutes: idle for 6 minutes at least is never it, and only it is ever taken
    assert weighed.points[0].delay_node_hours["tuning"] > 0
    assert weighed.points[2].delay_node_hours["tuning"] == 0
    assert weighed.points[weighed.knee].min_age_s == 360.0
    assert found.answer[-1].startswith("To spare batch jobs, add --min-age 360s: they start 0 node-hours late, not ")
    assert "360 s is the largest --min-age tried, and the best to spare batch jobs: try more." in found.warnings
    assert Tuning.load("tuned").record == found.record
    assert trade_off_points(weighed, "tuning")[2][1] == 0.0
    assert len(tuning_figure(found.record).axes) == 3


def test_without_values_to_try_nothing_is_weighed(files):
    found = tune("events.csv", "jobs.csv", t_fwd=[20], max_parallel=[1], train=2 / 3)
    assert found.record.trade_off is None
    assert len(found.answer) == 2
    assert len(tuning_figure(found.record).axes) == 2


def test_bad_values_are_refused(files):
    with pytest.raises(InputError, match="reserve has a duplicate value"):
        tune("events.csv", "jobs.csv", t_fwd=[20], max_parallel=[1], reserve=[1, 1])
