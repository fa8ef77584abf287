"""What loading depends on is what the options say of themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.experiments.prepared_run import load_jobs_of, load_log
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.worker import Inputs, key_of
from tests.experiments.sweep.small_sweeps import options, write_files


class Watched:
    """Options that note which of them are looked at."""

    def __init__(self, given: RunOptions) -> None:
        self.given, self.seen = given, set()

    def __getattr__(self, name):
        self.seen.add(name)
        return getattr(self.given, name)


@pytest.fixture
def run(tmp_path) -> RunOptions:
    return options(write_files(tmp_path))


def test_loading_the_jobs_looks_at_the_options_that_say_so_and_at_no_other(run):
    watched = Watched(run)
    load_jobs_of(watched)
    assert watched.seen == {name for name, each in OPTIONS.items() if each.loads == "jobs"}


def test_loading_the_log_looks_at_the_options_that_say_so_and_at_no_other(run):
    watched = Watched(run)
    load_log(watched)
    assert watched.seen == {name for name, each in OPTIONS.items() if each.loads == "log"}


def test_a_run_that_differs_in_none_of_them_gets_what_was_loaded(run):
    inputs = Inputs(1, 1)
    assert inputs.jobs(run) is inputs.jobs(replace(run, t_fwd=77.0))
    assert inputs.log(run) is inputs.log(replace(run, t_fwd=77.0))


@pytest.mark.parametrize(("what", "changed"), [("jobs", {"allow_code": True}), ("log", {"node_type": "v100"})])
def test_a_run_that_differs_in_one_of_them_has_another_key(run, what, changed):
    assert key_of(replace(run, **changed), what) != key_of(run, what)
