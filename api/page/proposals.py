"""The page at /page/proposals: better weights and further facets that wait for a yes.

It needs no JavaScript.
"""

from datetime import UTC, datetime

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as Redirect

from callslip.api.http.context import current
from callslip.api.identity.current import caller, check_whole
from callslip.api.v1.ranking import decide, proposal_message
from callslip.errors import CallslipError

blueprint = Blueprint("proposals", __name__)


@blueprint.get("/page/proposals")
def page() -> Response:
    """List the runs for the collection of the query string, newest first."""
    return _page(request.args.get("collection", ""))


@blueprint.post("/page/proposals")
def decide_on_page() -> Response | Redirect:
    """Accept or decline a proposal, as the form says, and show the list again."""
    collection, proposal_id = (request.form.get(n, "") for n in ("collection", "proposal_id"))
    try:
        decide(collection, proposal_id, accept=request.form.get("decision") == "accept")
    except CallslipError as error:
        return _page(collection, error)
    return redirect(url_for("proposals.page", collection=collection), 303)


@blueprint.app_template_filter("moment")
def _moment(seconds: float) -> str:
    """A time in UTC, such as `2026-11-25 02:17 UTC`."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


@blueprint.app_template_global("waiting_proposals")
def waiting_proposals(collection: str) -> int | None:
    """The number of proposals that wait; None for a caller who may not decide."""
    who = caller()
    if not who.may("admin") or who.tenants is not None or not who.sees(collection, ""):
        return None
    return len(current().ledger.proposals.find(collection, states=("waiting",)))


def _page(collection: str, error: CallslipError | None = None) -> Response:
    proposals = []
    try:
        check_whole(collection)
        name = current().ledger.collections.get(collection).name
        proposals = [proposal_message(each) for each in current().ledger.proposals.find(name)]
    except CallslipError as problem:
        error = error or problem
    markup = render_template(
        "proposals.html", collection=collection, proposals=proposals, error=error
    )
    return make_response(markup, error.status if error else 200)
