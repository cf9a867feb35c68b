"""How many machines a number of documents, changes and searches needs, and what limits it."""
