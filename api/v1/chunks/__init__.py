"""/v1/documents/{id}/chunks and /corrections, and /v1/collections/{name}/chunks:preview."""
