"""TF-IDF for keywords and exact comparison of vectors: a store in files, without a server."""
