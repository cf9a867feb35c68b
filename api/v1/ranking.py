"""/v1/collections/{name}/ranking and /proposals: parameters, examples, and what might be better."""

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import Field

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller, check_whole, note
from callslip.api.messages.ranking import (
    Decision,
    ExamplesQuery,
    JudgedSearchLine,
    OfState,
    ProposalMessage,
    ProposalsMessage,
    RankingMessage,
)
from callslip.api.v1.collections import CollectionPath
from callslip.errors import BrokerDown
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.query.parameters import ranking_parameters
from callslip.stores.ledger import JudgedSearch, Ledger, Proposal
from callslip.tasks import facets

blueprint = APIBlueprint("ranking", __name__, abp_tags=[Tag(name="ranking")])

LINES = "application/x-ndjson"

LONGEST_NAME = 256
"""Characters of the name of a caller who decides."""


@blueprint.get("/v1/collections/<string:name>/ranking", responses={200: RankingMessage})
def show_ranking(path: CollectionPath) -> Response:
    """The ranking parameters of a collection: its options, or the settings."""
    check_whole(path.name)
    options = current().ledger.collections.get(path.name).options
    request = SearchRequest.model_validate({"collection": path.name, "query": ""})
    parameters = ranking_parameters(current().settings, options.ranking, request)
    return answer(RankingMessage.model_validate(parameters.__dict__))


@blueprint.get(
    "/v1/collections/<string:name>/ranking/examples",
    responses={
        200: {
            "description": "a line of JSON for each search",
            "content": {LINES: {"schema": JudgedSearchLine.model_json_schema()}},
        }
    },
)
def list_examples(path: CollectionPath, query: ExamplesQuery) -> Response:
    """Recorded searches with judged hits, of all tenants, newest first, for `tune`.

    The lines contain ids and numbers, and no text of a question or a document.
    """
    check_whole(path.name)
    current().ledger.collections.get(path.name)
    return Response(_lines(current().ledger, path.name, query.limit), content_type=LINES)


class ProposalPath(CollectionPath):
    proposal_id: str = Field(max_length=32, description="the proposal")


@blueprint.get("/v1/collections/<string:name>/proposals", responses={200: ProposalsMessage})
def list_proposals(path: CollectionPath, query: OfState) -> Response:
    """Runs that looked for better weights and further facets, newest first, with their proposals.

    They are about the documents of every reader and tenant.
    """
    check_whole(path.name)
    current().ledger.collections.get(path.name)
    states = () if query.state is None else (query.state,)
    runs = current().ledger.proposals.find(path.name, states=states, limit=query.limit)
    return answer(ProposalsMessage(proposals=[proposal_message(each) for each in runs]))


@blueprint.post(
    "/v1/collections/<string:name>/proposals/<string:proposal_id>", responses={200: ProposalMessage}
)
def decide_proposal(path: ProposalPath, body: Decision) -> Response:
    """Apply a proposal to the options of the collection, or decline it.

    The same decision again changes nothing. 409 if the proposal does not wait, or if the options
    have changed since.
    """
    decided = decide(path.name, path.proposal_id, accept=body.decision == "accept")
    return answer(proposal_message(decided))


def decide(collection: str, proposal_id: str, *, accept: bool) -> Proposal:
    """Accept or decline a proposal as the caller; a worker makes the vectors of new facets."""
    check_whole(collection)
    note(proposal_id=proposal_id)
    by = caller()
    who = by.user or f"{by.kind}:{by.name}"
    decided = current().ledger.proposals.decide(
        collection, proposal_id, accept=accept, by=who[:LONGEST_NAME]
    )
    record = current().ledger.collections.get(collection)
    if accept and decided.kind == "facets" and record.embedder == current().embedder.model:
        names = current().settings.facets.of(record.options.facets)
        tenants = current().ledger.tenants.all(collection) if record.schema.tenants else [""]
        with suppress(BrokerDown):  # the periodic rebuild makes them
            for tenant in tenants:
                facets.request_rebuild(collection, tenant, names)
    return decided


def proposal_message(proposal: Proposal) -> ProposalMessage:
    """The message of a run."""
    return ProposalMessage.model_validate(proposal.__dict__)


def _lines(ledger: Ledger, collection: str, limit: int) -> Iterator[str]:
    for search in ledger.judged.newest(collection, limit):
        yield _line(search).model_dump_json() + "\n"


def _line(search: JudgedSearch) -> JudgedSearchLine:
    vector = None if search.vector is None else search.vector.astype("<f2").tobytes()
    fields: dict[str, Any] = {
        "question": search.question,
        "vector": vector and base64.b64encode(vector).decode(),
        "alpha": search.settings["alpha"],
        "fusion": search.settings["fusion"],
        "explored": search.explored,
        "helped": search.helped,
        "basis": search.basis,
    }
    return JudgedSearchLine.model_validate(fields)
