"""Shared by all endpoints: problem responses, origins, uploads, OpenAPI document."""
