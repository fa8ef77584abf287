"""Published systems as policies on the same replay: a folder each, all of one shape.

A folder ``systems/NAME/`` has

- ``__init__``: ``SYSTEM``, the names of all that the system adds; a line in ``registry.py`` registers the folder;
- ``trace``: its traces of jobs, read as a ``JobSet``, and a test whether a file is one;
- ``throughputs``: its measured rates of jobs by node type, and ``made_up_throughputs`` to try it without its files;
- ``policies``: its policies by name, each made from the options of a run;
- ``quirks``: differences of its published program from its paper, each off by default.

Parts of one system only are in the same folder: Gavel's ``shares`` and ``rounds``, Shockwave's ``planner`` and the
rules by which its jobs change. ``trace_lines`` reads the format that all their traces have. ``products`` has the rules
that products ship, a module each, and no traces.

A folder imports from below only (replay, policies, milp). Shockwave, which is based on Gavel, also uses Gavel's rounds,
shares and throughputs; nothing in Gavel's folder knows of Shockwave.
"""
