"""Builds the vectors of facet values from the passages that have these values.

A value's vectors are those of a typed description, of its aliases and spellings, and of 3 to 10
sentences. The sentences come from the passages nearest to the mean of a sample of the value's
passages. Part of the sample is reserved for probes, which calibrate `retrieval.facets.weights`.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callslip.errors import CallslipError, InternalError, InvalidRequest
from callslip.models.embedders.contract import Embedder
from callslip.retrieval.facets.texts import aliases, describe, label, sentences, spread
from callslip.retrieval.facets.weights import calibrate
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, FacetValue, Failure, Ledger
from callslip.stores.ledger.learning.facet_values import LONGEST_VALUE, FacetScope
from callslip.stores.levels import PASSAGES
from callslip.stores.properties.filters import Condition, Where, is_unicode, normalize
from callslip.stores.records import FILTERABLE, Scalar, StoredChunk, Vector

METHOD = "1"
"""The version of the method; change it if the same passages would get another vector."""

SAMPLE = 64
"""Passages of a value in the sample: those with the smallest ids, which are hashes."""

MOST_SENTENCES = 10
PROBES = 4
PROBE_CHARS = 100
"""The length of a probe, about that of a question."""

MOST_RAW = 200
"""The maximum number of property values for one facet value, such as section paths with one end."""

BATCH = 8
"""The number of values that are stored at once; stored values survive a kill."""

_IDS_AT_ONCE = 256

Counts = dict[str, int]
"""Numbers of made, unchanged and gone values, and of left-out ones (too rare or too long); `values`
is the number of all."""


@dataclass(frozen=True)
class FacetBuilder:
    """Builds the facets of a collection, or of one of its tenants."""

    ledger: Ledger
    store: Store
    embedder: Embedder
    max_values: int

    def rebuild(
        self,
        collection: CollectionRecord,
        tenant: str,
        facets: Collection[str],
        *,
        run: str = "",
        on_batch: Callable[[], object] = lambda: None,
    ) -> dict[str, Counts]:
        """Build the vectors of changed values, and delete the values that no longer exist.

        Idempotent; continues an interrupted run. Searches may run at the same time and see some new
        values before others. `on_batch` is called between batches. A collection without an embedder
        has no facets. Raises InvalidRequest if another embedder made the collection's vectors;
        CollectionNotFound or TenantNotFound if the collection or tenant is deleted during the run;
        and the errors of the store and the embedder. The ledger records the error with the facet.
        """
        at = FacetScope(collection.name, tenant)
        if self.embedder.lexical_only:
            self.ledger.facet_values.keep_only(at, ())
            return {}
        check_can_be_built(collection, self.embedder)
        done = {}
        for facet in facets:
            self.ledger.facet_values.begin(at, facet, run)
            try:
                done[facet] = self._facet(collection, at, facet, on_batch)
            except Exception as error:
                if not isinstance(error, CallslipError):
                    error = InternalError(f"unexpected {type(error).__name__}")
                self.ledger.facet_values.fail(at, facet, Failure.of(error))
                raise
        return done

    def _facet(
        self,
        collection: CollectionRecord,
        at: FacetScope,
        facet: str,
        on_batch: Callable[[], object],
    ) -> Counts:
        values_ledger = self.ledger.facet_values
        listed, left_out = self._listed(at, facet)
        known = values_ledger.fingerprints(at, facet)
        counts = {"made": 0, "unchanged": 0, "gone": 0, "left_out": left_out, "values": 0}
        unchanged: Counts = {}
        for start in range(0, len(listed), BATCH):
            made: list[FacetValue] = []
            for value in listed[start : start + BATCH]:
                ids = self._sample(at, facet, value.raw)
                if not ids:
                    continue
                named = _named(facet, value, self.embedder.model, collection.options.dictionary)
                fingerprint = _fingerprint(named, ids)
                if known.pop(value.value, None) == fingerprint:
                    unchanged[value.value] = value.chunks
                    counts["unchanged"] += 1
                    continue
                chunks = self.store.get_chunks(
                    at.collection, ids, tenant=at.tenant, include_vector=True
                )
                if chunks:
                    made.append(
                        _embedded(replace(named, fingerprint=fingerprint), chunks, self.embedder)
                    )
            if made:
                values_ledger.put(at, facet, made)
            counts["made"] += len(made)
            counts["values"] = counts["made"] + counts["unchanged"]
            values_ledger.count(at, facet, counts)
            on_batch()
        if known:
            values_ledger.drop(at, facet, known)
        values_ledger.recount(at, facet, unchanged)
        calibration = calibrate(values_ledger.values(at, facet))
        counts["gone"] = len(known)
        values_ledger.finish(
            at, facet, counts, None if calibration is None else calibration.as_json()
        )
        return counts

    def _listed(self, at: FacetScope, facet: str) -> tuple[list["_Value"], int]:
        """Return the most frequent values, and how many values are left out.

        The counts come from the store, so they include chunks that are about to be deleted.
        """
        groups = self.store.aggregate_group_by(
            at.collection, facet, Where(every=(PASSAGES,)), tenant=at.tenant
        )
        counted: Counter[str] = Counter()
        raw: defaultdict[str, list[Scalar]] = defaultdict(list)
        for value, count in groups:
            name = label(facet, value)
            if name:
                counted[name] += count
                if len(raw[name]) < MOST_RAW:
                    raw[name].append(value)
        fitting = [n for n in counted if len(n) <= LONGEST_VALUE and is_unicode(n)]
        best = sorted(fitting, key=lambda name: (-counted[name], name))[: self.max_values]
        listed = [_Value(name, counted[name], tuple(raw[name])) for name in best]
        return listed, len(counted) - len(best)

    def _sample(self, at: FacetScope, facet: str, raw: Sequence[Scalar]) -> list[str]:
        """The smallest chunk ids of live passages that have one of these properties."""
        values = tuple(normalize(value) for value in raw)
        has = [Condition(facet, "in", values)]
        if facet not in FILTERABLE:
            has.append(Condition(facet, "contains", values))
        where = Where(every=(PASSAGES,), some=tuple(has))
        ids = self.store.find_ids(at.collection, where, tenant=at.tenant)
        live: list[str] = []
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[start : start + _IDS_AT_ONCE]
            seen = self.ledger.chunks.visible(some, collection=at.collection, tenant=at.tenant)
            live += [chunk_id for chunk_id in some if chunk_id in seen]
            if len(live) >= SAMPLE:
                break
        return live[:SAMPLE]


def check_can_be_built(collection: CollectionRecord, embedder: Embedder) -> None:
    """Raise InvalidRequest if there are no embeddings, or another embedder made the vectors."""
    if embedder.lexical_only:
        raise InvalidRequest(
            "without an embedder there are no facet vectors",
            hint="Set embedder.kind in the settings, and ingest into a new collection.",
        )
    if collection.embedder != embedder.model:
        raise InvalidRequest(
            f"collection {collection.name!r} was embedded with {collection.embedder!r},"
            f" this installation runs {embedder.model!r}",
            hint=f"Run `callslip reindex {collection.name}`, or set the embedder back.",
        )


@dataclass(frozen=True)
class _Value:
    """A value, the number of chunks that have it, and the properties that belong to it."""

    value: str
    chunks: int
    raw: tuple[Scalar, ...]


def _named(
    facet: str, value: _Value, model: str, dictionary: Mapping[str, Sequence[str]]
) -> FacetValue:
    """The value with its texts, before it has a vector."""
    nothing = np.empty((0, 0), np.float32)
    return FacetValue(
        facet=facet,
        value=value.value,
        aliases=aliases(value.value, dictionary),
        description=describe(facet, value.value),
        fingerprint="",
        model=model,
        vector=nothing,
        probes=nothing,
        probes_apart=False,
        chunks=value.chunks,
    )


def _fingerprint(named: FacetValue, ids: Iterable[str]) -> str:
    """A hash of all inputs of a value's vectors; a chunk's id is itself a hash of its text."""
    parts = [METHOD, named.model, named.description, *named.aliases, "", *ids]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _embedded(named: FacetValue, chunks: Sequence[StoredChunk], embedder: Embedder) -> FacetValue:
    samples, probes, apart = divide(chunks)
    spelt = [", ".join(named.aliases)] if named.aliases else []
    text = "\n".join([named.description, *spelt, *samples])
    vector: Vector = embedder.passages([text])[0]
    probe_vectors = [embedder.query(probe[:PROBE_CHARS]) for probe in probes]
    return replace(
        named,
        vector=vector,
        probes=np.stack(probe_vectors) if probe_vectors else np.empty((0, len(vector)), np.float32),
        probes_apart=apart,
    )


def divide(chunks: Sequence[StoredChunk]) -> tuple[list[str], list[str], bool]:
    """Return a value's sentences, its probes, and whether these come from separate documents.

    Probes come from other documents than the sentences if there are several, else from other
    passages, else from the end of the only passage. A value with one sentence has no probes.
    """
    documents = list(dict.fromkeys(chunk.document_id for chunk in chunks))
    if len(documents) > 1:
        aside = set(documents[-min(PROBES, len(documents) // 2) :])
        firsts = {c.document_id: c for c in reversed(chunks) if c.document_id in aside}
        aside_chunks = list(firsts.values())
        rest = [c for c in chunks if c.document_id not in aside]
    else:
        cut = len(chunks) - min(PROBES, len(chunks) // 2)
        rest, aside_chunks = list(chunks[:cut]), list(chunks[cut:])
    texts = [sentences(chunk.body) for chunk in _by_nearness(rest)]
    probes = [parts[len(parts) // 2] for parts in (sentences(chunk.body) for chunk in aside_chunks)]
    if not aside_chunks and len(texts[0]) > 1:
        probes = [texts[0].pop()]
    return spread(texts, MOST_SENTENCES), [p for p in probes if p], len(documents) > 1


def _by_nearness(chunks: Sequence[StoredChunk]) -> list[StoredChunk]:
    """Sort the chunks by distance to their mean vector, the nearest first."""
    vectors = [c.vector for c in chunks if c.vector is not None]
    if len(vectors) < len(chunks):
        return list(chunks)
    matrix = np.stack(vectors)
    order = np.argsort(-(matrix @ matrix.mean(0)), kind="stable")
    return [chunks[i] for i in order]
