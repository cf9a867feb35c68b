"""The Tantivy full-text index that adds keyword search to a vector store."""
