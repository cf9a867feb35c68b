"""The trace of a search, and the record of it that later outcomes refer to."""
