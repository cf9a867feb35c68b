"""What every app of ours has before anything is mounted: limits, problems, and who may call."""

from importlib import metadata

from flask_openapi3 import Info, OpenAPI

from api import key, origins
from api.messages import Problem
from api.problems import handle_problems, invalid
from config import get_settings
from config.settings import MEGABYTE

FORM_OVERHEAD = MEGABYTE
"""Room for the other fields and the boundaries of a multipart upload."""


def bare_app(name: str) -> OpenAPI:
    """An app without operations; settings are the process's."""
    app = OpenAPI(
        name,
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
    return app
