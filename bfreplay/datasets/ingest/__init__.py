"""Readers of scheduler logs, one module or folder per format, behind one protocol (``reader``).

Shared modules: ``log_file`` (files, compressed or in archives), ``delimited`` (rows of text with separators),
``local_times`` (local times to UTC), ``hostlists`` (lists of nodes), ``json_stream``. ``catalogue`` lists the readers,
``read_log`` is the entry point.
"""
