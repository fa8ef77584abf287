"""Models and decisions as files that other programs read."""
