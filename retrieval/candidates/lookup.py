"""Candidate lookup: search with both retrievers, search the facet branch, keep live chunks."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace

from callslip.errors import KeywordsDown, StoreDown
from callslip.retrieval.candidates import branches
from callslip.retrieval.candidates.branches import Branch, CandidateList
from callslip.retrieval.candidates.calibration import ScoreCalibration
from callslip.retrieval.candidates.chunk_reader import ChunkReader
from callslip.retrieval.candidates.fusion_weight import UNKNOWN, FusionWeight, choose
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.candidates.retrieved import Candidates, Retrieved, is_full
from callslip.retrieval.candidates.spelling import Spelling
from callslip.retrieval.facets.weights import Weights, weights
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.timings import Timings
from callslip.stores.contract import Store
from callslip.stores.fusion import Candidate, Scale, fuse
from callslip.stores.ledger.documents.chunks import Seen
from callslip.stores.properties.filters import Where

ROUNDS = 3
"""The maximum number of searches for one question while new versions go live."""


def of_hotset(
    resources: Resources, plan: Plan, query: Query, timings: Timings
) -> Candidates | None:
    """Return the hotset's chunks for this question; None if it does not answer the search."""
    hotset = resources.hotset
    if query.vector is None or not hotset.may_answer(plan):
        return None
    with timings.stage("hotset"):
        store = resources.store_of(plan.record.store)
        ledger, analyzer = resources.ledger, resources.analyzer_of(plan.record)
        try:
            hot = hotset.answer(ledger, store, plan, query.vector, query.terms, analyzer)
        except StoreDown:
            return None
    if hot is None:
        return None
    candidates, reader = hot
    weight = FusionWeight(_alpha(query))
    return Candidates(candidates, weight, corpus_version(resources, plan), hotset=reader)


def corpus_version(resources: Resources, plan: Plan) -> int:
    """The corpus version of the tenant or collection that is searched."""
    return resources.ledger.events.corpus_version(plan.collection, plan.tenant)


def respell(
    resources: Resources, plan: Plan, query: Query, version: int, timings: Timings
) -> Query:
    """Return the query with its words in the spelling of the passages of this corpus version.

    A sample of only a part of the collection does not show every spelling, so there the keyword
    retriever searches for the question's own spelling too.
    """
    if plan.nothing or plan.record.attached or plan.parameters.fusion != "calibrated":
        return query
    with timings.stage("spelling"):
        try:
            calibration = _calibration(resources, plan, version)
        except StoreDown:
            return query
        analyze = resources.analyzer_of(plan.record).analyze
        topic = Spelling(calibration, analyze).of(plan.analyzed)
        if topic == plan.analyzed:
            return query
        terms = analyze(topic)
        own = Counter(query.terms.split()) - Counter(terms.split())
        part = calibration.sample < calibration.passages
        keywords = " ".join((terms, *own.elements())) if part else terms
    return replace(query, terms=terms, keywords=keywords)


def find_candidates(
    resources: Resources, plan: Plan, query: Query, version: int, timings: Timings
) -> Candidates:
    """Return the candidates of both retrievers.

    They may come from the result cache if the collection still has this corpus version. If the
    store does not answer and its keyword retriever is local, that one answers alone; if only the
    keyword index is down, the vector retriever does. Raises StoreDown otherwise.
    """
    try:
        return _from_both(resources, plan, query, version, timings)
    except KeywordsDown as error:
        if query.vector is None or not query.keywords:
            raise
        alone = _from_both(resources, plan, _without_keywords(query), version, timings)
        return replace(alone, left_out={"keyword": error.detail})
    except StoreDown as error:
        local = resources.store_of(plan.record.store).local_keywords
        if not local or not query.keywords:
            raise
        alone = _from_both(resources, plan, _without_vector(query), version, timings)
        return replace(alone, left_out={"vector": error.detail})


def _from_both(
    resources: Resources, plan: Plan, query: Query, version: int, timings: Timings
) -> Candidates:
    if plan.nothing:
        return Candidates((), FusionWeight(_alpha(query)), version)
    with timings.stage("background"):
        calibration, scale = _calibrated(resources, plan, query, version)
    first = Candidates((), FusionWeight(_alpha(query)), version, calibration, scale)
    return _searched(resources, plan, query, first, timings)


def _without_vector(query: Query) -> Query:
    return replace(query, vector=None, alpha=0.0)


def _without_keywords(query: Query) -> Query:
    return replace(query, keywords="", alpha=1.0)


