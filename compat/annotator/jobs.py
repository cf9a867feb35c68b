"""The jobs that workers run for the endpoints of the annotator."""

import base64
from typing import Any

from callslip.compat.annotator.retriever import fitted
from callslip.tasks.composition import Context


def fit(context: Context, request: dict[str, Any]) -> dict[str, str]:
    """Vectorize texts; return the matrix and the database of the chunks, both in base64.

    `request["texts"]` is a list of pairs of a document's id and its text.
    """
    texts = [(file_id, text) for file_id, text in request["texts"]]
    matrix, database = fitted(texts, context.settings.annotator)
    return {
        "matrix": base64.b64encode(matrix).decode(),
        "database": base64.b64encode(database).decode(),
    }
