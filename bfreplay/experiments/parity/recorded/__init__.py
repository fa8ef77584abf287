"""Records of the published programs: inputs and expected results of a rerun."""
