"""The service of the keyword index beside Chroma: one process has the folder for all machines.

Every call needs the key of the settings; `stores.fulltext.wire` is the protocol.
"""

import re
from collections.abc import Callable
from functools import partial

from flask import Flask, Response, request

from callslip.api.http import access
from callslip.api.http.context import hand_to
from callslip.api.http.problems import NOT_JSON, handle_problems
from callslip.config import get_settings
from callslip.config.settings import MEGABYTE, Settings
from callslip.errors import CollectionNotFound, InvalidRequest, KeyRefused, SettingsError
from callslip.keys import bearer, fits
from callslip.stores.fulltext import wire
from callslip.stores.fulltext.index import KeywordFolder, KeywordIndex
from callslip.tasks.composition import Context
from callslip.workers.observing import set_up_log

LARGEST_MB = 64
"""The largest body of a call. A client sends at most `service.BYTES_PER_CALL` and some more."""

ALIVE = "healthz"

_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)?")


def serve() -> Flask:
    """Make the WSGI app from this process's settings, and set up the log."""
    settings = get_settings()
    set_up_log(settings, "keyword")
    return create_app(settings)


def create_app(settings: Settings) -> Flask:
    """Make the WSGI app. Raises SettingsError without a key."""
    if settings.keyword.key is None:
        raise SettingsError("keyword.key is not set.", hint="Set CALLSLIP_KEYWORD__KEY_FILE.")
    key, folder = settings.keyword.key.get_secret_value(), KeywordFolder(settings.index_dir)
    app = Flask("callslip.api.keyword_wsgi", static_folder=None)
    hand_to(app, Context(settings))
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_MB * MEGABYTE
    access.record(app)
    handle_problems(app)

    @app.before_request
    def _check() -> None:
        token = bearer(request.headers.get("Authorization"))
        if request.endpoint != ALIVE and not fits(token, key):
            raise KeyRefused("the service needs keyword.key as a bearer token")

    def index_of(name: str) -> KeywordIndex:
        if not _NAME.fullmatch(name):
            raise InvalidRequest("an index has a name of a-z, 0-9, -, _ and at most one dot")
        return folder.of(name, name, lambda: CollectionNotFound("there is no such index"))

    app.add_url_rule("/healthz", ALIVE, lambda: Response(status=204))
    app.add_url_rule(wire.READY, "ready", lambda: Response(status=204))
    for call in wire.CALLS:
        path = wire.PATH.format(name="<name>", call=call)
        app.add_url_rule(path, call, partial(_perform, index_of, call), methods=["POST"])
    return app


def _perform(index_of: Callable[[str], KeywordIndex], call: str, name: str) -> Response:
    index, arguments = index_of(name), request.get_json()
    if not isinstance(arguments, dict):
        raise InvalidRequest(f"the body {NOT_JSON}")
    try:
        result = wire.CALLS[call](index, arguments)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequest(f"the arguments of {call} have another form") from error
    return Response(wire.dump({wire.RESULT: result}), content_type="application/json")
