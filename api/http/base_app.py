"""Makes a Flask app with what every app shares: limits, problem responses and access checks."""

from importlib import metadata

from flask_openapi3 import Info, OpenAPI

from callslip.api.http import access, admission, headers, origins
from callslip.api.http.client_json import ClientJson
from callslip.api.http.context import hand_to
from callslip.api.http.problems import handle_problems, invalid
from callslip.api.messages.documents import Problem
from callslip.config.settings import MEGABYTE
from callslip.tasks.composition import Context

FORM_OVERHEAD = MEGABYTE
"""Room for the other fields and the boundaries of a multipart upload."""


def base_app(name: str, context: Context) -> OpenAPI:
    """Make an app without operations, whose endpoints work with the context."""
    app = OpenAPI(
        name,
        template_folder="page/templates",
        static_folder="page/static",
        info=Info(title="Callslip", version=metadata.version("callslip")),
        doc_ui=False,
        validation_error_status=400,
        validation_error_model=Problem,
        validation_error_callback=invalid,
    )
    app.url_map.merge_slashes = False  # a path with `//` is unknown instead of a redirect as HTML
    hand_to(app, context)
    settings = context.settings
    app.config["MAX_CONTENT_LENGTH"] = settings.api.max_upload_mb * MEGABYTE + FORM_OVERHEAD
    app.config["MAX_FORM_MEMORY_SIZE"] = FORM_OVERHEAD
    app.json = ClientJson(app)
    access.record(app)  # first, so that it records what the others refuse
    handle_problems(app)
    headers.guard(app)
    origins.guard(app)
    admission.guard(app)
    return app
