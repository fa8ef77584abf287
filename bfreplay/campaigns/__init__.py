"""Campaigns of trials: what an HPO or NAS user submits, as a source of jobs.

docs/own-proposer.md shows how to write a proposer, which chooses the hyper-parameters of each trial.
"""

from bfreplay.campaigns.load import is_campaign, load_campaign
from bfreplay.campaigns.source import CampaignSource

__all__ = ["CampaignSource", "is_campaign", "load_campaign"]
