"""Planning against deadlines: the fewest nodes a job needs to finish in time, who can be admitted, who may have more."""
