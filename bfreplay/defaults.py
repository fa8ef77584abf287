"""Defaults that the command line and the Python API share."""

BUNDLED = "sample"
"""Name of the bundled log, of its jobs, and of made-up throughputs."""

T_FWD_S = 120.0
"""Forward-looking time: near the best value on the Summit log, and flat around it."""

MAX_PARALLEL = 10
"""Maximum number of jobs at once."""

CLEAR_S = 30.0
"""Seconds to clear a node of training: Slurm's default time between SIGTERM and SIGKILL (``KillWait``)."""

RESTART_S, WORK_SAVED_EVERY_S = 60.0, 600.0
"""What a change costs where rules of products are compared. No product publishes a restart time, and none has a default
checkpoint interval."""

LOG_TOLERANCE, WORST_NODES = "2s", 5
"""Of a comparison of two logs: the longest difference between the times of one change, and the nodes listed."""

TIME_LIMIT_S = 10.0
"""Time limit of a MILP back end per decision, as in the published program."""

MILP_FORMULATION = "choices_reduced"
"""Formulation for a MILP back end: the fastest on nearly all."""

NODE_PRICES = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
"""Dollars per GPU-hour by type: the spot prices of Gavel's program."""
