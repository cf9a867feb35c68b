"""How a file, or a document that is in, would be cut; nothing is stored."""
