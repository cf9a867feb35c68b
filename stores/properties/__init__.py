"""Properties of documents: their types, terms, filters and checks."""
