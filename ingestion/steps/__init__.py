"""The ingestion steps of a document; each step reads the artifacts of earlier steps."""
