"""Figures: their definition and catalogue (``figure``), a module for each family, and shared parts."""
