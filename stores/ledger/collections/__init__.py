"""Collections and their tenants in the ledger, their moves, and receipts of their removal."""
