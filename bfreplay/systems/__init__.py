"""Published systems as policies on the same replay: a room each, all of one shape.

A room ``systems/NAME/`` has

- ``__init__``: ``SYSTEM``, which says by name what the system adds; a line in ``registry.py`` makes the room known;
- ``trace``: its traces of jobs, read as a ``JobSet`` (and written), and how a file is recognised as one;
- ``throughputs``: its measured rates of jobs by node type, and ``made_up_throughputs`` to try it without its files;
- ``policies``: its policies by name, each made from the options of a run;
- ``quirks``: where its published program differs from its paper, each difference off unless it is asked for.

What is particular to a system stands beside these: Gavel's ``shares`` and ``rounds``, Shockwave's ``planner`` and the
rules by which its jobs change. ``trace_lines`` reads the format that all their traces have.

A room imports what is below it (replay, policies, milp). Shockwave, which grew out of Gavel, also takes Gavel's rounds,
shares and throughputs from there; nothing in Gavel's room knows of Shockwave.
"""