def weigh_facets(resources: Resources, plan: Plan, query: Query, timings: Timings) -> Weights:
    """Return the weight of each facet value for the question.

    The result is empty if the facet weight is 0, the question has no vector, the request names a
    vector, or there are documents that the reader may not read.
    """
    parameters, model = plan.parameters, resources.embedder_of(plan.record).model
    if not parameters.facets_weight or query.vector is None or plan.vector_name:
        return {}
    if plan.unreadable:  # the vectors of facet values are of all documents
        return {}
    with timings.stage("facets"):
        table = resources.facet_tables.of(
            plan.collection, plan.tenant, model, plan.record.options.facets
        )
        return {} if table is None else weights(query.vector, table, parameters.facets_top)


def narrow(
    resources: Resources,
    plan: Plan,
    query: Query,
    first: Candidates,
    facet_weights: Weights,
    timings: Timings,
) -> Retrieved:
    """Add the candidates of the narrowest facet branch and determine which candidates are live.

    Each search asks the ledger which chunks are live. If a version goes live between the reads of
    the store and of the ledger, its old chunks disappear and the search has not seen the new ones.
    In that case the search is repeated, at most `ROUNDS` times in all.
    """
    if first.hotset is not None:
        return Retrieved(
            first.candidates,
            first.candidates,
            first.weight,
            first.hotset,
            first.corpus_version,
            weights=facet_weights,
            from_hotset=True,
        )
    store = resources.store_of(plan.record.store)
    if first.left_out:
        only = _without_keywords if "keyword" in first.left_out else _without_vector
        query = only(query)
    if plan.nothing:
        reader = ChunkReader(store, plan, {}, resources.analyzer_of(plan.record))
        return Retrieved((), (), first.weight, reader, first.corpus_version, weights=facet_weights)
    merged = _with_branch(resources, plan, query, first, facet_weights, timings)
    for done in range(1, ROUNDS + 1):
        with timings.stage("visible"):
            positions = live_positions(resources, plan, [c.chunk_id for c in merged.candidates])
            live = [c for c in merged.candidates if c.chunk_id in positions]
            if len(live) == len(merged.candidates) or done == ROUNDS:
                break
            version = corpus_version(resources, plan)
        if version == first.corpus_version:
            break
        first = replace(first, corpus_version=version)
        first = _searched(resources, plan, query, first, timings)
        merged = _with_branch(resources, plan, query, first, facet_weights, timings)
    return Retrieved(
        candidates=live if plan.owner else merged.candidates,
        live=live,
        weight=first.weight,
        reader=ChunkReader(store, plan, positions, resources.analyzer_of(plan.record)),
        corpus_version=first.corpus_version,
        calibration=first.calibration,
        scale=first.scale,
        weights=facet_weights,
        branches=merged.branches,
        branch=merged.chosen,
        left_out=first.left_out,
    )


def calibration_of(resources: Resources, plan: Plan, retrieved: Retrieved) -> ScoreCalibration:
    """Return the calibration sample of the collection, whatever the fusion."""
    return retrieved.calibration or _calibration(resources, plan, retrieved.corpus_version)


def _calibration(resources: Resources, plan: Plan, version: int) -> ScoreCalibration:
    """The sample of the passages that the reader may read."""
    return resources.calibrations.of(
        resources.store_of(plan.record.store),
        plan.collection,
        plan.tenant,
        version,
        ledger=resources.ledger,
        unreadable=plan.unreadable,
        models=tuple(plan.record.models.items()),
    )


def live_positions(resources: Resources, plan: Plan, chunk_ids: list[str]) -> dict[str, Seen]:
    """Return the positions of live chunks.

    Each row of an attached table is live and is a document of its own.
    """
    if plan.record.attached:
        return {chunk_id: Seen(chunk_id, None, 0) for chunk_id in chunk_ids}
    return resources.ledger.chunks.seen(chunk_ids, collection=plan.collection, tenant=plan.tenant)


def _calibrated(
    resources: Resources, plan: Plan, query: Query, version: int
) -> tuple[ScoreCalibration | None, Scale | None]:
    """Return the sample and the score scale for this question if the fusion uses them.

    One retriever alone needs none: if the store does not answer, there is none for a question
    without a vector or without keywords.
    """
    if plan.parameters.fusion != "calibrated":
        return None, None
    store = resources.store_of(plan.record.store)
    try:
        calibration = _calibration(resources, plan, version)
        metric = plan.method or store.schema(plan.collection).vector(plan.vector_name).metric
    except StoreDown:
        if query.vector is not None and query.keywords:
            raise
        return None, None
    bm25 = store.keyword_score == "bm25"
    scale = calibration.scale(query.vector, plan.vector_name, metric, query.keywords, bm25)
    return calibration, scale


