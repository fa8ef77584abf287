"""The published program's pickles, read without running their code."""
