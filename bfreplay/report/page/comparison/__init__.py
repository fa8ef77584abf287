"""The part of the page about several runs that compares them: its pictures, its tables, its sections."""
