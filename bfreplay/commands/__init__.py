"""The commands of ``bfreplay``, one file each: parse, call, print."""
