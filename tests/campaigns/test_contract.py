"""Campaigns keep the contract that is asked of strangers' sources."""

import sys
from pathlib import Path

import pytest

from bfreplay.campaigns.load import load_campaign
from bfreplay.testing import JobSourceContract

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CAMPAIGN = """[campaign]
trials = 24
seed = 3
parallel = 9
arrival = "poisson"
per_hour = 40
start_after_s = 300
[campaign.budget]
node_hours = 500
hours = 20
[trial]
epochs = 9
samples_per_epoch = 20_000
min_nodes = 1
max_nodes = 6
scale_up_cost_s = 20
scale_down_cost_s = 5
curve = "0:0 1:30 6:130"
[retries]
failures_per_epoch = 0.03
"""
SEARCH = "[search.lr]\nlow = 1e-5\nhigh = 0.1\nlog = true\n[search.layers]\nlow = 2\nhigh = 8\nwhole = true\n"
PRUNERS = {
    "none": "",
    "asha": '[pruner]\nkind = "asha"\n',
    "successive-halving": '[pruner]\nkind = "successive-halving"\neta = 2\n',
    "median": '[pruner]\nkind = "median"\nwarmup_trials = 3\n',
    "optuna": SEARCH + '[optuna]\nsampler = "tpe"\n[pruner]\nkind = "optuna"\n',
}


@pytest.mark.often("none", "asha", "median", "successive-halving")
@pytest.mark.parametrize("kind", PRUNERS)
class TestCampaigns(JobSourceContract):
    @pytest.fixture(autouse=True)
    def _choose(self, kind, tmp_path_factory):
        self.file = tmp_path_factory.mktemp("campaign") / "campaign.toml"
        self.file.write_text(CAMPAIGN + PRUNERS[kind])

    def make(self):
        return load_campaign(self.file)


class TestTheExample(JobSourceContract):
    @pytest.fixture(autouse=True)
    def _choose(self, monkeypatch):
        monkeypatch.syspath_prepend(EXAMPLES)
        from own_job_source import Bisection

        self.source = Bisection
        yield
        sys.modules.pop("own_job_source")
