"""Jobs of the API on the chunks of a document, which ingest workers run."""
