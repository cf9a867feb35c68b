"""Attaching a collection that another program made in its Chroma, as a collection of Callslip."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from callslip.compat.attaching import UNKNOWN, Embedders, check_vectors, known
from callslip.errors import InvalidRequest, StoreDown
from callslip.models.embedders.contract import Embedder
from callslip.stores.chroma.attached.server import METRICS, ChromaServer, Remote
from callslip.stores.ledger import ATTACHED_CHROMA, Attachment, CollectionRecord, Ledger
from callslip.stores.records import CollectionSchema, Vector, VectorSpec

HINT = (
    "Name the embedder of the settings that made them: `vectors` is `ours` or `previous`; or"
    " `none`: then only vectors that a request gives are searched."
)

SAMPLE = 100
"""The number of vectors that are read to check whether their lengths are 1."""

COMPARED = 5
"""The number of documents that are embedded to compare their vectors with those in Chroma."""

LEAST_COSINE = 0.5
"""The least median of those cosines.

Vectors of another model are at 0 on average, those of the same model near 1, also where the program
embedded a title with the document.
"""

Embed = Callable[[Embedder, Sequence[str]], Vector]
"""Embeds passages: a row for each text."""


def attach(
    name: str,
    at: Attachment,
    *,
    ledger: Ledger,
    server: ChromaServer,
    embedders: Embedders,
    embed: Embed,
) -> tuple[CollectionRecord, bool]:
    """Attach a collection for reading; return the collection and whether it is new.

    A repeated call returns the existing collection, at another server or tenant if one is named.
    Raises InvalidRequest if the collection has no vectors or vectors of another embedder;
    TableNotFound, CollectionExists, and the errors of the server and of `embed`.
    """
    record = known(ledger, name)
    if record is not None and record.attachment == at:
        return record, False
    remote = server.describe(at)
    if remote.dimension is None:
        raise InvalidRequest(
            f"{at.shown} in Chroma has no rows, so the dimension of its vectors is not known",
            hint="Attach it when it has rows.",
        )
    embedder = embedders.named(at.vectors, HINT)
    if embedder is not None:
        _check_embedder(server, at, remote, embedder, embed)
    schema = CollectionSchema(name, _spec(remote, embedder))
    if record is not None and _is_elsewhere(record, at) and record.schema == schema:
        ledger.collections.move_attachment(name, at)
        return replace(record, attachment=at), False
    return ledger.collections.create(
        schema,
        store=ATTACHED_CHROMA,
        embedder=UNKNOWN if embedder is None else embedder.model,
        analyzer=UNKNOWN,
        attachment=at,
    )


def _is_elsewhere(record: CollectionRecord, at: Attachment) -> bool:
    """Whether the attachment is that of the record at another server or tenant."""
    old = record.attachment
    return old is not None and replace(old, server=at.server, tenant=at.tenant) == at


def _spec(remote: Remote, embedder: Embedder | None) -> VectorSpec:
    """Unit vectors of an embedder here have cosines in every space, others the space's metric."""
    dimension = remote.dimension or 0
    if embedder is not None:
        return VectorSpec(dimension, "cosine", normalized=True)
    return VectorSpec(dimension, METRICS[remote.space])


def _check_embedder(
    server: ChromaServer, at: Attachment, remote: Remote, embedder: Embedder, embed: Embed
) -> None:
    """Raise InvalidRequest if the embedder did not make the vectors."""
    texts, vectors = _sample(server, at)
    unit = None
    if remote.space != "cosine" and len(vectors):
        unit = bool(np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3))
    check_vectors(f"collection {at.shown}", remote.dimension or 0, unit, embedder, HINT)
    rows = [row for row, text in enumerate(texts) if text.strip()][:COMPARED]
    if not rows:
        return
    made = embed(embedder, [texts[row] for row in rows])
    cosines = [
        float(there @ here / max(np.linalg.norm(there) * np.linalg.norm(here), 1e-12))
        for there, here in zip(vectors[rows], made, strict=True)
    ]
    if median(cosines) < LEAST_COSINE:
        raise InvalidRequest(
            f"{embedder.model} did not make the vectors of {at.shown}: they have a cosine of"
            f" {median(cosines):.2f} to its own of the same documents (median of {len(rows)})",
            hint=HINT,
        )


def _sample(server: ChromaServer, at: Attachment) -> tuple[list[str], Vector]:
    got: Any = server.read(at, "get", limit=SAMPLE, include=["documents", "embeddings"])
    try:
        texts = [text or "" for text in got["documents"]]
        vectors = np.asarray(got["embeddings"], np.float32).reshape(len(texts), -1)
    except (KeyError, TypeError, ValueError):
        raise StoreDown(f"Chroma at {at.server} answers in an unknown form.") from None
    return texts, vectors
