"""Policy that learns which nodes are reclaimed together, and how often."""
