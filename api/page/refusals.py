"""Shows a browser as a page what the server refuses before an endpoint can answer."""

import json

from flask import Flask, Response, render_template, request
from flask_openapi3 import APIBlueprint
from werkzeug.exceptions import NotFound

from callslip import errors
from callslip.api.http.problems import MEDIA_TYPE, accepts_html, of_http, problem


def show(app: Flask) -> None:
    """Let the app show problems as pages, except where a browser opens the API's own paths."""

    @app.errorhandler(404)
    def _no_page(error: NotFound) -> Response:
        """An address that leads nowhere: for a browser it is called a page."""
        if not accepts_html():
            return of_http(error)
        return problem(errors.NotFound(f"there is no page {request.path}"))

    @app.after_request
    def _as_page(response: Response) -> Response:
        blueprint = app.blueprints.get(request.blueprint or "")
        of_api = request.endpoint is not None and isinstance(blueprint, APIBlueprint | None)
        if response.content_type == MEDIA_TYPE and accepts_html() and not of_api:
            error = json.loads(response.get_data())
            response.set_data(render_template("problem.html", error=error))
            response.content_type = "text/html; charset=utf-8"
        return response
