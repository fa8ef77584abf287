"""BFTrainer's decision on nodes of several types: each job gets a number of nodes of one type."""
