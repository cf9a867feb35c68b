"""Documents, versions, chunks and the leases of their steps."""
