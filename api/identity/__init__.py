"""Who calls the API, and what the caller may do: keys, tokens, sessions, limits, the audit log."""
