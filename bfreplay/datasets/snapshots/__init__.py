"""Snapshots of a cluster: what a scheduler says of every node at one moment, and the changes between such moments."""
