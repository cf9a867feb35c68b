"""Pydantic models as JSON responses."""

from flask import Response
from pydantic import BaseModel


def answer(message: BaseModel, status: int = 200) -> Response:
    """Make a response with the message as its body."""
    return Response(message.model_dump_json(), status, content_type="application/json")
