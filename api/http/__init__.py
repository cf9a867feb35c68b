"""Shared by all endpoints: problem responses, the API key, origins, uploads, OpenAPI document."""
