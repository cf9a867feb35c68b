"""Questions to the agent, and recorded answers."""
