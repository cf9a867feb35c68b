"""The hint of a search or an answer that left out what is not in force."""

from typing import Any

import click

from callslip.messages.search import TimeClamp
from callslip.vocabulary import not_in_force


def tell_not_in_force(response: dict[str, Any], requested: str | None) -> None:
    """Print how many documents are not in force on the day of a response, if any are."""
    if documents := response.get("not_in_force"):
        day = TimeClamp.model_validate(response["as_of"]).day(requested)
        click.secho(not_in_force(documents, day, "--as-of any"), fg="yellow", err=True)
