"""``python -m bfreplay``: the same as the command ``bfreplay``."""

from bfreplay.cli import main

main(prog_name="bfreplay")
