"""What the stores that are servers share: when a server hangs, starts, or sends garbage."""
