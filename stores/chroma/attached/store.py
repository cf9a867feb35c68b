"""The store of attached Chroma collections, with the search and read methods of the contract."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import numpy as np

from callslip.config.settings import ChromaSettings
from callslip.errors import InvalidFilter, InvalidRequest, StoreDown
from callslip.stores.attached.read_only import ReadOnlyStore
from callslip.stores.chroma.attached.filters import superset
from callslip.stores.chroma.attached.server import ChromaServer, Remote, Space
from callslip.stores.ledger import ATTACHED_CHROMA, Attachment, Ledger
from callslip.stores.levels import PASSAGE
from callslip.stores.metrics import Metric
from callslip.stores.properties.filters import Where, matches
from callslip.stores.records import RetrieverHit, Scalar, StoredChunk, Value, Vector, visible
from callslip.stores.ties import ranked

ROWS_PER_CALL = 1000

MOST_READ = 10_000
"""The most nearest rows that are read for a filter that Chroma cannot evaluate."""

_MORE = 4
"""The factor by which each further query reads more rows."""

SAMPLE = 1000
"""The rows whose metadata are read for the names of properties, where the server lists none."""

FIELDS = ("title", "section", "filename", "lang")
"""Fields of a chunk that are metadata of the same name, where these are texts."""


class AttachedChroma(ReadOnlyStore):
    """The id of a chunk is the row's id, its text the row's document, its properties the metadata.

    There is no keyword retriever: Chroma's server has none.
    """

    kind = ATTACHED_CHROMA
    indexed = frozenset[Metric]({"cosine", "dot", "l2-squared"})

    def __init__(self, settings: ChromaSettings, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._settings = settings
        self._lock = threading.Lock()
        self._servers: dict[str, ChromaServer] = {}

    def ping(self) -> None:
        """Do nothing: each call finds out whether its own server answers."""

    def close(self) -> None:
        with closing(self._ledger), self._lock:
            for server in self._servers.values():
                server.close()
            self._servers.clear()

    # Searching

    def build_where(self, where: Where) -> object:
        return superset(where)

    def nearest(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
    ) -> list[RetrieverHit]:
        """Query for the nearest rows, and for more of them until enough pass the filter.

        Raises InvalidFilter if more than MOST_READ rows would have to be read.
        """
        record, at = self.located(collection, tenant)
        condition, metric = superset(where), record.schema.default.metric
        if condition is False or limit < 1:
            return []
        remote, wanted = self._remote(collection, at, record.schema.default.dimension), limit
        if metric == "cosine":
            vector = vector / np.linalg.norm(vector)
        while True:
            rows = self._nearest(at, vector, wanted, condition, with_metadata=where is not None)
            hits = [
                RetrieverHit(id_, _score(distance, remote.space, metric))
                for id_, distance, metadata in rows
                if where is None or matches(where, _visible(id_, metadata))
            ]
            if len(hits) >= limit or len(rows) < wanted:
                return ranked(hits)[:limit]
            if wanted >= MOST_READ:
                raise InvalidFilter(
                    f"Of the {MOST_READ:,} nearest rows of {collection} too few pass the filter,"
                    " which Chroma itself cannot evaluate.",
                    hint="Add a condition of ==, in, @ or a comparison with a number.",
                )
            wanted = min(_MORE * wanted, MOST_READ)

    def _nearest(
        self, at: Attachment, vector: Vector, count: int, where: object, *, with_metadata: bool
    ) -> list[tuple[str, float, Any]]:
        got = self._server(at).read(
            at,
            "query",
            query_embeddings=[np.asarray(vector, np.float32).tolist()],
            n_results=count,
            include=["distances", *(["metadatas"] if with_metadata else [])],
            **_stated(where),
        )
        try:
            ids, distances = got["ids"][0], got["distances"][0]
            metadatas = got["metadatas"][0] if with_metadata else [None] * len(ids)
            return [
                (str(id_), float(distance), metadata)
                for id_, distance, metadata in zip(ids, distances, metadatas, strict=True)
            ]
        except (KeyError, IndexError, TypeError, ValueError):
            raise _garbled(at) from None

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        """No hits: there is no keyword retriever."""
        self.located(collection, tenant)
        return []

    # Reading

    def property_names(self, collection: str) -> set[str]:
        """The names that the server lists, or else those of the first SAMPLE rows."""
        _record, at = self.located(collection)
        names = set(self._server(at).describe(at).names)
        if not names:
            names.update(chain(*(m for _, m in self._page(at, True, 0, SAMPLE))))
        return names

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        _record, at = self.located(collection, tenant)
        include = ["metadatas", "documents", *(["embeddings"] if include_vector else [])]
        chunks: dict[str, StoredChunk] = {}
        ids = list(dict.fromkeys(chunk_ids))
        for start in range(0, len(ids), ROWS_PER_CALL):
            some = ids[start : start + ROWS_PER_CALL]
            got = self._server(at).read(at, "get", ids=some, include=include)
            try:
                nothing = [None] * len(got["ids"])
                vectors = got["embeddings"] if include_vector else nothing
                columns = (got["ids"], got["documents"], got["metadatas"], vectors)
                for id_, text, metadata, vector in zip(*columns, strict=True):
                    chunks[id_] = _chunk(id_, text or "", metadata, vector)
            except (KeyError, TypeError, ValueError):
                raise _garbled(at) from None
        return [chunks[id_] for id_ in chunk_ids if id_ in chunks]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        return sorted(id_ for id_, _ in self._matching(collection, where, tenant))

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        if where is None:
            _record, at = self.located(collection, tenant)
            return self._server(at).count(at)
        return sum(1 for _ in self._matching(collection, where, tenant))

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        values: Counter[Scalar] = Counter()
        for id_, metadata in self._matching(collection, where, tenant):
            value: Any = _visible(id_, metadata).get(prop)
            values.update(value if isinstance(value, list) else [] if value is None else [value])
        return sorted(values.items(), key=lambda group: (-group[1], str(group[0])))

    # Requests

    def _server(self, at: Attachment) -> ChromaServer:
        with self._lock:
            if at.server not in self._servers:
                self._servers[at.server] = make_server(self._settings, at.server, named=False)
            return self._servers[at.server]

    def _remote(self, collection: str, at: Attachment, dimension: int) -> Remote:
        """The collection; raise InvalidRequest if its vectors have another dimension now."""
        remote = self._server(at).known(at)
        if remote.dimension != dimension:
            remote = self._server(at).describe(at)
        if remote.dimension not in (dimension, None):
            raise InvalidRequest(
                f"The vectors of {at.shown} in Chroma have {remote.dimension} dimensions now; they"
                f" had {dimension} when it was attached.",
                hint=f"`callslip detach {collection}`, and attach it again.",
            )
        return remote

    def _matching(
        self, collection: str, where: Where | None, tenant: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The id and metadata of every row that passes the filter."""
        _record, at = self.located(collection, tenant)
        condition, offset = superset(where), 0
        while condition is not False:
            page = self._page(at, condition, offset, ROWS_PER_CALL)
            for id_, metadata in page:
                if where is None or matches(where, _visible(id_, metadata)):
                    yield id_, metadata
            if len(page) < ROWS_PER_CALL:
                return
            offset += len(page)

    def _page(
        self, at: Attachment, where: object, offset: int, limit: int
    ) -> list[tuple[str, dict[str, Any]]]:
        got = self._server(at).read(
            at, "get", limit=limit, offset=offset, include=["metadatas"], **_stated(where)
        )
        try:
            pairs = zip(got["ids"], got["metadatas"], strict=True)
            return [(str(id_), dict(metadata or {})) for id_, metadata in pairs]
        except (KeyError, TypeError, ValueError):
            raise _garbled(at) from None


