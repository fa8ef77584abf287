"""Planning against deadlines: the fewest nodes that are enough for each job, and who gets the spare ones."""
