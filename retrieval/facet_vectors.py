"""Building facet-value vectors: what each value of a facet means, learned from its passages.

A value's vector is that of a typed description, its aliases and spellings, and 3 to 10 sentences
from the passages nearest to the mean of a sample of those that carry it. Some of the sample are
held back as probes, by which `retrieval.facet_weights` is calibrated.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callslip.errors import CallslipError, InternalError, InvalidRequest
from models.embedder import Embedder
from retrieval.facet_texts import aliases, describe, label, sentences, spread
from retrieval.facet_weights import calibrate
from stores.contract import Store
from stores.filters import Condition, Where, is_unicode, normalize
from stores.ledger import CollectionRecord, FacetValue, Failure, Ledger
from stores.ledger.facet_values import LONGEST_VALUE, FacetPlace
from stores.levels import PASSAGES
from stores.records import FILTERABLE, Scalar, StoredChunk, Vector

METHOD = "1"
"""Another one whenever the same passages should give another vector."""

SAMPLE = 64
"""Passages of a value that are looked at: those of the smallest ids, which are hashes."""

MOST_SENTENCES = 10
PROBES = 4
PROBE_CHARS = 100
"""About as long as a question."""

MOST_RAW = 200
"""Properties that may stand for one value, such as paths of sections that end alike."""

BATCH = 8
"""Values that are kept at once; what was kept survives a kill."""

_IDS_AT_ONCE = 256

Counts = dict[str, int]
"""made, unchanged and gone values, and those left out as too rare or too long; `values` in all."""


@dataclass(frozen=True)
class FacetBuilder:
    """What builds the facets of a collection, or of one tenant of it."""

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
        told: Callable[[], object] = lambda: None,
    ) -> dict[str, Counts]:
        """Make the vectors of values that changed, and forget values that are no more.

        Idempotent, and goes on where one that was killed stopped. Searches may run meanwhile: they
        see some values before others. `told` is called between batches. A collection without an
        embedder has no facets. Raises InvalidRequest where another embedder made the collection,
        CollectionNotFound and TenantNotFound where it goes meanwhile, and what the store and the
        embedder raise; that is noted with the facet.
        """
        at = FacetPlace(collection.name, tenant)
        if self.embedder.lexical_only:
            self.ledger.facet_values.keep_only(at, ())
            return {}
        check_can_be_built(collection, self.embedder)
        done = {}
        for facet in facets:
            self.ledger.facet_values.begin(at, facet, run)
            try:
                done[facet] = self._facet(collection, at, facet, told)
            except Exception as error:
                if not isinstance(error, CallslipError):
                    error = InternalError(f"unexpected {type(error).__name__}")
                self.ledger.facet_values.fail(at, facet, Failure.of(error))
                raise
        return done

    def _facet(
        self, collection: CollectionRecord, at: FacetPlace, facet: str, told: Callable[[], object]
    ) -> Counts:
        kept = self.ledger.facet_values
        listed, left_out = self._listed(at, facet)
        known = kept.fingerprints(at, facet)
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
                kept.put(at, facet, made)
            counts["made"] += len(made)
            counts["values"] = counts["made"] + counts["unchanged"]
            kept.count(at, facet, counts)
            told()
        if known:
            kept.drop(at, facet, known)
        kept.recount(at, facet, unchanged)
        calibration = calibrate(kept.values(at, facet))
        counts["gone"] = len(known)
        kept.finish(at, facet, counts, None if calibration is None else calibration.as_json())
        return counts

    def _listed(self, at: FacetPlace, facet: str) -> tuple[list["_Value"], int]:
        """The most frequent values, and how many are left out.

        Chunks are counted as the store has them: one that is about to leave it counts still.
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

    def _sample(self, at: FacetPlace, facet: str, raw: Sequence[Scalar]) -> list[str]:
        """The smallest ids of live passages that have one of these properties."""
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
    """Raise InvalidRequest where the embedder says nothing, or another made the collection."""
    if embedder.lexical_only:
        raise InvalidRequest(
            "without an embedder there are no facet vectors",
            hint="Set embedder.kind in the settings, and ingest into a new collection.",
        )
    if collection.embedder != embedder.model:
        raise InvalidRequest(
            f"collection {collection.name!r} was embedded with {collection.embedder!r},"
            f" this installation runs {embedder.model!r}",
            hint="Set the embedder back, or ingest into a new collection.",
        )


@dataclass(frozen=True)
class _Value:
    """A value, how many chunks have it, and the properties that stand for it."""

    value: str
    chunks: int
    raw: tuple[Scalar, ...]


def _named(
    facet: str, value: _Value, model: str, dictionary: Mapping[str, Sequence[str]]
) -> FacetValue:
    """The value with its words, before it has a vector."""
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
    """Of all that a value's vectors are made of: a chunk's id is a hash of its text."""
    parts = [METHOD, named.model, named.description, *named.aliases, "", *ids]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _embedded(named: FacetValue, chunks: Sequence[StoredChunk], embedder: Embedder) -> FacetValue:
    samples, probes, apart = divide(chunks)
    spelt = [", ".join(named.aliases)] if named.aliases else []
    text = "\n".join([named.description, *spelt, *samples])
    vector: Vector = embedder.passages([text])[0]
    asked = [embedder.query(probe[:PROBE_CHARS]) for probe in probes]
    return replace(
        named,
        vector=vector,
        probes=np.stack(asked) if asked else np.empty((0, len(vector)), np.float32),
        probes_apart=apart,
    )


def divide(chunks: Sequence[StoredChunk]) -> tuple[list[str], list[str], bool]:
    """Sentences that stand for a value, probes that do not, and whether these are apart.

    Probes come from other documents than the samples where there are several, else from other
    passages, else from the end of the only one. A value of one sentence has none.
    """
    documents = list(dict.fromkeys(chunk.document_id for chunk in chunks))
    if len(documents) > 1:
        aside = set(documents[-min(PROBES, len(documents) // 2) :])
        firsts = {c.document_id: c for c in reversed(chunks) if c.document_id in aside}
        held = list(firsts.values())
        rest = [c for c in chunks if c.document_id not in aside]
    else:
        cut = len(chunks) - min(PROBES, len(chunks) // 2)
        rest, held = list(chunks[:cut]), list(chunks[cut:])
    texts = [sentences(chunk.body) for chunk in _by_nearness(rest)]
    probes = [said[len(said) // 2] for said in (sentences(chunk.body) for chunk in held)]
    if not held and len(texts[0]) > 1:
        probes = [texts[0].pop()]
    return spread(texts, MOST_SENTENCES), [p for p in probes if p], len(documents) > 1


def _by_nearness(chunks: Sequence[StoredChunk]) -> list[StoredChunk]:
    """The chunks nearest to the mean of them first."""
    vectors = [c.vector for c in chunks if c.vector is not None]
    if len(vectors) < len(chunks):
        return list(chunks)
    matrix = np.stack(vectors)
    order = np.argsort(-(matrix @ matrix.mean(0)), kind="stable")
    return [chunks[i] for i in order]
