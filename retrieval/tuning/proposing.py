"""Looks for better weights and further facets of a collection, from what the ledger has recorded.

This module changes nothing. A result has names of properties and numbers, and no text of documents
or questions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from callslip.config.settings import Settings
from callslip.errors import TuningError
from callslip.messages.options import Options
from callslip.retrieval.facets.discovery import PropertyProposal, discover
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.query.parameters import ranking_parameters
from callslip.retrieval.tuning.bootstrap import Estimate
from callslip.retrieval.tuning.examples import Example, Ranked, Weights, recorded
from callslip.retrieval.tuning.fit import Tuned, tune
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Ledger

MOST_SEARCHES = 20_000
"""The newest recorded searches that weights are fitted on: 30 s and .5 GB (docs/tuning.md)."""

LEAST_SCORE = 0.5
"""Coverage times evenness of a property that is proposed: on half of the passages at least."""

LEAST_SEPARATION = 0.05
"""The share of the vectors' variance that a proposed property explains; of a random one it is 0."""

MOST_FACETS = 3
"""The most facets of one proposal: a person must judge each."""

SHOWN = 10
"""The properties and clusters whose figures are recorded."""


@dataclass(frozen=True)
class Proposed:
    """The result of a run: `changes` of stored options, and their values `before`.

    Without changes `reason` says why there are none.
    """

    figures: Mapping[str, Any]
    changes: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


def better_ranking(ledger: Ledger, settings: Settings, record: CollectionRecord) -> Proposed:
    """Fit the ranking weights of a collection on its recorded outcomes, of all tenants together."""
    request = SearchRequest.model_validate({"collection": record.name, "query": ""})
    p = ranking_parameters(settings, record.options.ranking, request)
    weights = Weights(p.alpha, p.proximity, p.facets_weight, p.memory_weight)
    now = Ranked(weights, p.fusion)
    read = list(_examples(ledger, record.name, now))
    known = [example for example in read if example is not None]
    try:
        tuned = tune(known, now, biased=True)
    except TuningError as error:
        return Proposed({"searches": len(known), "now": asdict(weights)}, reason=_reason(error))
    figures = figures_of(tuned) | {"left_out": len(read) - len(known)}
    try:
        tuned.check()
    except TuningError as error:
        return Proposed(figures, reason=_reason(error))
    stored = _stored(record.options)
    ranking = stored.get("ranking", {}) | tuned.changes
    return Proposed(figures, {"ranking": ranking}, {"ranking": stored.get("ranking")})


def further_facets(
    ledger: Ledger, settings: Settings, store: Store, record: CollectionRecord, tenant: str
) -> Proposed:
    """Look for properties that divide a collection, without its facets and those declined."""
    known = settings.facets.of(record.options.facets)
    declined = {
        name
        for changes in ledger.proposals.declined("facets", record.name)
        for name in changes.get("facets", ())
    }
    result = discover(ledger, store, record.name, tenant, {*known, *declined})
    figures = {
        "sampled": result.sampled,
        "properties": [_figures(p) for p in result.properties[:SHOWN]],
        "clusters": [cluster.share for cluster in result.clusters[:SHOWN]],
    }
    good = [p.name for p in result.properties if _is_good(p)][:MOST_FACETS]
    if not good:
        reason = (
            "no further property is on half of the passages with evenly frequent values that their"
            " vectors tell apart"
        )
        return Proposed(figures, reason=reason)
    stored = _stored(record.options)
    facets = [*record.options.facets, *good]
    return Proposed(figures, {"facets": facets}, {"facets": stored.get("facets")})


def figures_of(tuned: Tuned) -> dict[str, Any]:
    """The weights of a fit and their gain on held-out questions, as JSON."""
    guard = tuned.off_policy
    return {
        "questions": tuned.questions,
        "searches": tuned.searches,
        "now": asdict(tuned.now),
        "proposed": asdict(tuned.proposed),
        "fitted": list(tuned.fitted),
        "before": round(tuned.before, 4),
        "after": round(tuned.after, 4),
        "gain": _rounded(tuned.gain),
        "off_policy": None if guard is None else {"eta": guard.eta, **_rounded(guard.change)},
    }


def _examples(ledger: Ledger, collection: str, now: Ranked) -> Iterator[Example | None]:
    """The searches with judged hits; None for a search with incomplete data."""
    for search in ledger.judged.newest(collection, MOST_SEARCHES):
        ranked_by = search.settings["alpha"], search.settings["fusion"]
        yield recorded(
            search.question,
            search.vector,
            search.basis,
            search.helped,
            search.explored,
            ranked_by,
            now,
        )


def _is_good(proposal: PropertyProposal) -> bool:
    return proposal.score >= LEAST_SCORE and proposal.separation >= LEAST_SEPARATION


def _figures(proposal: PropertyProposal) -> dict[str, Any]:
    names = ("name", "distinct", "coverage", "evenness", "separation")
    return {n: getattr(proposal, n) for n in names} | {"score": round(proposal.score, 4)}


def _stored(options: Options) -> dict[str, Any]:
    """The options as the ledger stores them."""
    return options.model_dump(mode="json", exclude_defaults=True)


def _reason(error: TuningError) -> str:
    return f"{error.slug}: {error.detail}"


def _rounded(estimate: Estimate) -> dict[str, float]:
    return {name: round(value, 4) for name, value in asdict(estimate).items()}
