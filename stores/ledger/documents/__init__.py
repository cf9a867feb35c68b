"""Documents, versions, chunks, collections and the leases of their steps."""
