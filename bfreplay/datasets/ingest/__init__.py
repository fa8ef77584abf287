"""Readers of scheduler logs: one thin file a format, behind one protocol."""
