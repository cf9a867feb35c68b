"""The web page: search, answers, comparison, documents, passages."""
