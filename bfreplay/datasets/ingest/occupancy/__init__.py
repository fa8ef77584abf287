"""Node events from a schedule: intervals on nodes in, states of nodes over time out.

Every log format yields three tables: *job intervals* (a job holds these nodes, or a number of nodes, from start to
end), *outage intervals* (these nodes are down, draining, reserved, off, from start to end) and the *inventory* of
nodes. Readers (``ingest``) fill them; this package makes ``NodeEvents`` of them, by explicit rules.
"""
