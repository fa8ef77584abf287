"""placeholder: the main session writes this file."""
