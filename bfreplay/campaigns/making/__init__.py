"""Campaigns and job sets made from a few numbers: what ``bfreplay jobs make`` writes."""
