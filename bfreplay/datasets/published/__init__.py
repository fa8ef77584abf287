"""The published program's pickles, read without running what a pickle says."""
