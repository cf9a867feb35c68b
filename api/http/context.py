"""Attaches a context to a Flask app, and returns it to the app's endpoints."""

from typing import cast

from flask import Flask, current_app

from callslip.tasks.composition import Context

EXTENSION = "callslip"
"""The context's key in `app.extensions`."""


def hand_to(app: Flask, context: Context) -> None:
    """Attach the context to an app."""
    app.extensions[EXTENSION] = context


def context_of(app: Flask) -> Context:
    """The context that is attached to an app."""
    return cast(Context, app.extensions[EXTENSION])


def current() -> Context:
    """The context of the app that answers the request; RuntimeError outside of a request."""
    return context_of(current_app)
