"""API keys, their usage, the audit log, and the secrets of sessions."""
