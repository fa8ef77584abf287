"""What the published programs left behind, as inputs for a repetition and as the results that it should have."""
