"""Figures of one run or of several: for each what it shows as numbers, as a picture, and on the page."""
