"""The desk: a thin Flask app that checks, stores the original, enqueues, and waits for a search."""

from flask_openapi3 import OpenAPI

from api import (
    annotator,
    answering,
    attachments,
    batches,
    collections,
    compare_page,
    documents,
    events,
    facets,
    failures,
    faq,
    feedback,
    health,
    invokers,
    memory,
    metrics,
    pages,
    ranking,
    searches,
    tasks,
    usage,
    versions,
    webhooks,
)
from api.bare import bare_app
from api.description import described


def create_app() -> OpenAPI:
    """The WSGI app; settings are the process's."""
    app = bare_app("api")
    for module in (
        *(collections, documents, versions, events, batches, webhooks, failures, tasks, facets),
        *(searches, answering, faq, invokers, annotator, feedback, memory, ranking, usage),
        *(attachments, health, metrics),
    ):
        app.register_api(module.blueprint)
    app.register_blueprint(pages.blueprint)
    app.register_blueprint(compare_page.blueprint)
    app.add_url_rule("/openapi.json", "openapi", lambda: described(app))
    return app
