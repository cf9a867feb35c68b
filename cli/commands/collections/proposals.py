"""`callslip proposals`: better weights and further facets that wait for a yes."""

from typing import Any, get_args

import click

from callslip.cli.shared.options import collection_option
from callslip.cli.shared.output import as_json, emit, reporting, when
from callslip.cli.shared.server import connect, url_option
from callslip.client.requests import plain
from callslip.messages.ranking import ProposalMessage
from callslip.vocabulary import ProposalKind, ProposalState
from callslip.workers.local_settings import open_ledger, placed_settings


@click.group(name="proposals")
def proposals_group() -> None:
    """Better ranking weights and further facets that the scheduler proposes; you decide.

    Weekly, the weights of each collection are fitted on recorded outcomes (docs/tuning.md);
    monthly, properties are looked for that could be facets (docs/facets.md). Nothing changes
    without `accept`, unless the collection's option apply_proposals names the kind.

    \b
    Example:  callslip proposals list -c handbook
              callslip proposals accept 1f0c… -c handbook
    """


@proposals_group.command(name="list")
@collection_option
@click.option("--state", type=click.Choice(get_args(ProposalState)), help="Default: every state.")
@url_option
@as_json
@reporting
def list_command(
    collection: str, state: ProposalState | None, url: str | None, json_out: bool
) -> None:
    """Show the runs for a collection, newest first, and what they propose.

    \b
    Example:  callslip proposals list -c handbook --state waiting
    """
    with connect(url) as client:
        listed = plain(client.list_proposals(collection, state=state))
    if json_out:
        emit(listed)
        return
    for proposal in listed["proposals"]:
        show(proposal)
    if not listed["proposals"]:
        click.echo("Nothing yet. A run now:  callslip proposals run ranking -c " + collection)


@proposals_group.command()
@click.argument("proposal_id")
@collection_option
@url_option
@as_json
@reporting
def accept(proposal_id: str, collection: str, url: str | None, json_out: bool) -> None:
    """Apply a proposal: it sets the collection's options, and the next search goes by them.

    \b
    Example:  callslip proposals accept 1f0c… -c handbook
    """
    _decide(proposal_id, collection, url, accepted=True, json_out=json_out)


@proposals_group.command()
@click.argument("proposal_id")
@collection_option
@url_option
@as_json
@reporting
def decline(proposal_id: str, collection: str, url: str | None, json_out: bool) -> None:
    """Decline a proposal. A facet that was declined is not proposed again.

    \b
    Example:  callslip proposals decline 1f0c… -c handbook
    """
    _decide(proposal_id, collection, url, accepted=False, json_out=json_out)


@proposals_group.command()
@click.argument("kind", type=click.Choice(get_args(ProposalKind)))
@collection_option
@as_json
@reporting
def run(kind: ProposalKind, collection: str, json_out: bool) -> None:
    """Look for better weights (ranking) or further facets now, and record the proposal.

    The scheduler runs this command when a run is due. It works on the ledger directly, so run it
    where the workers run.

    \b
    Example:  callslip proposals run ranking -c handbook
              callslip proposals run facets -c handbook
    """
    from callslip.cli.shared.installation import open_context  # slow to import
    from callslip.tasks.proposals import look

    settings = placed_settings()
    open_ledger(settings).close()
    with open_context(settings) as context:
        look(context, kind, collection)
        (newest, *_) = [p for p in context.ledger.proposals.find(collection) if p.kind == kind]
    if json_out:
        emit(newest.__dict__)
    else:
        show(newest.__dict__)


def _decide(
    proposal_id: str, collection: str, url: str | None, *, accepted: bool, json_out: bool
) -> None:
    with connect(url) as client:
        decided = plain(
            client.decide_proposal(collection, proposal_id, "accept" if accepted else "decline")
        )
    if json_out:
        emit(decided)
    else:
        show(decided)


def show(proposal: dict[str, Any]) -> None:
    """Print a run: its state, its figures, and the options that it would set."""
    click.secho(f"{proposal['proposal_id']}  ", bold=True, nl=False)
    tenant = f" of tenant {proposal['tenant']}" if proposal["tenant"] else ""
    click.echo(f"{proposal['kind']}{tenant}, {when(proposal['began_at'])}: {proposal['state']}")
    for line in ProposalMessage.model_validate(proposal).in_words():
        click.echo(f"  {line}")
