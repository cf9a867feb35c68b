"""The Document Retriever alone, as gunicorn finds it: neither queue nor ledger stand behind it."""

from flask import Response
from flask_openapi3 import APIBlueprint, OpenAPI, Tag

from api import annotator, messages
from api.answers import answer
from api.bare import bare_app
from api.description import described
from callslip import __version__

health = APIBlueprint("health", __name__, abp_tags=[Tag(name="health")])


@health.get("/healthz", responses={200: messages.Health})
def healthz() -> Response:
    """The annotator is alive."""
    return answer(messages.Health(status="ok", version=__version__))


def create_app() -> OpenAPI:
    """The WSGI app; settings are the process's."""
    app = bare_app("annotator")
    app.register_api(annotator.blueprint)
    app.register_api(health)
    app.add_url_rule("/openapi.json", "openapi", lambda: described(app))
    return app
