"""The Document Retriever alone as a WSGI application: it uses neither the queue nor the ledger."""

from flask import Response
from flask_openapi3 import APIBlueprint, OpenAPI, Tag

from callslip import __version__
from callslip.api.http import csrf
from callslip.api.http.base_app import base_app
from callslip.api.http.description import serve_description
from callslip.api.http.json_response import answer
from callslip.api.identity.guard import guard
from callslip.api.messages import documents
from callslip.config import get_settings
from callslip.tasks.adapters import blueprints
from callslip.tasks.composition import Context

health = APIBlueprint("health", __name__, abp_tags=[Tag(name="health")])


@health.get("/healthz", responses={200: documents.Health})
def healthz() -> Response:
    """The annotator is alive."""
    return answer(documents.Health(status="ok", version=__version__))


def create_app() -> OpenAPI:
    """Make the WSGI app from this process's settings; the process vectorizes without a broker."""
    app = base_app("callslip.api.annotator_wsgi", Context(get_settings(), local=True))
    guard(app, with_ledger=False)
    csrf.guard(app)
    for blueprint in blueprints("annotator"):
        app.register_api(blueprint)
    app.register_api(health)
    serve_description(app)
    return app
