"""What every command that writes a folder of results does alike: it appears whole or not at all, and is read again."""
