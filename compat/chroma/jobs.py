"""The job that a worker runs to attach a Chroma collection: it has the embedder at hand."""

from typing import Any

from callslip.tasks.composition import Context


def embed(context: Context, request: dict[str, Any]) -> list[list[float]]:
    """Embed the `texts` as passages by the embedder whose name is `model`."""
    resources = context.resources
    chosen = resources.embedder
    if resources.previous is not None and resources.previous.model == request["model"]:
        chosen = resources.previous
    vectors: list[list[float]] = chosen.passages(request["texts"]).tolist()
    return vectors
