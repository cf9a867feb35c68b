"""What the tasks share: the broker, locks, replies, counters, and what is recorded."""
