"""Describes in the OpenAPI document how a key is sent.

A program sends `Authorization: Bearer KEY`. A browser asks its user, and sends the key as the
password of HTTP Basic.
"""

from typing import Any

from callslip.config.settings import Settings

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic", "description": "the key as password"},
}


def describe(document: dict[str, Any], settings: Settings) -> None:
    """Describe in an OpenAPI document how the key is sent, and which operations require it."""
    document.setdefault("components", {})["securitySchemes"] = SCHEMES
    if settings.api.key is None:
        return
    document["security"] = [{name: []} for name in SCHEMES]
    for path in {"/healthz", "/readyz"} & document["paths"].keys():
        document["paths"][path]["get"]["security"] = []