def _searched(
    resources: Resources, plan: Plan, query: Query, first: Candidates, timings: Timings
) -> Candidates:
    """Return `first` with the candidates of both retrievers in the whole collection."""
    with timings.stage("legs"):
        key = _key(resources, plan, query, first, None)
        searched = _cached(
            resources,
            key,
            lambda: _weighed(resources, plan, query, first.scale),
        )
    return replace(first, candidates=searched.candidates, weight=searched.weight)


def _weighed(resources: Resources, plan: Plan, query: Query, scale: Scale | None) -> CandidateList:
    """Return the candidates of the whole collection; choose the weight of the vector retriever.

    A request, the collection or the settings may have set the weight.
    """
    if query.alpha is not None or scale is None:
        alpha = _alpha(query)
        candidates = both(resources, plan, query, scale, plan.where, alpha)
        return CandidateList(candidates, FusionWeight(alpha))
    vectors, keywords = resources.store_of(plan.record.store).retrieve(
        plan.collection,
        query.vector,
        query.keywords,
        plan.where,
        tenant=plan.tenant,
        vector_name=plan.vector_name,
        method=plan.method,
        horizon=plan.horizon,
        pool=plan.pool,
    )
    weight = choose(keywords, scale)
    return CandidateList(fuse(vectors, keywords, alpha=weight.alpha, scale=scale), weight)


def _alpha(query: Query) -> float:
    return UNKNOWN if query.alpha is None else query.alpha


def _with_branch(
    resources: Resources,
    plan: Plan,
    query: Query,
    first: Candidates,
    facet_weights: Weights,
    timings: Timings,
) -> CandidateList:
    """Return the candidates merged with those of the branch that the facet weights propose.

    The branch is searched only if a retriever may have more candidates than it returned, and if
    the scores of two searches are comparable (calibrated fusion).
    """
    alone = CandidateList(first.candidates, first.weight)
    if first.scale is None or not plan.parameters.narrow:
        return alone
    if not is_full(first.candidates, plan.pool):
        return alone
    proposed = branches.propose(facet_weights, plan.where)
    if not proposed:
        return alone
    with timings.stage("narrow"):
        key = _key(resources, plan, query, first, facet_weights)
        try:
            return _cached(
                resources, key, lambda: _narrowed(resources, plan, query, first, proposed)
            )
        except StoreDown:
            return alone


def _narrowed(
    resources: Resources, plan: Plan, query: Query, first: Candidates, proposed: list[Branch]
) -> CandidateList:
    store = resources.store_of(plan.record.store)
    counted = branches.count(store, plan.collection, plan.tenant, proposed, resources.threads)
    branch = branches.choose(counted)
    if branch is None:
        return CandidateList(first.candidates, first.weight, counted)
    alpha = first.weight.alpha
    second = both(resources, plan, query, first.scale, branch.where, alpha, branches.LIMIT)
    merged = branches.merged(first.candidates, second)
    return CandidateList(merged, first.weight, counted, branch)


def _cached(
    resources: Resources, key: Hashable, make: Callable[[], CandidateList]
) -> CandidateList:
    """Return the value cached under the key, else the result of `make`, which is then cached.

    Without a key nothing is cached.
    """
    if not key:
        return make()
    if (cached := resources.candidates.get(key)) is not None:
        return cached
    made = make()
    resources.candidates.put(key, made)
    return made


def _key(
    resources: Resources, plan: Plan, query: Query, first: Candidates, facets: Weights | None
) -> Hashable:
    """Return the cache key: every input of the candidates; None if they are not cacheable."""
    request, record = plan.request, plan.record
    cacheable = request.query_embedding is None and not record.attached
    if not cacheable or not resources.settings.search.result_cache:
        return None
    store = resources.store_of(record.store)
    made = store.kind, record.created_at, record.embedder
    scope = made, record.name, plan.tenant, first.corpus_version
    texts = request.query.strip(), query.keywords
    question = texts, query.alpha, query.vector is None, plan.pool, first.scale
    # The filter is compared as text, because 1 and True are equal dictionary keys.
    how = repr(plan.where), plan.parameters, plan.vector_name, plan.method, plan.horizon
    return scope, question, how, repr(facets)


def both(
    resources: Resources,
    plan: Plan,
    query: Query,
    scale: Scale | None,
    where: Where | None,
    alpha: float,
    limit: int | None = None,
) -> list[Candidate]:
    """Return the fused candidates of both retrievers."""
    store: Store = resources.store_of(plan.record.store)
    return store.hybrid_query(
        plan.collection,
        query.vector,
        query.keywords,
        limit or 2 * plan.pool,
        where,
        tenant=plan.tenant,
        vector_name=plan.vector_name,
        method=plan.method,
        horizon=plan.horizon,
        pool=min(plan.pool, limit or plan.pool),
        fusion=plan.parameters.fusion,
        alpha=alpha,
        rrf_k=resources.settings.search.rrf_k,
        scale=scale,
    )
