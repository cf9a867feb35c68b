"""One system each: what a user of it would write. Each runs in its own environment."""
