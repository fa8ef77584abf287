"""Agreement of two logs of one machine, node by node, and the rules by which they differ."""
