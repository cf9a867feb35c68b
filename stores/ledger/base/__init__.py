"""The database of the ledger: connection, tables, rows and records, locks, the fair queue."""
