"""Attaches a context to a Flask app, and returns it to the app's endpoints."""

from typing import cast

from flask import Flask, current_app, g

from callslip.readers import Reader
from callslip.tasks.composition import Context

EXTENSION = "callslip"
"""The context's key in `app.extensions`."""


def hand_to(app: Flask, context: Context) -> None:
    """Attach the context to an app."""
    app.extensions[EXTENSION] = context


def context_of(app: Flask) -> Context:
    """The context that is attached to an app, which sees everything."""
    return cast(Context, app.extensions[EXTENSION])


def set_reader(reader: Reader | None) -> None:
    """Limit the context of the request to what its caller may read; None may read everything."""
    g.reader = reader
    g.pop("limited", None)


def current() -> Context:
    """The context of the app that answers the request, as far as the request's caller may read.

    RuntimeError outside of a request.
    """
    whole, reader = context_of(current_app), cast(Reader | None, g.get("reader"))
    if reader is None:
        return whole
    if "limited" not in g:
        g.limited = whole.for_reader(reader)
    return cast(Context, g.limited)
