"""The HTTP server: a thin Flask app that checks requests, stores originals, enqueues and waits."""

from flask_openapi3 import APIBlueprint, OpenAPI

from callslip.api.http import csrf
from callslip.api.http.base_app import base_app
from callslip.api.http.description import serve_description
from callslip.api.identity.guard import guard
from callslip.api.page import chunk_pages, editing, login, pages, proposals, refusals
from callslip.api.v1 import (
    batches,
    collections,
    documents,
    events,
    facets,
    failures,
    feedback,
    files,
    health,
    memory,
    metrics,
    ranking,
    searches,
    tasks,
    usage,
    versions,
    webhooks,
)
from callslip.api.v1.answers import answering, recorded_answers
from callslip.api.v1.chunks import preview
from callslip.api.v1.chunks import routes as chunks
from callslip.tasks.adapters import blueprints
from callslip.tasks.composition import Context


def create_app(context: Context) -> OpenAPI:
    """Make the WSGI app for a context, with the endpoints of every installed adapter."""
    app = base_app("callslip.api", context)
    guard(app)
    csrf.guard(app)
    for module in (
        *(collections, documents, files, versions, events, batches, webhooks, failures, tasks),
        *(chunks, preview),
        *(facets, searches, answering, recorded_answers),
    ):
        app.register_api(module.blueprint)
    for blueprint in blueprints():
        if isinstance(blueprint, APIBlueprint):
            app.register_api(blueprint)
        else:
            app.register_blueprint(blueprint)
    for module in (feedback, memory, ranking, usage, health, metrics):
        app.register_api(module.blueprint)
    app.register_blueprint(pages.blueprint)
    app.register_blueprint(chunk_pages.blueprint)
    app.register_blueprint(editing.blueprint)
    app.register_blueprint(proposals.blueprint)
    app.register_blueprint(login.blueprint)
    refusals.show(app)
    serve_description(app)
    return app
