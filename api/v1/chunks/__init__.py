"""/v1/documents/{id}/chunks and /corrections, and previews of cuts."""