def make_server(settings: ChromaSettings, url: str, *, named: bool = True) -> ChromaServer:
    """The client of a server at this address, with its key of the settings."""
    return ChromaServer(url, settings.networks, settings.attached_key(url), named=named)


def _stated(where: object) -> dict[str, object]:
    return {} if isinstance(where, bool) else {"where": where}


def _score(distance: float, space: Space, metric: Metric) -> float:
    """The score of the contract; in an l2 space a cosine is that of vectors of length 1."""
    if space == "l2":
        return 1 - distance / 2 if metric == "cosine" else -distance
    return 1 - distance


def _visible(id_: str, metadata: Any) -> dict[str, object]:
    return visible(_chunk(id_, "", metadata, None))


def _chunk(id_: str, text: str, metadata: Any, vector: Any) -> StoredChunk:
    properties = {name: v for name, v in (metadata or {}).items() if _is_value(v)}
    title, section, filename, lang = (_text(properties, name) for name in FIELDS)
    return StoredChunk(
        chunk_id=id_,
        document_id=id_,
        body=text,
        parent_id="",
        heading="",
        title=title,
        section=section,
        filename=filename,
        lang=lang,
        level=PASSAGE,
        ordinal=0,
        start=0,
        end=len(text),
        properties=properties,
        vector=None if vector is None else np.asarray(vector, np.float32),
    )


def _text(properties: Mapping[str, Value], name: str) -> str:
    value = properties.get(name)
    return value if isinstance(value, str) else ""


def _is_value(value: object) -> bool:
    """Whether filters can compare the value; a sparse vector is none."""
    return isinstance(value, str | int | float | bool | list)


def _garbled(at: Attachment) -> StoreDown:
    return StoreDown(f"Chroma answers for {at.shown} in an unknown form.")
