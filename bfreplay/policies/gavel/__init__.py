"""Gavel (OSDI'20): heterogeneity-aware policies that give every job a share of time on every node type, in rounds."""
