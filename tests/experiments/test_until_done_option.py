"""``--until-done``: a run on a log that ends with its jobs."""

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.worker import Inputs
from tests.experiments.tuning.little_logs import START, write_jobs, write_log


@pytest.fixture
def options(tmp_path):
    events, jobs = write_log(tmp_path / "events.csv"), write_jobs(tmp_path / "jobs.csv")
    return lambda **given: RunOptions(events=events, jobs=jobs, **given)


def test_the_run_ends_with_its_jobs_and_has_neither_u_nor_a_bound(options):
    whole, run = options().run(), options(until_done=True).run()
    assert run.record.config.until_done
    assert not whole.record.config.until_done
    assert run.summary.last_finish_us == whole.summary.last_finish_us == run.record.config.window_end_us
    assert run.record.config.window_end_us < whole.record.config.window_end_us
    assert run.summary.efficiency is run.summary.bound is None
    assert None not in (whole.summary.efficiency, whole.summary.bound)


def test_options_without_effect_say_so(options):
    reasons = options(until_done=True).without_effect()
    assert reasons["bound"] == reasons["efficiency"] == "with --until-done: U and the upper bound are not computed"
    assert "efficiency" not in options(until_done=True, learn_curves="job").without_effect()  # the cost of learning
    on_cluster = RunOptions(cluster="v100=2", jobs="sample", until_done=True).without_effect()
    assert on_cluster["until_done"] == "with --cluster: such a run ends with its jobs"
    assert "until_done" not in options(until_done=True).without_effect()
    in_rounds = {"policy": "gavel.max_min_fairness"}
    assert "t_fwd" not in options(**in_rounds).without_effect()  # of the dedicated nodes for U
    assert "t_fwd" in options(until_done=True, **in_rounds).without_effect()


def test_work_that_never_ends_does_not_end_a_run(options):
    with pytest.raises(InputError, match="unlimited work never ends"):
        options(until_done=True, unlimited_work=True)


def test_the_windows_of_a_log_are_parts_of_one_that_is_loaded_once(options, monkeypatch):
    inputs, run = Inputs(1, 1), options()
    whole = inputs.log(run)
    part = inputs.log(options(window=(START, "2024-05-01T01:00:00")))
    assert part._source is whole._source
    assert part.window_end_us - part.window_start_us == 3_600_000_000
    assert inputs.log(run) is whole
