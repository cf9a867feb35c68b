"""`callslip ask`: a question to the agent, its answer with citations; conversations."""

import math
import sys
from typing import Any

import click

from callslip.cli.shared.conditions import conditions
from callslip.cli.shared.not_in_force import tell_not_in_force
from callslip.cli.shared.options import as_of_option, collection_option
from callslip.cli.shared.output import as_json, emit, reporting, shortened
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.models import Answer, NodeMessage
from callslip.client.requests import plain
from callslip.messages.search import Pages, TimeClamp
from callslip.vocabulary import STAGES, certainty_of, share_right

SHOWN = 300
"""The most characters of a quotation."""


@click.command(name="ask")
@click.argument("question")
@collection_option
@click.option("--tenant", help="Whose documents, in a collection with tenants.")
@click.option(
    "-t",
    "--thread",
    "thread_id",
    help="A conversation: `and for twins?` leans on what came before.",
)
@click.option("-w", "--where", multiple=True, metavar="CONDITION", help="As in `callslip search`.")
@as_of_option
@click.option("--no-model", is_flag=True, help="Sentences of the documents alone.")
@url_option
@as_json
@reporting
def ask_command(
    question: str,
    collection: str,
    tenant: str | None,
    thread_id: str | None,
    where: tuple[str, ...],
    as_of: str | None,
    no_model: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Answer a question from the documents, with citations, or say that they do not.

    \b
    Example:  callslip ask "how long is parental leave?"
              callslip ask "출산 장려금은 얼마인가요?" --thread grant
              callslip ask "쌍둥이는요?" --thread grant
              callslip ask "who approves travel?" --as-of 2024-12-31 -w doc_type=policy
    """
    request = {
        "collection": collection,
        "question": question,
        "tenant": tenant,
        "thread_id": thread_id,
        "as_of": as_of,
        "having_all": conditions(where) or None,
        "model": False if no_model else None,
    }
    with connect(url) as client:
        answer = _followed(client, {k: v for k, v in request.items() if v is not None}, json_out)
    if json_out:
        emit(answer)
    else:
        _tell(answer, as_of)


def _followed(client: Client, request: dict[str, Any], silent: bool) -> dict[str, Any]:
    """Return the answer; meanwhile show the current stage in a line on standard error."""
    shown = not silent and sys.stderr.isatty()
    for message in client.answer_stream(**request, timeout=math.inf):
        if isinstance(message, Answer):
            if shown:
                click.echo("\r\033[K", nl=False, err=True)
            answer: dict[str, Any] = plain(message)
            return answer
        if shown and isinstance(message, NodeMessage) and (stage := STAGES.get(message.node)):
            again = f", try {message.attempt + 1}" if message.attempt else ""
            click.echo(f"\r\033[K{stage}{again} …", nl=False, err=True)
    raise click.ClickException("the server ended the answer early; ask again")


def _tell(answer: dict[str, Any], requested: str | None) -> None:
    if answer["understood"] != answer["question"]:
        click.secho(f"Understood as: {answer['understood']}", dim=True, err=True)
    if (as_of := answer["as_of"])["at"] and as_of["source"] != "default":
        day = TimeClamp.model_validate(as_of).day(requested)
        click.secho(f"In force on {day}", dim=True, err=True)
    tell_not_in_force(answer, requested)
    if answer["model_left_out"]:
        click.secho(
            f"Without the language model: {answer['model_left_out']}", fg="yellow", err=True
        )
    click.echo(answer["text"])
    click.echo()
    for citation in answer["citations"] or answer["nearest"]:
        click.secho(f"[{citation['number']}] {citation['title']}", bold=True, nl=False)
        version = f"  (version {citation['version']})" if citation["version"] else ""
        pages = f", {Pages(**citation['pages']).short()}" if citation.get("pages") else ""
        click.echo(f"  {citation['heading']}{pages}{version}")
        if citation.get("within"):
            click.secho(f"    in {citation['within']}", dim=True)
        if citation.get("source_url"):
            click.secho(f"    {citation['source_url']}", dim=True)
        click.echo(f"    {shortened(citation['quote'], SHOWN)}")
    verdict = answer["verdict"]
    tried = len(answer["attempts"]) - 1
    more = f", after {tried} other attempt{'s' if tried > 1 else ''}" if tried else ""
    confidence, approved = verdict["confidence"], verdict["approved"]
    by_model = answer["written_by"] == "model"
    share = share_right(confidence, approved=approved, by_model=by_model)
    certainty = ", ".join(filter(None, (certainty_of(confidence, approved=approved), share)))
    line = f"{certainty} ({verdict['reason']}{more})"
    click.secho(f"\n{line}; trace {answer['trace_id']}", dim=True, err=True)


@click.command(name="conversation")
@click.argument("thread_id")
@collection_option
@click.option("--tenant", default="", help="Whose, in a collection with tenants.")
@click.option("--delete", is_flag=True, help="Forget it.")
@url_option
@as_json
@reporting
def conversation_command(
    thread_id: str, collection: str, tenant: str, delete: bool, url: str | None, json_out: bool
) -> None:
    """Show the questions and answers of a `--thread`, or delete them.

    \b
    Example:  callslip conversation grant
              callslip conversation grant --delete
    """
    with connect(url) as client:
        call = client.delete_conversation if delete else client.get_conversation
        conversation = plain(call(collection, thread_id, tenant=tenant))
    if json_out:
        emit(conversation)
        return
    for turn in conversation["turns"]:
        click.secho(turn["question"], bold=True)
        if turn["understood"] != turn["question"]:
            click.secho(f"  Understood as: {turn['understood']}", dim=True)
        click.echo(f"  {turn['text']}\n")
    if delete:
        click.secho("Forgotten.", err=True)
