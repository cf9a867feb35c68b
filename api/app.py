"""The desk: a thin Flask app that checks, stores the original, enqueues, and waits for a search."""

from importlib import metadata

from flask_openapi3 import Info, OpenAPI

from api import (
    answering,
    batches,
    collections,
    documents,
    events,
    facets,
    failures,
    feedback,
    health,
    invokers,
    key,
    memory,
    metrics,
    origins,
    pages,
    ranking,
    searches,
    tasks,
    usage,
    versions,
    webhooks,
)
from api.description import described
from api.messages import Problem
from api.problems import handle_problems, invalid
from config import get_settings
from config.settings import MEGABYTE

FORM_OVERHEAD = MEGABYTE
"""Room for the other fields and the boundaries of a multipart upload."""


def create_app() -> OpenAPI:
    """The WSGI app; settings are the process's."""
    app = OpenAPI(
        "api",
        info=Info(title="Callslip", version=metadata.version("callslip")),
        doc_ui=False,
        validation_error_status=400,
        validation_error_model=Problem,
        validation_error_callback=invalid,
    )
    settings = get_settings()
    app.config["MAX_CONTENT_LENGTH"] = settings.api.max_upload_mb * MEGABYTE + FORM_OVERHEAD
    app.config["MAX_FORM_MEMORY_SIZE"] = FORM_OVERHEAD
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    handle_problems(app)
    origins.guard(app)
    key.guard(app)
    for module in (
        *(collections, documents, versions, events, batches, webhooks, failures, tasks, facets),
        *(searches, answering, invokers, feedback, memory, ranking, usage, health, metrics),
    ):
        app.register_api(module.blueprint)
    app.register_blueprint(pages.blueprint)
    app.add_url_rule("/openapi.json", "openapi", lambda: described(app))
    return app
