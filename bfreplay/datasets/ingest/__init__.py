"""Readers of scheduler logs, a room for each format, behind one protocol (``reader``).

What all of them use: ``log_file`` (files as sites have them), ``delimited`` (rows of text with separators), ``clock``
(local times to UTC), ``hostlists`` (lists of nodes), ``json_stream``. ``catalogue`` says which readers there are,
``read_log`` is the way in.
"""
