"""Numbered migrations of the ledger and of the conversations, run at start by Alembic.

`history.upgrade` compares the revision that a database records with the newest one of its history
and runs the revisions in between, each in a separate transaction and under a lock. No revision can
be downgraded: copy the data folder before an upgrade that may have to be undone.

To change a table:

1. Change its definition in `stores/ledger/base`.
2. Add `ledger/versions/rNNNN_WHAT.py` with the next number, `down_revision` and `upgrade()`. A
   revision never imports today's tables, because they change after it was written. It must be safe
   to run again. SQLite alters most things by a copy of the table: use `op.batch_alter_table`.
3. Set `newest` of the history in `history.py`, and the revision's `FINGERPRINT` to the value that
   `tests/unit/ledger/test_migrations.py` prints.
4. If an older Callslip cannot work with the new tables, raise `schema.SCHEMA_VERSION` and write it
   to `about.schema_version` in the revision: commits before revision 1 check nothing else.
"""
